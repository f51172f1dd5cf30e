//! A viewer under test: the client machine, its reconnector, its own terminal, and the checks on all it is shown.

use std::collections::VecDeque;
use std::time::Duration;

use bowline_proto::backoff::Backoff;
use bowline_proto::config::{RENDERED_EVERY, UNSENT_AFTER};
use bowline_proto::ids::{ClientId, Epoch};
use bowline_proto::link::{Client, ClientConfig, ClientEvent, ClientState, NotTaken, Reconnector, Unsent};
use bowline_proto::message::{Lag, Missed, Present, Reason, Scope, ServerMessage, Verdict};
use bowline_proto::size::Size;

use super::rng::Rng;
use super::session::{Life, Session};
use super::terminal::Terminal;
use super::typist::Typist;

pub(crate) struct Viewer {
    pub(crate) id: ClientId,
    pub(crate) client: Client,
    pub(crate) reconnector: Reconnector,
    pub(crate) lag: Lag,
    pub(crate) observe: bool,
    pub(crate) window: Size,
    /// Its terminal, once it has been painted whole.
    pub(crate) terminal: Option<Terminal>,
    pub(crate) epoch: Option<Epoch>,
    /// What has come of a snapshot.
    painting: Option<(Vec<u8>, Scope, u64, Size)>,
    /// Its width changed and it has not been painted since.
    pub(crate) unpainted: bool,
    /// What its emulator has still to take: an offset, and when it is done.
    rendering: VecDeque<(Duration, u64)>,
    slow: bool,
    /// Shows nothing until then.
    pub(crate) frozen: Duration,
    /// It has not shown all that came.
    pub(crate) behind: bool,
    pub(crate) typist: Typist,
    /// Reported unsent, and the user has not decided.
    undecided: Unsent,
    /// How often more came unsent before the user had decided.
    pub(crate) grown: u32,
    /// How often typed bytes did not fit into the outbox.
    pub(crate) refused: u32,
    /// How often the user sent what was unsent.
    pub(crate) resent: u32,
    pub(crate) title: Option<String>,
    pub(crate) present: Vec<Present>,
    pub(crate) exited: bool,
    pub(crate) left: bool,
    /// How often a snapshot skipped output.
    pub(crate) skips: u32,
    pub(crate) exacts: u32,
}

impl Viewer {
    pub(crate) fn new(index: usize, rng: &mut Rng) -> Viewer {
        let id = ClientId::from_random([index as u8 + 1; 16]);
        let window = random_size(rng);
        let lag = if rng.one_in(3) { Lag::Wait } else { Lag::Skip };
        let observe = rng.one_in(6);
        let config = ClientConfig {
            size: Some(window),
            lag,
            observe,
            rendered_every: rng.between(8, 400).min(RENDERED_EVERY),
            // Fewer than the values a key can have, so that keys in doubt are not taken for later ones.
            outbox: rng.between(10, 30) as usize,
            // Some hold back what they typed after a moment, so that it comes to that often.
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
            painting: None,
            unpainted: false,
            rendering: VecDeque::new(),
            slow: rng.one_in(3),
            frozen: Duration::ZERO,
            behind: false,
            typist: Typist::new(index),
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

    /// Applies an event as a real viewer would, and checks it against what really happened.
    pub(crate) fn show(&mut self, event: ClientEvent, session: &Session, rng: &mut Rng, now: Duration) {
        match event {
            ClientEvent::Attached(attached) => {
                let life = session.life(&attached.epoch);
                assert_eq!(attached.you.write, !self.observe);
                assert!(life.had_size(attached.offset, attached.size), "a size of its time");
                self.present.clear();
                if attached.verdict == Verdict::Exact {
                    self.exacts += 1;
                    assert_eq!(self.epoch.as_ref(), Some(&attached.epoch), "exact only in the same life");
                    let terminal = self.terminal.as_mut().expect("exact for a terminal that is whole");
                    assert_eq!(terminal.offset, attached.offset, "exact goes on where the viewer is");
                    self.unpainted |= terminal.size.cols() != attached.size.cols();
                    terminal.size = attached.size;
                }
                self.epoch = Some(attached.epoch);
            }
            ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, .. } => {
                self.check_snapshot(reason, scope, missed, offset);
                assert!(self.life(session).had_size(offset, size), "a snapshot's size is one of its time");
                self.painting = Some((Vec::new(), scope, offset, size));
                self.terminal = None;
            }
            ClientEvent::SnapshotPart(bytes) => self.painting.as_mut().unwrap().0.extend_from_slice(&bytes),
            ClientEvent::SnapshotEnd { offset } => {
                let (bytes, _, at, size) = self.painting.take().unwrap();
                let terminal = Terminal::painted(&bytes);
                assert_eq!((at, terminal.offset), (offset, offset), "a snapshot is of its offset");
                assert_eq!(terminal.hash, self.life(session).state_at(offset), "a snapshot is the state at its offset");
                assert_eq!(terminal.size, size);
                self.terminal = Some(terminal);
                self.unpainted = false;
                self.render(offset, rng, now);
            }
            ClientEvent::Output { offset, bytes } => {
                let life = session.life(self.epoch.as_ref().unwrap());
                let terminal = self.terminal.as_mut().expect("output follows a whole terminal");
                assert_eq!(terminal.offset, offset, "output in order, once");
                let end = offset + bytes.len() as u64;
                assert_eq!(session.log[offset as usize..end as usize], bytes, "output as it was printed");
                terminal.print(&bytes);
                assert_eq!(terminal.hash, life.state_at(end), "the same state, so the same sizes at each byte");
                self.render(end, rng, now);
            }
            ClientEvent::Resize(size) => {
                let life = session.life(self.epoch.as_ref().unwrap());
                let terminal = self.terminal.as_mut().expect("a resize follows a whole terminal");
                assert!(life.had_size(terminal.offset, size), "a resize at its place");
                self.unpainted |= terminal.size.cols() != size.cols();
                terminal.size = size;
            }
            ClientEvent::Exit { status, offset } => {
                assert_eq!(Some((status, offset)), self.life(session).exit, "the exit as it was");
                assert_eq!(self.terminal.unwrap().offset, offset, "exit comes after the last byte");
                self.exited = true;
                self.reconnector.handle_ended();
            }
            ClientEvent::Unsent(unsent) => {
                self.report(unsent);
                if rng.one_in(2) {
                    self.decide(rng, now);
                }
            }
            ClientEvent::Message(ServerMessage::Title { title }) => self.title = Some(title),
            ClientEvent::Message(ServerMessage::Presence { clients }) => self.present = clients,
            ClientEvent::Message(ServerMessage::Error { code, message, .. }) => {
                panic!("an honest viewer gets no errors: {code} {message}")
            }
            ClientEvent::Message(_)
            | ClientEvent::CommandUnsent { .. }
            | ClientEvent::Closing { .. }
            | ClientEvent::StateChanged(_) => {}
        }
    }

    /// A report has all that was reported before, and something new.
    fn report(&mut self, unsent: Unsent) {
        let known = self.undecided.bytes.len();
        assert!(unsent.bytes.len() > known && unsent.bytes.starts_with(&self.undecided.bytes), "all of it, each time");
        let doubtful = unsent.doubtful - self.undecided.doubtful;
        self.typist.unsent(&Unsent { bytes: unsent.bytes.slice(known..), doubtful });
        self.grown += u32::from(known > 0);
        self.undecided = unsent;
    }

    /// The user decides about what was shown as unsent, if anything was.
    pub(crate) fn decide(&mut self, rng: &mut Rng, now: Duration) {
        let unsent = std::mem::take(&mut self.undecided);
        if unsent.doubtful == 0 && !self.is_over() && rng.one_in(2) {
            self.client.send_unsent(now);
            self.resent += u32::from(!unsent.bytes.is_empty());
            self.typist.expect(&unsent.bytes);
        } else {
            self.client.discard_unsent();
        }
    }

    fn life<'a>(&self, session: &'a Session) -> &'a Life {
        session.life(self.epoch.as_ref().unwrap())
    }

    fn check_snapshot(&mut self, reason: Reason, scope: Scope, missed: Option<Missed>, offset: u64) {
        let here = self.terminal.map(|terminal| terminal.offset);
        match reason {
            Reason::Fresh | Reason::Epoch | Reason::Ahead => assert_eq!((scope, missed), (Scope::All, None)),
            Reason::Lagging | Reason::Trimmed => {
                let from = here.expect("skipped from somewhere");
                assert!(from <= offset, "never back");
                assert_eq!(missed, (from < offset).then_some(Missed { from, to: offset }), "missed is what is skipped");
                assert!(reason == Reason::Trimmed || self.lag == Lag::Skip, "who waits is not skipped for lagging");
                self.skips += 1;
            }
            Reason::Resize | Reason::Repaint => {
                assert_eq!((here, missed, scope), (Some(offset), None, Scope::Screen), "painted in passing");
            }
            Reason::Unknown => panic!("the server has reasons of its own time"),
        }
    }

    fn render(&mut self, offset: u64, rng: &mut Rng, now: Duration) {
        let done = self.rendering.back().map_or(now, |(at, _)| *at).max(now).max(self.frozen);
        let takes = if self.slow { rng.between(0, 50) } else { 0 };
        self.rendering.push_back((done + Duration::from_millis(takes), offset));
    }

    pub(crate) fn next_at(&self, now: Duration) -> Option<Duration> {
        let thaws = Some(self.frozen).filter(|at| *at > now);
        let rendered = self.rendering.front().map(|(at, _)| (*at).max(self.frozen));
        [thaws, rendered, self.client.poll_timeout(), self.reconnector.poll_timeout()].into_iter().flatten().min()
    }

    /// The emulator reports what it has taken.
    pub(crate) fn run_emulator(&mut self, now: Duration) -> bool {
        let mut some = false;
        while let Some((_, offset)) = self.rendering.pop_front_if(|(at, _)| *at <= now) {
            self.client.handle_rendered(offset);
            some = true;
        }
        some
    }

    /// The user has seen everything that there is to see.
    pub(crate) fn has_shown_all(&self, now: Duration) -> bool {
        !self.behind && self.frozen <= now
    }

    pub(crate) fn type_keys(&mut self, n: u64, now: Duration) {
        // What it has not shown yet may be that keys are unsent, and then keys typed now are read before those.
        if !self.has_shown_all(now) {
            return;
        }
        let keys = self.typist.keys(n);
        let room = self.client.input_room();
        match self.client.handle_input(&keys, now) {
            Ok(()) => {
                assert!(!self.observe);
                self.typist.typed(&keys);
            }
            Err(NotTaken::Full) => {
                assert!(room < keys.len(), "refused only what does not fit");
                self.refused += 1;
            }
            Err(NotTaken::ReadOnly | NotTaken::Ended) => assert!(self.observe || self.is_over()),
        }
    }

    /// The user closes it.
    pub(crate) fn leave(&mut self, now: Duration) {
        self.left = true;
        self.reconnector.handle_ended();
        self.client.handle_ended(now);
        while let Some(event) = self.client.poll_event() {
            if let ClientEvent::Unsent(unsent) = event {
                self.report(unsent);
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.client.state() == ClientState::Ended
    }
}

pub(crate) fn random_size(rng: &mut Rng) -> Size {
    Size::new([80, 80, 100, 132][rng.below(4) as usize], [24, 50][rng.below(2) as usize]).unwrap()
}
