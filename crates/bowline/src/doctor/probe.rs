//! A viewer without a terminal: attaches through a gateway and sees what comes.

use std::time::{Duration, Instant};

use bowline_client::remote::call::Call;
use bowline_client::remote::{Gateway, Remote};
use bowline_client::transport::{Dial, Transport};
use bowline_proto::api::{NewSession, NewTerminal};
use bowline_proto::close::Closed;
use bowline_proto::config::ClientConfig;
use bowline_proto::ids::{ClientId, SessionId};
use bowline_proto::link::{Client, ClientEvent};
use bowline_proto::session::SessionInfo;
use http::Method;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long making a session may take, and seeing what it prints.
const WITHIN: Duration = Duration::from_secs(15);
/// How long the session stays without a viewer, in seconds, if the doctor is killed.
const LEFT_FOR: u64 = 60;
/// What the session prints.
const WORDS: &str = "all is well";

/// A session that ends with this value.
pub(super) struct Trial {
    gateway: Gateway,
    id: SessionId,
}

impl Trial {
    /// Makes a session that prints something and stays.
    pub(super) fn start(gateway: &Gateway) -> Result<Trial, String> {
        let argv = ["/bin/sh", "-c", "printf 'all is %s' well; exec cat"];
        let session = NewSession::Terminal(NewTerminal {
            argv: argv.map(str::to_owned).into(),
            cwd: Some("/".to_owned()),
            detached_ttl: LEFT_FOR,
            ..NewTerminal::default()
        });
        let made = gateway.call(&Call::new(Method::POST, "/v1/sessions").body(&session).within(WITHIN));
        let made: SessionInfo = made.and_then(|answer| answer.json()).map_err(|error| error.to_string())?;
        let id = made.id;
        Ok(Trial { gateway: gateway.clone(), id })
    }

    /// Attaches, and waits until what the session printed is seen.
    pub(super) fn attach(&self) -> Result<Attachment, String> {
        let transport =
            Remote::new(self.gateway.clone(), &self.id).dial(false).map_err(|closed| words(&closed, None))?;
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| error.to_string())?;
        let link = Client::new(ClientConfig::new(ClientId::from_random(random)));
        let mut attachment = Attachment { transport, link, connected: false, began: Instant::now(), seen: Vec::new() };
        let until = Instant::now() + WITHIN;
        while !attachment.has_seen_all() {
            if Instant::now() > until {
                return Err("attached, and nothing of what the session printed came".into());
            }
            attachment.step(Duration::from_millis(200))?;
        }
        Ok(attachment)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let path = format!("/v1/sessions/{}?grace=0", self.id);
        let _ = self.gateway.call(&Call::new(Method::DELETE, path).within(WITHIN));
    }
}

/// An attachment that shows nothing to anybody.
pub(super) struct Attachment {
    transport: Box<dyn Transport>,
    link: Client,
    connected: bool,
    began: Instant,
    seen: Vec<u8>,
}

impl Attachment {
    fn has_seen_all(&self) -> bool {
        self.seen.windows(WORDS.len()).any(|part| part == WORDS.as_bytes())
    }

    /// Waits a moment for whatever comes; an error says how the connection ended.
    pub(super) fn step(&mut self, wait: Duration) -> Result<(), String> {
        self.talk()?;
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.transport.wants_write());
        let wait = Timespec::try_from(wait).map_err(|error| error.to_string())?;
        // A signal that interrupts this is as good as a moment.
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.transport.fd(), flags)], Some(&wait));
        let (link, now) = (&mut self.link, self.began.elapsed());
        let received = self.transport.receive(&mut |frame| link.handle_frame(frame, now));
        received.map_err(|closed| words(&closed, self.transport.refusal()))?;
        self.take_events();
        self.link.handle_timeout(now);
        self.talk()
    }

    fn talk(&mut self) -> Result<(), String> {
        let now = self.began.elapsed();
        if self.transport.is_open() && !self.connected {
            self.connected = true;
            self.link.handle_connected(now);
        }
        while self.connected && self.transport.has_room() {
            let Some(transmit) = self.link.poll_transmit(now) else { break };
            if let bowline_proto::link::ClientTransmit::Close { reason, .. } = transmit {
                return Err(reason.to_owned());
            }
            self.transport.send(&transmit);
        }
        self.transport.flush().map_err(|closed| words(&closed, None))
    }

    fn take_events(&mut self) {
        while let Some(event) = self.link.poll_event() {
            match event {
                ClientEvent::SnapshotPart(bytes) => self.seen.extend_from_slice(&bytes),
                ClientEvent::Output { offset, bytes } => {
                    self.seen.extend_from_slice(&bytes);
                    self.link.handle_rendered(offset + bytes.len() as u64);
                }
                ClientEvent::SnapshotEnd { offset } => self.link.handle_rendered(offset),
                _ => {}
            }
        }
    }
}

/// How a connection ended, in words.
fn words(closed: &Closed, refusal: Option<&str>) -> String {
    match (closed, refusal) {
        (Closed::Refused { status, ours: true, .. }, Some(words)) => format!("refused ({status}): {words}"),
        (Closed::Refused { status, ours: false, .. }, _) => {
            format!("something on the way answered with status {status}")
        }
        (Closed::Refused { status, .. }, None) => format!("refused with status {status}"),
        (Closed::Code { code, reason, .. }, _) => format!("closed with {code} {reason}"),
        (_, _) => "the connection was cut".into(),
    }
}
