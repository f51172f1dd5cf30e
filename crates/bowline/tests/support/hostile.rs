//! A server that puts escape sequences into everything that it may say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Sets the title, clears the screen with an 8-bit control, turns text around, and starts a line.
pub(crate) const HOSTILE: &str =
    "\x1b]0;pwned\x07\u{9b}2J\u{90}1000p\x7f\r\nhint: pwned\t\u{202e}\u{2066}\u{200f}\u{2028}";

/// How the server answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answers {
    /// As a gateway, with a hostile string wherever it may send one.
    Valid,
    /// The same, and the session has ended.
    Ended,
    /// The same, and the session belongs to another machine.
    Elsewhere,
    /// Refuses everything, with this problem code.
    Refuses(&'static str),
    /// With something that is not HTTP, or not JSON.
    Garbage,
}

/// A server on a free port of this machine. It runs until the test's process ends.
pub(crate) struct HostileServer {
    answers: Arc<Mutex<Answers>>,
    port: u16,
}

impl HostileServer {
    pub(crate) fn start() -> HostileServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = HostileServer {
            answers: Arc::new(Mutex::new(Answers::Valid)),
            port: listener.local_addr().unwrap().port(),
        };
        let answers = server.answers.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answers = *answers.lock().unwrap();
                // A client that hangs up does not matter.
                std::thread::spawn(move || drop(answer(stream, answers)));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, answers: Answers) {
        *self.answers.lock().unwrap() = answers;
    }
}

fn answer(mut stream: TcpStream, answers: Answers) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut request, mut line, mut length) = (String::new(), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if request.is_empty() {
            request.clone_from(&line);
        }
        line.clear();
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let problem = |status: &str, code: &str| {
        let body = json!({ "type": HOSTILE, "title": HOSTILE, "detail": format!("no: {HOSTILE}"), "code": code });
        (status.to_owned(), format!("Bowline-Code: {code}\r\n"), body.to_string())
    };
    let (status, headers, body) = match answers {
        Answers::Garbage if path.contains("screen") || path.contains("healthz") => {
            (format!("200 {HOSTILE}"), String::new(), HOSTILE.to_owned())
        }
        Answers::Garbage => ("200 OK".to_owned(), format!("Bowline-Code: {HOSTILE}\r\n"), HOSTILE.to_owned()),
        Answers::Refuses(code) => problem("409 Conflict", code),
        _ if path.ends_with("/attach") => problem("403 Forbidden", "not_allowed"),
        _ if path.contains("/screen") && !path.contains("format=json") => {
            ("200 OK".to_owned(), String::new(), HOSTILE.to_owned())
        }
        answers => ("200 OK".to_owned(), String::new(), valid(&path, answers).to_string()),
    };
    let length = body.len();
    // In one write, because a client reads the reason of a refused upgrade only if it arrives with the head.
    let response = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(response.as_bytes())
}

/// The body of a successful answer.
fn valid(path: &str, answers: Answers) -> Value {
    let session = session(answers);
    match path.split('?').next().unwrap_or_default().trim_start_matches("/v1/") {
        "sessions" if !path.contains('?') => {
            // The answer to a list and to a new session.
            let mut both = session.clone();
            both["sessions"] = json!([session]);
            both
        }
        "tokens" => json!({
            "tokens": [{ "id": HOSTILE, "kind": "token", "name": HOSTILE, "scope": "read", "created": HOSTILE,
                "expires": HOSTILE, "used": HOSTILE }],
            "id": HOSTILE,
            "token": HOSTILE,
        }),
        "codes" => json!({ "code": HOSTILE, "expires": HOSTILE }),
        path if path.ends_with("/commands") => json!({ "id": HOSTILE, "seq": 1, "status": "accepted" }),
        path if path.ends_with("/screen") => json!({ "lines": [{ "text": HOSTILE }], HOSTILE: HOSTILE }),
        _ => session,
    }
}

fn session(answers: Answers) -> Value {
    let mut session = json!({
        "id": "k3v9x0q2m7aa", "name": "build", "kind": "terminal", "state": "running", "created": HOSTILE,
        "active": HOSTILE, "call": { "at": HOSTILE, "kind": "notify", "text": HOSTILE }, "cwd": HOSTILE,
        "title": HOSTILE, "clients": 1, "epoch": "9f3c61d2", "offset": 0, "version": HOSTILE,
        "argv": [HOSTILE, HOSTILE], "size": { "cols": 80, "rows": 24 },
    });
    match answers {
        Answers::Ended => {
            session["state"] = json!("exited");
            session["exit"] = json!({ "code": null, "signal": HOSTILE });
        }
        Answers::Elsewhere => session["host"] = json!(HOSTILE),
        Answers::Valid | Answers::Refuses(_) | Answers::Garbage => {}
    }
    session
}
