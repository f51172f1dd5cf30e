//! Follows a conversation: its events, and its latest page again once the end of the journal was lost.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use bowline_proto::api::EventPage;
use bowline_proto::message::Cursor;
use rustix::event::PollFlags;

use super::attach::{ConversationSource, SourceError};
use super::page_load::PageLoad;
use crate::follow::{FollowEvent, Follower};

/// When the page is read again after the first failure; later ones double it.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest time between two tries.
const MAX_RETRY: Duration = Duration::from_secs(30);
/// A try that takes longer than this is given up when the user wants to try now.
const REPLACE_AFTER: Duration = Duration::from_secs(5);

/// What was followed.
#[derive(Debug)]
pub(super) enum Followed {
    /// Never a cut: a page follows it.
    Event(FollowEvent),
    /// The end of the journal was lost. A page is read, and comes later.
    Cut,
    /// What was shown since the cut is void, and this is shown instead.
    Page(Box<EventPage>),
    /// The page that is needed cannot be read now, with this reason. It is tried again.
    Unreadable(String),
    /// The page that is needed can never be read. Nothing follows.
    Failed(SourceError),
}

/// One conversation, across cuts of its journal.
pub(super) struct Following<'a> {
    source: &'a mut dyn ConversationSource,
    follower: Option<Follower>,
    /// Set while the latest page is needed.
    reload: Option<Reload>,
}

/// The tries to read the latest page.
#[derive(Debug)]
struct Reload {
    step: Step,
    /// How long to wait if the next try, or the one that is under way, fails.
    wait: Duration,
}

#[derive(Debug)]
enum Step {
    /// The page is read at this time.
    At(Duration),
    Running {
        load: PageLoad,
        since: Duration,
    },
}

impl<'a> Following<'a> {
    /// Reads the latest page, and follows what comes after it. Blocks until the page is read.
    pub(super) fn start(source: &'a mut dyn ConversationSource) -> Result<(Following<'a>, EventPage), SourceError> {
        let mut following = Following { source, follower: None, reload: None };
        let page = following.source.latest()()?;
        following.follow(&page)?;
        Ok((following, page))
    }

    fn follow(&mut self, page: &EventPage) -> Result<(), SourceError> {
        self.follower = Some(self.source.follow(Cursor { epoch: page.epoch.clone(), offset: page.next })?);
        Ok(())
    }

    /// What comes next. `None` if there is nothing yet.
    pub(super) fn poll(&mut self, now: Duration) -> Option<Followed> {
        let Some(reload) = &mut self.reload else {
            return Some(match self.follower.as_mut()?.poll_event()? {
                FollowEvent::Cut { .. } => self.handle_cut(now),
                event => Followed::Event(event),
            });
        };
        let read = match &reload.step {
            Step::At(at) if *at > now => return None,
            Step::At(_) => match PageLoad::start(self.source.latest()) {
                Ok(load) => {
                    reload.step = Step::Running { load, since: now };
                    return None;
                }
                Err(error) => Err(error.into()),
            },
            Step::Running { load, .. } => load.poll()?,
        };
        let wait = reload.wait;
        match read.and_then(|page| self.follow(&page).map(|()| page)) {
            Ok(page) => {
                self.reload = None;
                Some(Followed::Page(Box::new(page)))
            }
            Err(SourceError::Temporary(why)) => {
                self.reload = Some(Reload { step: Step::At(now + wait), wait: (wait * 2).min(MAX_RETRY) });
                Some(Followed::Unreadable(why.to_string()))
            }
            Err(error @ SourceError::Permanent(_)) => {
                self.reload = None;
                Some(Followed::Failed(error))
            }
        }
    }

    fn handle_cut(&mut self, now: Duration) -> Followed {
        self.follower = None;
        self.reload = Some(Reload { step: Step::At(now), wait: FIRST_RETRY });
        Followed::Cut
    }

    /// Tries to connect, or to read the page, now.
    pub(super) fn retry(&mut self, now: Duration) {
        if let Some(reload) = &mut self.reload {
            match reload.step {
                Step::Running { since, .. } if now < since + REPLACE_AFTER => {}
                Step::Running { .. } | Step::At(_) => *reload = Reload { step: Step::At(now), wait: FIRST_RETRY },
            }
        }
        if let Some(follower) = &mut self.follower {
            follower.retry();
        }
    }

    /// The descriptor to poll, and what for, while there is a connection or the page is being read.
    pub(super) fn fd(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        if let Some(Reload { step: Step::Running { load, .. }, .. }) = &self.reload {
            return Some((load.fd(), PollFlags::IN));
        }
        let follower = self.follower.as_ref()?;
        Some((follower.fd()?, follower.poll_flags()))
    }

    /// How long to wait at most before [`handle_ready`](Following::handle_ready) and [`poll`](Following::poll) are called.
    pub(super) fn poll_timeout(&self, now: Duration) -> Option<Duration> {
        let reload = self.reload.as_ref().and_then(|reload| match reload.step {
            Step::At(at) => Some(at.saturating_sub(now)),
            Step::Running { .. } => None,
        });
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
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::sync::{Arc, Mutex};

    use bowline_proto::backoff::Backoff;
    use bowline_proto::close::ConnectionEnd;
    use rustix::event::{PollFd, poll};
    use serde_json::{Value, json};

    use super::super::attach::PageReader;
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
        failures: Arc<AtomicUsize>,
        /// A request gets no answer while this is locked.
        stalled: Arc<Mutex<()>>,
        is_forgotten: Arc<AtomicBool>,
    }

    impl ConversationSource for Gateway {
        fn latest(&self) -> PageReader {
            let (failures, stalled) = (Arc::clone(&self.failures), Arc::clone(&self.stalled));
            let is_forgotten = Arc::clone(&self.is_forgotten);
            Box::new(move || {
                drop(stalled.lock());
                if failures.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
                    return Err(SourceError::Temporary("no answer".into()));
                }
                if is_forgotten.load(SeqCst) {
                    return Err(SourceError::Permanent("no such session".into()));
                }
                let page = json!({"epoch": "01234567", "start": 0, "next": 7, "events": [], "more": false});
                Ok(serde_json::from_value(page).unwrap())
            })
        }

        fn follow(&mut self, cursor: Cursor) -> Result<Follower, SourceError> {
            Ok(Follower::new(Box::new(Nowhere), Some(cursor), Backoff::NATIVE)?)
        }
    }

    impl Following<'_> {
        /// Starts to read the page, and returns what comes of it.
        fn read_page(&mut self, now: Duration) -> Option<Followed> {
            assert!(self.poll(now).is_none(), "reading takes a while");
            let (fd, flags) = self.fd().unwrap();
            poll(&mut [PollFd::from_borrowed_fd(fd, flags)], None).unwrap();
            self.poll(now)
        }
    }

    #[test]
    fn r40_a_page_that_cannot_be_read_after_a_cut_is_read_later() {
        let mut gateway = Gateway::default();
        let failures = Arc::clone(&gateway.failures);
        let (mut following, page) = Following::start(&mut gateway).unwrap();
        assert_eq!(page.next, 7);
        failures.store(2, SeqCst);
        let second = Duration::from_secs(1);
        following.handle_cut(second);
        assert!(matches!(following.read_page(second), Some(Followed::Unreadable(why)) if why == "no answer"));
        assert!(following.poll(second).is_none() && following.fd().is_none());
        assert_eq!(following.poll_timeout(second), Some(FIRST_RETRY));
        assert!(
            matches!(following.read_page(second + FIRST_RETRY), Some(Followed::Unreadable(why)) if why == "no answer")
        );
        assert_eq!(following.poll_timeout(second + FIRST_RETRY), Some(FIRST_RETRY * 2));
        following.retry(second + FIRST_RETRY);
        assert!(
            matches!(following.read_page(second + FIRST_RETRY), Some(Followed::Page(_))),
            "the user did not want to wait"
        );
        assert!(following.reload.is_none() && following.follower.is_some());
    }

    #[test]
    fn r40_a_page_that_can_never_be_read_ends_the_view() {
        let mut gateway = Gateway::default();
        let is_forgotten = Arc::clone(&gateway.is_forgotten);
        let (mut following, _) = Following::start(&mut gateway).unwrap();
        following.handle_cut(Duration::ZERO);
        is_forgotten.store(true, SeqCst);
        let failed = following.read_page(Duration::ZERO);
        assert!(
            matches!(&failed, Some(Followed::Failed(error)) if error.to_string() == "no such session"),
            "{failed:?}"
        );
        assert!(following.poll(MAX_RETRY).is_none() && following.poll_timeout(MAX_RETRY).is_none());
    }

    /// A gateway that accepted the request and never answered froze the view, with the terminal in raw mode.
    #[test]
    fn r40_a_page_that_takes_long_blocks_nothing_and_can_be_requested_again() {
        let mut gateway = Gateway::default();
        let (stalled, failures) = (Arc::clone(&gateway.stalled), Arc::clone(&gateway.failures));
        let (mut following, _) = Following::start(&mut gateway).unwrap();
        let stall = stalled.lock().unwrap();
        following.handle_cut(Duration::ZERO);
        let is_running = |following: &Following<'_>, since: Duration| matches!(&following.reload, Some(Reload { step: Step::Running { since: at, .. }, .. }) if *at == since);
        for millis in [0, 10, 20] {
            assert!(following.poll(Duration::from_millis(millis)).is_none());
        }
        assert!(is_running(&following, Duration::ZERO) && following.poll_timeout(Duration::ZERO).is_none());
        following.retry(REPLACE_AFTER / 2);
        assert!(is_running(&following, Duration::ZERO), "it may still be answered");
        following.retry(REPLACE_AFTER);
        assert!(following.poll(REPLACE_AFTER).is_none());
        assert!(is_running(&following, REPLACE_AFTER), "another try");
        // Both tries fail. The one that was given up has no effect.
        failures.store(2, SeqCst);
        drop(stall);
        let failed_at = REPLACE_AFTER * 10;
        let (fd, flags) = following.fd().unwrap();
        poll(&mut [PollFd::from_borrowed_fd(fd, flags)], None).unwrap();
        assert!(matches!(following.poll(failed_at), Some(Followed::Unreadable(why)) if why == "no answer"));
        assert!(following.poll(failed_at).is_none());
        assert_eq!(following.poll_timeout(failed_at), Some(FIRST_RETRY), "counted from the failure");
    }
}
