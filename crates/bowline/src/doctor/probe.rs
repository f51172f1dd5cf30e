//! Starts a test session through a gateway and attaches to it, without a terminal.

use std::time::{Duration, Instant};

use bowline_client::remote::api::{ApiError, ApiRequest};
use bowline_client::remote::{Gateway, RemoteDialer};
use bowline_client::transport::{Dialer, Transport};
use bowline_proto::api::{NewSession, NewTerminal};
use bowline_proto::close::ConnectionEnd;
use bowline_proto::config::ClientConfig;
use bowline_proto::ids::{ClientId, SessionId};
use bowline_proto::link::{Client, ClientEvent, ClientTransmit};
use bowline_proto::session::SessionInfo;
use http::Method;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long to wait for the session to start, and then for its output.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Seconds without a viewer after which the session ends, in case the doctor is killed.
const DETACHED_TTL: u64 = 60;
/// What the session prints. The command spells it differently, so that an echo of the command does not match.
const OUTPUT: &str = "all is well";

/// A session that is ended when dropped.
pub(super) struct TestSession {
    gateway: Gateway,
    id: SessionId,
}

impl TestSession {
    /// Starts a session that prints [`OUTPUT`] and keeps running.
    pub(super) fn start(gateway: &Gateway) -> Result<TestSession, ApiError> {
        let argv = ["/bin/sh", "-c", "printf 'all is %s' well; exec cat"];
        let session = NewSession::Terminal(NewTerminal {
            argv: argv.map(str::to_owned).into(),
            cwd: Some("/".to_owned()),
            detached_ttl: DETACHED_TTL,
            ..NewTerminal::default()
        });
        let response = gateway.send(&ApiRequest::new(Method::POST, "/v1/sessions").body(&session).within(TIMEOUT));
        let info: SessionInfo = response?.json()?;
        Ok(TestSession { gateway: gateway.clone(), id: info.id })
    }

    /// Attaches and waits for the output of the session.
    pub(super) fn attach(&self) -> Result<Attachment, String> {
        let transport = RemoteDialer::new(self.gateway.clone(), &self.id)
            .dial(false)
            .map_err(|closed| describe_close(&closed, None))?;
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| error.to_string())?;
        let link = Client::new(ClientConfig::new(ClientId::from_random(random)));
        let mut attachment =
            Attachment { transport, link, connected: false, start: Instant::now(), output: Vec::new() };
        let deadline = Instant::now() + TIMEOUT;
        while !attachment.has_output() {
            if Instant::now() > deadline {
                return Err("attached, but the output of the session did not arrive".into());
            }
            attachment.step(Duration::from_millis(200))?;
        }
        Ok(attachment)
    }
}

impl Drop for TestSession {
    fn drop(&mut self) {
        let path = format!("/v1/sessions/{}?grace=0", self.id);
        let _ = self.gateway.send(&ApiRequest::new(Method::DELETE, path).within(TIMEOUT));
    }
}

/// An attached viewer that displays nothing.
pub(super) struct Attachment {
    transport: Box<dyn Transport>,
    link: Client,
    connected: bool,
    /// The link measures time from here.
    start: Instant,
    output: Vec<u8>,
}

impl Attachment {
    fn has_output(&self) -> bool {
        self.output.windows(OUTPUT.len()).any(|part| part == OUTPUT.as_bytes())
    }

    /// Exchanges messages for at most `wait`. The error says how the connection ended.
    pub(super) fn step(&mut self, wait: Duration) -> Result<(), String> {
        self.transmit()?;
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.transport.wants_write());
        let wait = Timespec::try_from(wait).map_err(|error| error.to_string())?;
        // An interruption by a signal only shortens the wait.
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.transport.fd(), flags)], Some(&wait));
        let (link, now) = (&mut self.link, self.start.elapsed());
        let received = self.transport.receive(&mut |frame| link.handle_frame(frame, now));
        received.map_err(|closed| describe_close(&closed, self.transport.refusal()))?;
        self.handle_events();
        self.link.handle_timeout(now);
        self.transmit()
    }

    fn transmit(&mut self) -> Result<(), String> {
        let now = self.start.elapsed();
        if self.transport.is_open() && !self.connected {
            self.connected = true;
            self.link.handle_connected(now);
        }
        while self.connected && self.transport.has_room() {
            match self.link.poll_transmit(now) {
                Some(ClientTransmit::Text(message)) => self.transport.send(&message),
                Some(ClientTransmit::Input { offset, bytes }) => self.transport.send_input(offset, &bytes),
                Some(ClientTransmit::Close { reason, .. }) => return Err(reason.to_owned()),
                None => break,
            }
        }
        self.transport.flush().map_err(|closed| describe_close(&closed, None))
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.link.poll_event() {
            match event {
                ClientEvent::SnapshotPart(bytes) => self.output.extend_from_slice(&bytes),
                ClientEvent::Output { offset, bytes } => {
                    self.output.extend_from_slice(&bytes);
                    self.link.handle_rendered(offset + bytes.len() as u64);
                }
                ClientEvent::SnapshotEnd { offset } => self.link.handle_rendered(offset),
                _ => {}
            }
        }
    }
}

fn describe_close(closed: &ConnectionEnd, refusal: Option<&str>) -> String {
    match (closed, refusal) {
        (ConnectionEnd::Refused { status, from_gateway: true, .. }, Some(detail)) => {
            format!("refused with status {status}: {detail}")
        }
        (ConnectionEnd::Refused { status, from_gateway: false, .. }, _) => {
            format!("a proxy or another program answered with status {status}")
        }
        (ConnectionEnd::Refused { status, .. }, None) => format!("refused with status {status}"),
        (ConnectionEnd::Code { code, reason, .. }, _) => format!("closed with {code} {reason}"),
        (_, _) => "the connection was lost".into(),
    }
}
