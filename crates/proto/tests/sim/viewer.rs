//! A simulated viewer: the client, its reconnector and its terminal, with checks on every event.

use std::collections::VecDeque;
use std::time::Duration;

use bowline_proto::backoff::Backoff;
use bowline_proto::config::{ACK_BYTES, UNSENT_AFTER};
use bowline_proto::ids::{ClientId, Epoch};
use bowline_proto::link::{Client, ClientConfig, ClientEvent, ClientState, Reconnector, SubmitError, Unsent};
use bowline_proto::message::{Grant, Lag, Missed, PresenceEntry, Reason, Scope, ServerMessage, Verdict};
use bowline_proto::size::Size;

use super::input_check::InputCheck;
use super::rng::Rng;
use super::session::{EpochRecord, Session};
use super::terminal::Terminal;

pub(crate) struct Viewer {
    pub(crate) id: ClientId,
    pub(crate) client: Client,
    pub(crate) reconnector: Reconnector,
    pub(crate) lag: Lag,
    pub(crate) observe: bool,
    pub(crate) window: Size,
    /// `None` before the first snapshot, and while a snapshot is incomplete.
    pub(crate) terminal: Option<Terminal>,
    pub(crate) epoch: Option<Epoch>,
    /// An incomplete snapshot: the bytes received, its offset and its size.
    incoming: Option<(Vec<u8>, u64, Size)>,
    /// The width changed, and no snapshot has arrived since.
    pub(crate) needs_repaint: bool,
    /// When the terminal will have rendered up to which offset.
    rendering: VecDeque<(Duration, u64)>,
    slow: bool,
    /// The viewer polls no events before this time.
    pub(crate) frozen_until: Duration,
    /// There are events that the viewer has not polled.
    pub(crate) behind: bool,
    pub(crate) input_check: InputCheck,
    /// Reported unsent; the user has not decided.
    undecided: Unsent,
    /// How often more bytes became unsent before the user had decided.
    pub(crate) grown: u32,
    /// How often typed bytes did not fit into the outbox.
    pub(crate) refused: u32,
    /// How often the user sent what was unsent.
    pub(crate) resent: u32,
    pub(crate) title: Option<String>,
    pub(crate) present: Vec<PresenceEntry>,
    pub(crate) exited: bool,
    /// The user detached.
    pub(crate) left: bool,
    /// How often a snapshot skipped output.
    pub(crate) skips: u32,
    pub(crate) exacts: u32,
}

impl Viewer {
    pub(crate) fn new(index: usize, rng: &mut Rng) -> Viewer {
        // Viewers of different callers may use the same client id.
        let id = ClientId::from_random([if rng.one_in(3) { 1 } else { index as u8 + 1 }; 16]);
        let grant = (index > 0).then(|| Grant { write: true, caller: Some(format!("caller {index}")), name: None });
        let window = random_size(rng);
        let lag = if rng.one_in(3) { Lag::Wait } else { Lag::Skip };
        let observe = rng.one_in(6);
        let config = ClientConfig {
            size: Some(window),
            lag,
            observe,
            grant,
            rendered_every: rng.between(8, 400).min(ACK_BYTES),
            // Fewer than the values of a key, so that doubtful keys cannot be confused with later ones.
            outbox: rng.between(10, 30) as usize,
            // Some viewers hold input back after a short time, so that unsent input is frequent.
            unsent_after: if rng.one_in(2) { UNSENT_AFTER } else { Duration::from_millis(rng.between(0, 2000)) },
            ..ClientConfig::new(id.clone())
        };
        Viewer {
            id,
            client: Client::new(config),
            reconnector: Reconnector::new(Backoff::NATIVE),
            lag,
            observe,
            window,
            terminal: None,
            epoch: None,
            incoming: None,
            needs_repaint: false,
            rendering: VecDeque::new(),
            slow: rng.one_in(3),
            frozen_until: Duration::ZERO,
            behind: false,
            input_check: InputCheck::new(index),
            undecided: Unsent::default(),
            grown: 0,
            refused: 0,
            resent: 0,
            title: None,
            present: Vec::new(),
            exited: false,
            left: false,
            skips: 0,
            exacts: 0,
        }
    }

    /// Applies an event as a real viewer would, and checks it against the history of the session.
    pub(crate) fn apply(&mut self, event: ClientEvent, session: &Session, rng: &mut Rng, now: Duration) {
        match event {
            ClientEvent::Attached(attached) => {
                let epoch = session.epoch(&attached.epoch);
                assert_eq!(attached.you.write, !self.observe);
                assert!(epoch.had_size(attached.offset, attached.size), "the terminal had this size at this offset");
                self.present.clear();
                if attached.verdict == Verdict::Exact {
                    self.exacts += 1;
                    assert_eq!(self.epoch.as_ref(), Some(&attached.epoch), "an exact resume is in the same epoch");
                    let terminal = self.terminal.as_mut().expect("an exact resume needs a complete terminal");
                    assert_eq!(terminal.offset, attached.offset, "an exact resume continues where the viewer is");
                    self.needs_repaint |= terminal.size.cols() != attached.size.cols();
                    terminal.size = attached.size;
                }
                self.epoch = Some(attached.epoch);
            }
            ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, .. } => {
                self.check_snapshot(reason, scope, missed, offset);
                assert!(self.epoch_record(session).had_size(offset, size), "the terminal had this size at this offset");
                self.incoming = Some((Vec::new(), offset, size));
                self.terminal = None;
            }
            ClientEvent::SnapshotPart(bytes) => self.incoming.as_mut().unwrap().0.extend_from_slice(&bytes),
            ClientEvent::SnapshotEnd { offset } => {
                let (bytes, at, size) = self.incoming.take().unwrap();
                let terminal = Terminal::from_snapshot(&bytes);
                assert_eq!((at, terminal.offset), (offset, offset), "a snapshot has the announced offset");
                let state = self.epoch_record(session).state_at(offset);
                assert_eq!(terminal.hash, state, "a snapshot is the state at its offset");
                assert_eq!(terminal.size, size);
                self.terminal = Some(terminal);
                self.needs_repaint = false;
                self.render(offset, rng, now);
            }
            ClientEvent::Output { offset, bytes } => {
                let epoch = session.epoch(self.epoch.as_ref().unwrap());
                let terminal = self.terminal.as_mut().expect("output needs a complete terminal");
                assert_eq!(terminal.offset, offset, "output arrives in order and once");
                let end = offset + bytes.len() as u64;
                assert_eq!(session.log[offset as usize..end as usize], bytes, "output arrives as printed");
                terminal.print(&bytes);
                assert_eq!(
                    terminal.hash,
                    epoch.state_at(end),
                    "the terminal has the session's state, so the same size at each byte"
                );
                self.render(end, rng, now);
            }
            ClientEvent::Resize(size) => {
                let epoch = session.epoch(self.epoch.as_ref().unwrap());
                let terminal = self.terminal.as_mut().expect("a resize needs a complete terminal");
                assert!(epoch.had_size(terminal.offset, size), "a resize arrives at its offset");
                self.needs_repaint |= terminal.size.cols() != size.cols();
                terminal.size = size;
            }
            ClientEvent::Exit { status, offset } => {
                assert_eq!(Some((status, offset)), self.epoch_record(session).exit, "the exit is the session's");
                assert_eq!(self.terminal.unwrap().offset, offset, "the exit arrives after the last byte");
                self.exited = true;
                self.reconnector.handle_ended();
            }
            ClientEvent::Unsent(unsent) => {
                self.handle_unsent(unsent);
                if rng.one_in(2) {
                    self.decide(rng, now);
                }
            }
            ClientEvent::Message(ServerMessage::Title { title }) => self.title = Some(title),
            ClientEvent::Message(ServerMessage::Presence { clients }) => self.present = clients,
            ClientEvent::Message(ServerMessage::Error { code, message, .. }) => {
                panic!("a well-behaved viewer gets no errors: {code} {message}")
            }
            ClientEvent::Message(_)
            | ClientEvent::CommandUnsent { .. }
            | ClientEvent::Closing { .. }
            | ClientEvent::StateChanged(_) => {}
        }
    }

    /// A report must include everything that was reported before, and something new.
    fn handle_unsent(&mut self, unsent: Unsent) {
        let old = self.undecided.bytes.len();
        let complete = unsent.bytes.len() > old && unsent.bytes.starts_with(&self.undecided.bytes);
        assert!(complete, "each report includes all unsent bytes");
        let doubtful = unsent.doubtful - self.undecided.doubtful;
        self.input_check.handle_unsent(&Unsent { bytes: unsent.bytes.slice(old..), doubtful });
        self.grown += u32::from(old > 0);
        self.undecided = unsent;
    }

    /// The user sends or discards the reported unsent bytes, if there are any.
    pub(crate) fn decide(&mut self, rng: &mut Rng, now: Duration) {
        let unsent = std::mem::take(&mut self.undecided);
        if unsent.doubtful == 0 && !self.has_ended() && rng.one_in(2) {
            self.client.send_unsent(now);
            self.resent += u32::from(!unsent.bytes.is_empty());
            self.input_check.expect(&unsent.bytes);
        } else {
            self.client.discard_unsent();
        }
    }

    fn epoch_record<'a>(&self, session: &'a Session) -> &'a EpochRecord {
        session.epoch(self.epoch.as_ref().unwrap())
    }

    fn check_snapshot(&mut self, reason: Reason, scope: Scope, missed: Option<Missed>, offset: u64) {
        let position = self.terminal.map(|terminal| terminal.offset);
        match reason {
            Reason::Fresh | Reason::Epoch | Reason::Ahead => assert_eq!((scope, missed), (Scope::All, None)),
            Reason::Lagging | Reason::Trimmed => {
                let from = position.expect("a skip starts at a position");
                assert!(from <= offset, "a snapshot never goes back");
                assert_eq!(
                    missed,
                    (from < offset).then_some(Missed { from, to: offset }),
                    "`missed` is the skipped output"
                );
                assert!(
                    reason == Reason::Trimmed || self.lag == Lag::Skip,
                    "a viewer that waits is not skipped for lagging"
                );
                self.skips += 1;
            }
            Reason::Resize | Reason::Repaint => {
                assert_eq!((position, missed, scope), (Some(offset), None, Scope::Screen), "a repaint skips nothing");
            }
            Reason::Unknown => panic!("the server sent a reason that it does not have"),
        }
    }

    fn render(&mut self, offset: u64, rng: &mut Rng, now: Duration) {
        let done = self.rendering.back().map_or(now, |(at, _)| *at).max(now).max(self.frozen_until);
        let takes = if self.slow { rng.between(0, 50) } else { 0 };
        self.rendering.push_back((done + Duration::from_millis(takes), offset));
    }

    pub(crate) fn next_at(&self, now: Duration) -> Option<Duration> {
        let unfrozen = Some(self.frozen_until).filter(|at| *at > now);
        let rendered = self.rendering.front().map(|(at, _)| (*at).max(self.frozen_until));
        [unfrozen, rendered, self.client.poll_timeout(), self.reconnector.poll_timeout()].into_iter().flatten().min()
    }

    /// Reports what the terminal has rendered. Returns whether there was anything.
    pub(crate) fn run_terminal(&mut self, now: Duration) -> bool {
        let mut busy = false;
        while let Some((_, offset)) = self.rendering.pop_front_if(|(at, _)| *at <= now) {
            self.client.handle_rendered(offset);
            busy = true;
        }
        busy
    }

    /// Whether the viewer has polled every event.
    pub(crate) fn is_up_to_date(&self, now: Duration) -> bool {
        !self.behind && self.frozen_until <= now
    }

    pub(crate) fn type_keys(&mut self, n: u64, now: Duration) {
        // An unpolled event may be a report of unsent keys; then the program would read keys typed now before those.
        if !self.is_up_to_date(now) {
            return;
        }
        let keys = self.input_check.keys(n);
        let room = self.client.input_room();
        match self.client.handle_input(&keys, now) {
            Ok(()) => {
                assert!(!self.observe);
                self.input_check.handle_accepted(&keys);
            }
            Err(SubmitError::Full) => {
                assert!(room < keys.len(), "input is refused only if it does not fit");
                self.refused += 1;
            }
            Err(SubmitError::ReadOnly | SubmitError::Ended) => assert!(self.observe || self.has_ended()),
        }
    }

    /// The user detaches.
    pub(crate) fn leave(&mut self, now: Duration) {
        self.left = true;
        self.reconnector.handle_ended();
        self.client.handle_ended(now);
        while let Some(event) = self.client.poll_event() {
            if let ClientEvent::Unsent(unsent) = event {
                self.handle_unsent(unsent);
            }
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.client.state() == ClientState::Ended
    }
}

pub(crate) fn random_size(rng: &mut Rng) -> Size {
    Size::new([80, 80, 100, 132][rng.below(4) as usize], [24, 50][rng.below(2) as usize]).unwrap()
}
