//! Follows a conversation: its events, and its latest page again once the end of the journal was lost.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use bowline_proto::api::EventPage;
use bowline_proto::message::Cursor;
use rustix::event::PollFlags;

use super::attach::{ConversationSource, SourceError};
use crate::follow::{FollowEvent, Follower};

/// When the page is read again after the first failure; later ones double it.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest time between two tries: reading blocks, and keys must work in between.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// What was followed.
#[derive(Debug)]
pub(super) enum Followed {
    /// Never a cut: a page follows it.
    Event(FollowEvent),
    /// The end of the journal was lost. What was shown of it is void, and this is shown instead.
    Page(Box<EventPage>),
    /// The page that is needed cannot be read now. It is tried again.
    Unreadable,
}

/// One conversation, across cuts of its journal.
pub(super) struct Following<'a> {
    source: &'a mut dyn ConversationSource,
    follower: Option<Follower>,
    /// When to read the latest page, if one is needed, and how long to wait if that fails.
    reload: Option<(Duration, Duration)>,
}

impl<'a> Following<'a> {
    /// Reads the latest page, and follows what comes after it.
    pub(super) fn start(source: &'a mut dyn ConversationSource) -> Result<(Following<'a>, EventPage), SourceError> {
        let mut following = Following { source, follower: None, reload: None };
        let page = following.load()?;
        Ok((following, page))
    }

    fn load(&mut self) -> Result<EventPage, SourceError> {
        let page = self.source.latest()?;
        self.follower = Some(self.source.follow(Cursor { epoch: page.epoch.clone(), offset: page.next })?);
        Ok(page)
    }

    /// What comes next. `None` if there is nothing yet.
    pub(super) fn poll(&mut self, now: Duration) -> Option<Followed> {
        if self.reload.is_none() {
            match self.follower.as_mut()?.poll_event()? {
                FollowEvent::Cut { .. } => self.handle_cut(now),
                event => return Some(Followed::Event(event)),
            }
        }
        let (_, wait) = self.reload.filter(|(at, _)| *at <= now)?;
        match self.load() {
            Ok(page) => {
                self.reload = None;
                Some(Followed::Page(Box::new(page)))
            }
            Err(_) => {
                self.reload = Some((now + wait, (wait * 2).min(MAX_RETRY)));
                Some(Followed::Unreadable)
            }
        }
    }

    fn handle_cut(&mut self, now: Duration) {
        (self.follower, self.reload) = (None, Some((now, FIRST_RETRY)));
    }

    /// Tries to connect, or to read the page, now.
    pub(super) fn retry(&mut self, now: Duration) {
        if let Some(reload) = &mut self.reload {
            *reload = (now, FIRST_RETRY);
        }
        if let Some(follower) = &mut self.follower {
            follower.retry();
        }
    }

    /// The descriptor to poll, and what for, while there is a connection.
    pub(super) fn fd(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let follower = self.follower.as_ref()?;
        Some((follower.fd()?, follower.poll_flags()))
    }

    /// How long to wait at most before [`handle_ready`](Following::handle_ready) and [`poll`](Following::poll) are called.
    pub(super) fn poll_timeout(&self, now: Duration) -> Option<Duration> {
        let reload = self.reload.map(|(at, _)| at.saturating_sub(now));
        let follower = self.follower.as_ref().and_then(Follower::poll_timeout);
        [reload, follower].into_iter().flatten().min()
    }

    /// See [`Follower::handle_ready`].
    pub(super) fn handle_ready(&mut self) {
        self.follower.iter_mut().for_each(Follower::handle_ready);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use bowline_proto::backoff::Backoff;
    use bowline_proto::close::ConnectionEnd;
    use serde_json::{Value, json};

    use super::*;
    use crate::transport::{Dialer, Transport};

    /// A dialer that never gets a connection.
    struct Nowhere;

    impl Dialer for Nowhere {
        fn dial(&mut self, _fresh_ticket: bool) -> Result<Box<dyn Transport>, ConnectionEnd> {
            Err(ConnectionEnd::Failed)
        }

        fn request_screen(&mut self) {}

        fn take_screen(&mut self) -> Option<Option<Value>> {
            None
        }

        fn last_screen(&mut self) -> Option<Value> {
            None
        }
    }

    /// A gateway that answers, or does not.
    #[derive(Default)]
    struct Gateway {
        /// How many requests fail before one succeeds.
        failures: Rc<Cell<usize>>,
    }

    impl ConversationSource for Gateway {
        fn latest(&mut self) -> Result<EventPage, SourceError> {
            if let Some(left) = self.failures.get().checked_sub(1) {
                self.failures.set(left);
                return Err("no answer".into());
            }
            let page = json!({"epoch": "01234567", "start": 0, "next": 7, "events": [], "more": false});
            Ok(serde_json::from_value(page).unwrap())
        }

        fn follow(&mut self, cursor: Cursor) -> Result<Follower, SourceError> {
            Ok(Follower::new(Box::new(Nowhere), Some(cursor), Backoff::NATIVE)?)
        }
    }

    #[test]
    fn r40_a_page_that_cannot_be_read_after_a_cut_is_read_later() {
        let mut gateway = Gateway::default();
        let failures = Rc::clone(&gateway.failures);
        let (mut following, page) = Following::start(&mut gateway).unwrap();
        assert_eq!(page.next, 7);
        failures.set(2);
        let second = Duration::from_secs(1);
        following.handle_cut(second);
        assert!(matches!(following.poll(second), Some(Followed::Unreadable)));
        assert!(following.poll(second).is_none() && following.fd().is_none());
        assert_eq!(following.poll_timeout(second), Some(FIRST_RETRY));
        assert!(matches!(following.poll(second + FIRST_RETRY), Some(Followed::Unreadable)));
        assert_eq!(following.poll_timeout(second + FIRST_RETRY), Some(FIRST_RETRY * 2));
        following.retry(second + FIRST_RETRY);
        assert!(
            matches!(following.poll(second + FIRST_RETRY), Some(Followed::Page(_))),
            "the user did not want to wait"
        );
        assert!(following.reload.is_none() && following.follower.is_some());
    }
}
