//! Turns screen events (title, directory, bell, notifications, links) into messages and records, with rate limits.

use std::time::{Duration, Instant};

use bowline_host::events::Event;
use bowline_host::summary::call_text;
use bowline_proto::message::ServerMessage;
use bowline_proto::session::CallKind;

use crate::screen::ScreenEvent;

/// Title, directory and bell are recorded at most this often. Viewers get every change.
const RECORD_EVERY: Duration = Duration::from_secs(1);
/// The most notifications, bells and login pages in one second. The rest are counted, and viewers get the count.
const MAX_CALLS: u32 = 20;
/// The most links in one second. The rest are dropped without a count, since viewers see them in the text.
const MAX_LINKS: u32 = 100;
/// A bell this soon after a notification is part of the same call.
const SAME_CALL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Notices {
    /// A title that is not recorded yet; likewise `cwd` and `bell`.
    title: Option<String>,
    cwd: Option<String>,
    bell: bool,
    last_record: Option<Instant>,
    last_notification: Option<Instant>,
    calls: RateLimit,
    links: RateLimit,
    /// Calls over the limit whose number was not sent to viewers yet.
    suppressed: u32,
}

/// What to do about one screen event.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Notice {
    /// To send to viewers.
    pub(super) message: Option<ServerMessage>,
    /// To record at once.
    pub(super) record: Option<Event>,
    /// The program's latest call for its owner, for the session's description.
    pub(super) call: Option<(CallKind, String)>,
}

impl From<ServerMessage> for Notice {
    fn from(message: ServerMessage) -> Notice {
        Notice { message: Some(message), ..Notice::default() }
    }
}

/// Counts events in the current second.
#[derive(Debug)]
struct RateLimit {
    start: Instant,
    count: u32,
}

impl RateLimit {
    /// Counts an event. Returns whether it is within `max` per second.
    fn admit(&mut self, max: u32, now: Instant) -> bool {
        if now >= self.start + Duration::from_secs(1) {
            *self = RateLimit { start: now, count: 0 };
        }
        self.count += 1;
        self.count <= max
    }
}

impl Notices {
    pub(super) fn new(now: Instant) -> Notices {
        let limit = || RateLimit { start: now, count: 0 };
        Notices {
            title: None,
            cwd: None,
            bell: false,
            last_record: None,
            last_notification: None,
            calls: limit(),
            links: limit(),
            suppressed: 0,
        }
    }

    pub(super) fn handle(&mut self, event: ScreenEvent, now: Instant) -> Notice {
        match event {
            ScreenEvent::Title(title) => {
                self.title = Some(title.clone());
                ServerMessage::Title { title }.into()
            }
            ScreenEvent::Cwd(cwd) => {
                self.cwd = Some(cwd.clone());
                ServerMessage::Cwd { cwd }.into()
            }
            ScreenEvent::Notify { title, body } if self.admit_call(now) => {
                self.bell = false; // the notification is the later call
                self.last_notification = Some(now);
                Notice {
                    record: Some(Event::Notify { title: title.clone(), body: body.clone() }),
                    call: Some((CallKind::Notify, call_text(&title, &body))),
                    message: Some(ServerMessage::Notify { title, body }),
                }
            }
            ScreenEvent::Bell if self.admit_call(now) => {
                // Programs ring the bell along with a notification, whose text says more.
                if self.last_notification.is_some_and(|at| now < at + SAME_CALL) {
                    return ServerMessage::Bell.into();
                }
                self.bell = true;
                Notice { call: Some((CallKind::Bell, String::new())), ..ServerMessage::Bell.into() }
            }
            // A login page that a tool waits for counts as a call; any other link is only a convenience.
            ScreenEvent::Url { url, open: true } if self.admit_call(now) => {
                ServerMessage::Url { url, open: true }.into()
            }
            ScreenEvent::Url { url, open: false } if self.links.admit(MAX_LINKS, now) => {
                ServerMessage::Url { url, open: false }.into()
            }
            ScreenEvent::Notify { .. } | ScreenEvent::Url { .. } | ScreenEvent::Bell => Notice::default(),
        }
    }

    /// Takes the title, directory and bell that are to be recorded now; with `last`, even before their time.
    pub(super) fn take_records(&mut self, now: Instant, last: bool) -> Vec<Event> {
        if !last && self.record_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.last_record = Some(now);
        let title = self.title.take().map(|title| Event::Title { title });
        let cwd = self.cwd.take().map(|cwd| Event::Cwd { cwd });
        let bell = std::mem::take(&mut self.bell).then_some(Event::Bell);
        title.into_iter().chain(cwd).chain(bell).collect()
    }

    /// Once the second is over, takes the message that says how many calls were suppressed in it.
    pub(super) fn take_suppressed(&mut self, now: Instant) -> Option<ServerMessage> {
        if self.suppressed == 0 || now < self.calls.start + Duration::from_secs(1) {
            return None;
        }
        let body = format!("{} more notifications and bells were suppressed", std::mem::take(&mut self.suppressed));
        Some(ServerMessage::Notify { title: "bowline".into(), body })
    }

    /// When [`Notices::take_records`] or [`Notices::take_suppressed`] has something to return.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let report = (self.suppressed > 0).then(|| self.calls.start + Duration::from_secs(1));
        self.record_at().into_iter().chain(report).min()
    }

    fn record_at(&self) -> Option<Instant> {
        let has_records = self.title.is_some() || self.cwd.is_some() || self.bell;
        has_records.then(|| self.last_record.map_or(self.calls.start, |at| at + RECORD_EVERY))
    }

    fn admit_call(&mut self, now: Instant) -> bool {
        // Once a call was suppressed, all are until the count was sent.
        let admitted = if self.suppressed > 0 { false } else { self.calls.admit(MAX_CALLS, now) };
        self.suppressed += u32::from(!admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r52_a_flood_of_notifications_is_counted_not_sent() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        let sent = (0..1000).filter(|_| notices.handle(ScreenEvent::Bell, start).message.is_some()).count();
        assert_eq!(sent, MAX_CALLS as usize);
        assert_eq!(notices.take_records(start, false), [Event::Bell], "one record for all bells");
        assert_eq!(notices.take_suppressed(start), None);
        let later = start + Duration::from_secs(1);
        assert_eq!(notices.poll_timeout(), Some(later));
        let Some(ServerMessage::Notify { body, .. }) = notices.take_suppressed(later) else {
            panic!("no count was sent")
        };
        assert!(body.starts_with("980 more"), "{body}");
        assert!(notices.handle(ScreenEvent::Bell, later).message.is_some());
    }

    #[test]
    fn titles_are_recorded_once_a_second_and_the_last_one_wins() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        notices.handle(ScreenEvent::Title("a".into()), start);
        assert_eq!(notices.take_records(start, false), [Event::Title { title: "a".into() }]);
        for title in ["b", "c"] {
            notices.handle(ScreenEvent::Title(title.into()), start);
        }
        assert_eq!(notices.take_records(start, false), []);
        assert_eq!(notices.take_records(start + RECORD_EVERY, false), [Event::Title { title: "c".into() }]);
    }

    /// npm and git print many links. They once counted as calls, and viewers got "N more notifications,
    /// links and bells".
    #[test]
    fn links_are_not_notifications() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        let link = |n: usize| ScreenEvent::Url { url: format!("https://example.org/{n}"), open: false };
        let sent = (0..1000).filter(|n| notices.handle(link(*n), start).message.is_some()).count();
        assert_eq!(sent, MAX_LINKS as usize);
        assert_eq!(notices.poll_timeout(), None, "nothing to report");
        assert_eq!(notices.take_suppressed(start + Duration::from_secs(2)), None);
        assert!(
            notices.handle(ScreenEvent::Bell, start).message.is_some(),
            "links do not count towards the limit of calls"
        );
    }

    /// Programs write a notification and a bell together. The bell once replaced the text of the call.
    #[test]
    fn a_bell_with_a_notification_does_not_hide_its_text() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        let notify = || ScreenEvent::Notify { title: String::new(), body: "done".into() };
        assert_eq!(notices.handle(notify(), start).call, Some((CallKind::Notify, "done".into())));
        let bell = notices.handle(ScreenEvent::Bell, start);
        assert_eq!(bell, ServerMessage::Bell.into(), "viewers get the bell, and the call stays the notification");
        assert_eq!(notices.take_records(start, true), [], "the bell is not recorded over the text");
        let later = notices.handle(ScreenEvent::Bell, start + SAME_CALL);
        assert_eq!(later.call, Some((CallKind::Bell, String::new())), "a later bell is a new call");
    }
}
