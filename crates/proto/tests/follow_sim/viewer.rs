//! A simulated follower: its end, its reconnector, and the events that it has, which must be those of the reference.

use std::time::Duration;

use bowline_proto::backoff::Backoff;
use bowline_proto::close;
use bowline_proto::follow::{Client, ClientEvent, ClientState, FollowerConfig};
use bowline_proto::ids::ClientId;
use bowline_proto::link::Reconnector;
use bowline_proto::message::{Cursor, Reason, Verdict};

use super::journal::{Journal, marks};
use super::rng::Rng;
use super::world::Tally;

const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(2), tries: None };

pub(crate) struct Viewer {
    pub(crate) client: Client,
    pub(crate) reconnector: Reconnector,
    /// The marks of all events before the cursor. Those before a `snapshot` were read by HTTP.
    have: Vec<u64>,
    /// Polls no events before this time.
    pub(crate) frozen_until: Duration,
    /// Has left events unpolled.
    pub(crate) behind: bool,
    pub(crate) exited: bool,
    pub(crate) tally: Tally,
}

impl Viewer {
    pub(crate) fn new(index: usize, journal: &Journal, rng: &mut Rng) -> Viewer {
        let mut config = FollowerConfig::new(ClientId::from_random([index as u8; 16]));
        if rng.one_in(2) {
            config.cursor = Some(Cursor { epoch: journal.epoch().clone(), offset: 0 });
        }
        Viewer {
            client: Client::new(config),
            reconnector: Reconnector::new(BACKOFF),
            have: Vec::new(),
            frozen_until: Duration::ZERO,
            behind: false,
            exited: false,
            tally: Tally::default(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.client.state() == ClientState::Ended
    }

    /// When something is due.
    pub(crate) fn next_at(&self, now: Duration) -> Option<Duration> {
        let thaw = (self.behind && self.frozen_until > now).then_some(self.frozen_until);
        [self.client.poll_timeout(), self.reconnector.poll_timeout(), thaw].into_iter().flatten().min()
    }

    /// Applies an event that was polled, and compares the result with the reference.
    pub(crate) fn apply(&mut self, event: &ClientEvent, journal: &Journal) {
        assert!(!self.exited, "nothing follows an exit, but {event:?} did");
        match event {
            ClientEvent::Attached(attached) => {
                let history = journal.history(&attached.epoch, attached.offset);
                assert_eq!(attached.session.epoch, attached.epoch);
                assert!(attached.session.offset >= attached.offset);
                if attached.verdict == Verdict::Exact {
                    self.tally.exacts += 1;
                    assert!(self.have == history, "an exact resume continues what the follower has");
                    assert_eq!(attached.reason, None);
                } else {
                    let count = match attached.reason.unwrap() {
                        Reason::Fresh => &mut self.tally.fresh,
                        Reason::Epoch => &mut self.tally.unknown_epochs,
                        Reason::Ahead => &mut self.tally.ahead,
                        other => panic!("{other:?}"),
                    };
                    *count += 1;
                    assert_eq!(attached.session.offset, attached.offset, "the description is true at the offset");
                }
                self.have = history;
            }
            ClientEvent::Event(record) => {
                let marks = marks(&record.event);
                assert_eq!(record.first(), self.have.len() as u64, "each event once and in order");
                assert_eq!(record.seq + 1 - record.first(), marks.len() as u64);
                self.tally.events += 1;
                self.tally.merged += u64::from(marks.len() > 1);
                self.have.extend(marks);
                let cursor = self.client.cursor().unwrap();
                assert_eq!(cursor.offset, self.have.len() as u64);
                let history = journal.history(&cursor.epoch, cursor.offset);
                assert!(self.have == history, "the follower has the events of its epoch");
            }
            ClientEvent::Exit { offset, .. } => {
                assert_eq!((*offset, &self.have), (journal.end(), &journal.marks()), "an exit follows the last event");
                self.exited = true;
                self.tally.exits += 1;
            }
            ClientEvent::Closing { code, .. } => self.tally.cut += u64::from(*code == close::TRY_AGAIN_LATER),
            ClientEvent::Lost { code, reason } => {
                assert_eq!(*code, close::TIMED_OUT, "a well-behaved server breaks no rules: {reason}");
                self.tally.lost += 1;
            }
            ClientEvent::Message(message) => panic!("a well-behaved follower gets no {message:?}"),
        }
    }

    pub(crate) fn is_up_to_date(&self, journal: &Journal, exited: bool) -> bool {
        let current = self.client.cursor().is_some_and(|cursor| cursor.epoch == *journal.epoch());
        let attached = self.client.state() == ClientState::Attached;
        current && self.have == journal.marks() && self.exited == exited && (attached || exited)
    }
}
