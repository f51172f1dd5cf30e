//! A network that reads along: it refuses, repeats and loses requests, and cuts streams. What happens to a request follows
//! from the seed, its id and the number of its try; what happens to a stream, from the seed, its kind and its number.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_host::digest::fnv1a;
use serde_json::Value;

use super::super::super::faults::Random;

/// After this many tries, a request is let through, so that a test has an end.
const MAX_FAULTS: u64 = 3;

/// What happens to a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PostFault {
    None,
    /// The answer is 429, and the server never hears of it.
    TooMany,
    /// The answer is 503, with or without the time after which to try again.
    Unavailable,
    UnavailableUntil,
    /// The connection is closed before the server gets anything.
    LostRequest,
    /// The server gets half of it.
    HalfRequest,
    /// The server gets it, the client no response.
    LostResponse,
    /// The server gets it twice.
    Duplicate,
}

const FAULTS: [PostFault; 7] = [
    PostFault::TooMany,
    PostFault::Unavailable,
    PostFault::UnavailableUntil,
    PostFault::LostRequest,
    PostFault::HalfRequest,
    PostFault::LostResponse,
    PostFault::Duplicate,
];

/// The proxy, which ends with this value.
pub(super) struct ChaosNetwork {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    seed: u64,
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How often each request was tried, and how many streams of each kind were opened.
    tries: BTreeMap<String, u64>,
    /// How often each fault happened; `cut` is that of a stream.
    faults: BTreeMap<String, u64>,
    wires: Vec<TcpStream>,
}

impl ChaosNetwork {
    pub(super) fn new(server: SocketAddr, seed: u64) -> ChaosNetwork {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { server, seed, stop: AtomicBool::new(false), state: Mutex::default() });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.stop.load(Ordering::SeqCst) {
                    return;
                }
                let shared = accepting.clone();
                std::thread::spawn(move || shared.serve(client));
            }
        });
        ChaosNetwork { address, shared }
    }

    /// How often each fault happened.
    pub(super) fn faults(&self) -> BTreeMap<String, u64> {
        self.shared.with(|state| state.faults.clone())
    }
}

impl Drop for ChaosNetwork {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let wires = self.shared.with(|state| std::mem::take(&mut state.wires));
        wires.iter().for_each(|wire| _ = wire.shutdown(Shutdown::Both));
    }
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves the requests of one connection.
    fn serve(&self, mut client: TcpStream) {
        self.remember(&client);
        while let Some(request) = read_message(&mut client) {
            if !request.starts_with(b"POST ") {
                return self.carry_stream(client, &request);
            }
            let Some(response) = self.exchange(&request) else { break };
            if client.write_all(&response).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    fn remember(&self, wire: &TcpStream) {
        let wire = wire.try_clone().unwrap();
        self.with(|state| {
            state.wires.retain(|wire| wire.peer_addr().is_ok());
            state.wires.push(wire);
        });
    }

    /// The random numbers for the next try of a request, or the next stream of a kind; and the number of that.
    fn next(&self, key: &str) -> (Random, u64) {
        let tries = self.with(|state| {
            let tries = state.tries.entry(key.to_owned()).or_default();
            *tries += 1;
            *tries
        });
        let mut random = Random::new(fnv1a(format!("{} {key} {tries}", self.seed).as_bytes()));
        // Its first numbers differ little for similar seeds.
        (0..16).for_each(|_| _ = random.below(2));
        (random, tries)
    }

    fn count(&self, fault: &str) {
        self.with(|state| *state.faults.entry(fault.to_owned()).or_default() += 1);
    }

    /// The response that the client gets; `None` if its connection is cut.
    fn exchange(&self, request: &[u8]) -> Option<Vec<u8>> {
        let body = request.windows(4).position(|end| end == b"\r\n\r\n").map(|end| &request[end + 4..])?;
        let id = serde_json::from_slice::<Value>(body).ok()?["id"].as_str()?.to_owned();
        let (mut random, tries) = self.next(&id);
        let fault = match random.below(2) {
            0 if tries <= MAX_FAULTS => FAULTS[random.below(FAULTS.len() as u64) as usize],
            _ => PostFault::None,
        };
        if fault != PostFault::None {
            self.count(&format!("{fault:?}"));
        }
        match fault {
            PostFault::None => self.forward(request),
            PostFault::TooMany => Some(refusal("429 Too Many Requests", "too_many", Some(1))),
            PostFault::Unavailable => Some(refusal("503 Service Unavailable", "unreachable", None)),
            PostFault::UnavailableUntil => Some(refusal("503 Service Unavailable", "unreachable", Some(1))),
            PostFault::LostRequest => None,
            PostFault::HalfRequest => {
                let mut server = TcpStream::connect(self.server).ok()?;
                let _ = server.write_all(&request[..request.len() - body.len() / 2]);
                None
            }
            PostFault::LostResponse => {
                self.forward(request);
                None
            }
            PostFault::Duplicate => {
                self.forward(request);
                self.forward(request)
            }
        }
    }

    fn forward(&self, request: &[u8]) -> Option<Vec<u8>> {
        let mut server = TcpStream::connect(self.server).ok()?;
        server.write_all(request).ok()?;
        read_message(&mut server)
    }

    /// Carries a stream, and cuts it after some bytes from the server.
    fn carry_stream(&self, mut client: TcpStream, head: &[u8]) {
        let text = String::from_utf8_lossy(head).to_ascii_lowercase();
        let kind = match () {
            () if text.contains("/attach") => "attach",
            () if text.contains("upgrade: websocket") => "websocket",
            () => "sse",
        };
        let (mut random, _) = self.next(kind);
        let mut left = if random.below(4) == 0 { u64::MAX } else { 500 + random.below(12_000) };
        let Ok(mut server) = TcpStream::connect(self.server) else {
            let _ = client.shutdown(Shutdown::Both);
            return;
        };
        self.remember(&server);
        let _ = server.write_all(head);
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = server.read(&mut piece) {
            let kept = n.min(left as usize);
            left -= kept as u64;
            if client.write_all(&piece[..kept]).is_err() {
                break;
            }
            if left == 0 {
                self.count(&format!("cut {kind}"));
                break;
            }
        }
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    }
}

fn refusal(status: &str, code: &str, retry_after: Option<u64>) -> Vec<u8> {
    let body = format!(r#"{{"detail":"{status}"}}"#);
    let retry_after = retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/problem+json\r\nBowline-Code: {code}\r\n{retry_after}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads one request or response, with the body that its `Content-Length` says.
fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = message.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&message[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if message.len() >= end + 4 + length.unwrap_or(0) {
                return Some(message);
            }
        }
        match stream.read(&mut piece) {
            Ok(n @ 1..) => message.extend_from_slice(&piece[..n]),
            _ => return None,
        }
    }
}
