//! A minimal HTTP client: requests on one connection, one after the other, and the body of a stream.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use crate::pty::SILENCE;

/// A connection to a gateway that stays open between requests.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    address: SocketAddr,
    token: String,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, token: &str) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        Ok(Client { stream, address, token: token.to_owned() })
    }

    /// Sends a request and reads the whole answer. Returns its status and body.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        self.send(method, path, body)?;
        let head = read_head(&mut self.stream)?;
        let mut body = vec![0; content_length(&head).context("the answer has no length")?];
        self.stream.read_exact(&mut body)?;
        Ok((status(&head)?, String::from_utf8(body)?))
    }

    /// Opens a stream. Its body is read from the returned connection.
    pub(crate) fn open_stream(mut self, path: &str) -> Result<TcpStream> {
        self.send("GET", path, "")?;
        let head = read_head(&mut self.stream)?;
        match status(&head)? {
            200 => Ok(self.stream),
            _ => bail!("the gateway refused the stream: {head}"),
        }
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let (host, token, len) = (self.address, &self.token, body.len());
        // One write, because a request in several packets takes longer.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        Ok(self.stream.write_all(request.as_bytes())?)
    }
}

/// Reads the head of an answer, and nothing after it.
pub(crate) fn read_head(stream: &mut TcpStream) -> Result<String> {
    let mut seen = [0; 8 << 10];
    loop {
        let n = stream.peek(&mut seen)?;
        if n == 0 {
            bail!("the gateway closed the connection");
        }
        if let Some(end) = seen[..n].windows(4).position(|part| part == b"\r\n\r\n") {
            let mut head = vec![0; end + 4];
            stream.read_exact(&mut head)?;
            return Ok(String::from_utf8(head)?);
        }
        if n == seen.len() {
            bail!("the head of the answer is too long");
        }
        std::thread::yield_now();
    }
}

fn status(head: &str) -> Result<u16> {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("the answer has no status")
}

fn content_length(head: &str) -> Option<usize> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?.1.trim().parse().ok()
}

/// Decodes a chunked body.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Bytes of the current chunk that were not received yet, with the line break after it.
    left: usize,
}

impl Chunks {
    /// Appends the content of `raw` to `body`. Returns how much of `raw` was used; the rest is incomplete.
    pub(crate) fn decode(&mut self, raw: &[u8], body: &mut Vec<u8>) -> Result<usize> {
        let mut at = 0;
        while at < raw.len() {
            let rest = &raw[at..];
            if self.left > 0 {
                let n = rest.len().min(self.left);
                body.extend_from_slice(&rest[..n.min(self.left.saturating_sub(2))]);
                (at, self.left) = (at + n, self.left - n);
                continue;
            }
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
            let size = std::str::from_utf8(&rest[..end])?.trim();
            let size = usize::from_str_radix(size, 16).with_context(|| format!("not a chunk's size: {size:?}"))?;
            if size == 0 {
                bail!("the gateway ended the stream");
            }
            (at, self.left) = (at + end + 1, size + 2);
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_decoded_wherever_they_are_split() {
        let raw = b"5\r\nhello\r\n1\r\n \r\nb\r\nbig\r\n world\r\n";
        for first in 0..raw.len() {
            for second in first..raw.len() {
                let (mut chunks, mut body, mut rest) = (Chunks::default(), Vec::new(), Vec::new());
                for part in [&raw[..first], &raw[first..second], &raw[second..]] {
                    rest.extend_from_slice(part);
                    let used = chunks.decode(&rest, &mut body).unwrap();
                    rest.drain(..used);
                }
                assert_eq!(body, b"hello big\r\n world", "split at {first} and {second}");
                assert!(rest.is_empty());
            }
        }
        assert!(Chunks::default().decode(b"0\r\n\r\n", &mut Vec::new()).is_err());
    }

    #[test]
    fn a_head_has_a_status_and_a_length_in_any_case() {
        let head = "HTTP/1.1 202 Accepted\r\ncontent-length: 17\r\n\r\n";
        assert_eq!((status(head).unwrap(), content_length(head)), (202, Some(17)));
        assert_eq!(content_length("HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
