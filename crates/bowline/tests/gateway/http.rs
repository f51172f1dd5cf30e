//! A minimal HTTP client: one request per connection, with exactly the given headers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::gateway::PATIENCE;

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The `Bowline-Code` header.
    pub(crate) fn code(&self) -> &str {
        self.header("bowline-code").unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.text()))
    }
}

/// Sends a request and reads the whole response.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Response> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() || method == "POST" {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    // In one write: the gateway may refuse and close the connection between two.
    stream.write_all(&[format!("{head}\r\n").as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // The gateway responded without reading the whole body.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset && !answer.is_empty() => break,
            Err(error) => return Err(error),
        }
        // An event stream has no end, so its head has to do.
        if let Some(head) = whole_head(&answer).filter(|head| head.to_lowercase().contains("text/event-stream")) {
            return parse(format!("{head}\r\n\r\n0\r\n\r\n").as_bytes())
                .ok_or_else(|| std::io::ErrorKind::InvalidData.into());
        }
    }
    parse(&answer).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

/// The head of a response, once it is complete.
fn whole_head(answer: &[u8]) -> Option<String> {
    let end = answer.windows(4).take(16 << 10).position(|part| part == b"\r\n\r\n")?;
    Some(String::from_utf8_lossy(&answer[..end]).into_owned())
}

/// Parses a response whose body ends with the connection, chunked or not.
pub(crate) fn parse(answer: &[u8]) -> Option<Response> {
    let head = whole_head(answer)?;
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let mut body = answer[end + 4..].to_vec();
    if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
        body = unchunk(&body)?;
    }
    Some(Response { status, headers, body })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|part| part == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}
