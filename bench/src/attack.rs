//! Hostile clients of a gateway: strangers without a token, readers that never read, and writers that start slow work
//! and hang up.
//!
//! They run in a process of their own, with the lowest priority, because an attacker normally uses another machine: what
//! is measured is what their requests cost, not the processor time that they take to send them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use bowline_proto::ids::ClientId;
use bowline_proto::message::{ClientMessage, Hello, Lag, VERSION};
use bowline_proto::size::Size;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::wire::Wire;

/// Requests and connections of the attack so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Threads for each kind of request.
const THREADS: usize = 8;
/// Connections that each kind of stalled client holds open.
const HELD: usize = 250;
/// How long a client waits for an answer before it hangs up.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a client holds a connection on which it does not read.
const HOLD: Duration = Duration::from_secs(5);

/// The rights of the hostile clients.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Class {
    Stranger,
    Reader,
    Writer,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Attack {
    pub(crate) class: Class,
    pub(crate) gateway: SocketAddr,
    /// A session that prints all the time
    pub(crate) session: String,
    /// A session that ignores SIGHUP
    pub(crate) stubborn: String,
    /// A session whose process is stopped
    pub(crate) stopped: String,
}

/// Attacks until standard input ends, then prints how many requests and connections were made. The token is in the
/// environment variable `BOWLINE_TOKEN`.
pub(crate) fn run(attack: &Attack) -> Result<()> {
    let _ = rustix::process::nice(19);
    let clients = match attack.class {
        Class::Stranger => strangers(),
        Class::Reader => readers(),
        Class::Writer => writers(),
    };
    let target = Target { attack: attack.clone(), token: std::env::var("BOWLINE_TOKEN").unwrap_or_default() };
    for (count, client) in clients {
        for _ in 0..count {
            let target = target.clone();
            thread::Builder::new().stack_size(128 << 10).spawn(move || {
                loop {
                    // A refusal is what the gateway should answer, so the attack goes on.
                    if client(&target).is_err() {
                        thread::sleep(Duration::from_millis(20));
                    }
                    MADE.fetch_add(1, Ordering::Relaxed);
                }
            })?;
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{}", MADE.load(Ordering::Relaxed));
    Ok(())
}

#[derive(Clone, Debug)]
struct Target {
    attack: Attack,
    token: String,
}

/// What a client does once, and how many clients do it over and over.
type Clients = Vec<(usize, fn(&Target) -> Result<()>)>;

fn strangers() -> Clients {
    vec![
        (THREADS, |to| to.exchange("POST", "/v1/login", "", &json!({"code": "x".repeat(43)}).to_string())),
        (THREADS, |to| to.exchange("GET", "/v1/sessions", "Authorization: Bearer bwl_000000000000_x\r\n", "")),
        (THREADS, |to| to.exchange("GET", "/v1/events", "", "")),
        (THREADS, |to| to.exchange("GET", "/v1/events?ticket=x", "", "")),
        (HELD, |to| to.stall(&format!("GET /v1/sessions HTTP/1.1\r\nX-Long: {}", "x".repeat(60_000)))),
    ]
}

fn readers() -> Clients {
    vec![
        (THREADS, |to| to.exchange("GET", "/v1/sessions", &to.bearer(), "")),
        (THREADS, |to| {
            let path = format!("/v1/sessions/{}/screen?format=json&scrollback=1000", to.attack.session);
            to.exchange("GET", &path, &to.bearer(), "")
        }),
        (HELD, |to| to.stall(&to.head("GET", "/v1/events", &to.bearer(), ""))),
        (HELD, |to| to.stall(&to.head("GET", &format!("/v1/sessions/{}/log", to.attack.session), &to.bearer(), ""))),
        (HELD, |to| {
            let _viewer = to.attach()?;
            thread::sleep(HOLD);
            Ok(())
        }),
        (THREADS, |to| to.attach().map(drop)),
    ]
}

fn writers() -> Clients {
    vec![
        (THREADS, |to| to.hang_up("DELETE", &format!("/v1/sessions/{}?grace=300", to.attack.stubborn), "")),
        (THREADS, |to| {
            let name = format!("n{}", MADE.load(Ordering::Relaxed));
            to.hang_up("PATCH", &format!("/v1/sessions/{}", to.attack.stopped), &json!({"name": name}).to_string())
        }),
        (THREADS, |to| {
            let id = MADE.load(Ordering::Relaxed).to_string();
            let command = json!({"id": id, "command": {"type": "input", "text": "x".repeat(1000)}});
            to.exchange(
                "POST",
                &format!("/v1/sessions/{}/commands", to.attack.session),
                &to.bearer(),
                &command.to_string(),
            )
        }),
        (THREADS, |to| {
            let mut viewer = to.attach()?;
            for cols in 80..200 {
                let size = Size::new(cols, 50)?;
                send(&mut viewer, &ClientMessage::ClaimSize(size))?;
                thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        }),
    ]
}

impl Target {
    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    fn head(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let (host, len) = (self.attack.gateway, body.len());
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        )
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.attack.gateway, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Sends a request and reads the whole answer.
    fn exchange(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(self.head(method, path, headers, body).as_bytes())?;
        std::io::copy(&mut stream, &mut std::io::sink())?;
        Ok(())
    }

    /// Sends a request and hangs up before it is answered.
    fn hang_up(&self, method: &str, path: &str, body: &str) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(self.head(method, path, &self.bearer(), body).as_bytes())?;
        thread::sleep(Duration::from_millis(20));
        Ok(())
    }

    /// Sends something, and then neither sends nor reads.
    fn stall(&self, text: &str) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(text.as_bytes())?;
        thread::sleep(HOLD);
        Ok(())
    }

    /// Attaches without reading anything.
    fn attach(&self) -> Result<Wire> {
        let path = format!("/v1/sessions/{}/attach", self.attack.session);
        let mut wire = Wire::upgrade(self.attack.gateway, &path, &self.token)?;
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let hello = Hello {
            version: VERSION,
            client: ClientId::from_random(random),
            conn: 1,
            was: None,
            cursor: None,
            size: Some(Size::new(200, 50)?),
            lag: Lag::Skip,
            scrollback: 1000,
            observe: false,
            theme: None,
            key: None,
            grant: None,
        };
        send(&mut wire, &ClientMessage::Hello(hello))?;
        Ok(wire)
    }
}

fn send(wire: &mut Wire, message: &ClientMessage) -> Result<()> {
    Ok(wire.send_text(&mut Vec::new(), &serde_json::to_string(message)?)?)
}
