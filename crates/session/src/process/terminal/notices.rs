//! What a program reports about itself (title, directory, notifications, links), at a rate that people can bear.

use std::time::{Duration, Instant};

use bowline_host::events::Event;
use bowline_host::summary::call_text;
use bowline_proto::message::ServerMessage;
use bowline_proto::session::CallKind;

use crate::screen::ScreenEvent;

/// Title, directory and bell are recorded at most this often; viewers hear of each change.
const RECORD_EVERY: Duration = Duration::from_secs(1);
/// Notifications and bells in one second; the rest are counted, and viewers get the count.
const MAX_CALLS: u32 = 20;
/// Links in one second. Viewers see the text of the rest all the same, so they are not counted.
const MAX_LINKS: u32 = 100;
/// A bell this soon after a notification belongs to it.
const SAME_CALL: Duration = Duration::from_secs(1);

/// Turns what the terminal reports into messages and records.
#[derive(Debug)]
pub(super) struct Notices {
    title: Option<String>,
    cwd: Option<String>,
    bell: bool,
    recorded: Option<Instant>,
    notified: Option<Instant>,
    calls: Second,
    links: Second,
    left_out: u32,
}

/// What follows from one report.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Notice {
    /// For viewers.
    pub(super) message: Option<ServerMessage>,
    /// To be recorded at once.
    pub(super) record: Option<Event>,
    /// The program calls for its owner.
    pub(super) call: Option<(CallKind, String)>,
}

impl From<ServerMessage> for Notice {
    fn from(message: ServerMessage) -> Notice {
        Notice { message: Some(message), ..Notice::default() }
    }
}

/// How much happened in the current second.
#[derive(Debug)]
struct Second {
    began: Instant,
    count: u32,
}

impl Second {
    /// Counts one more; whether it is within `max`.
    fn admit(&mut self, max: u32, now: Instant) -> bool {
        if now >= self.began + Duration::from_secs(1) {
            *self = Second { began: now, count: 0 };
        }
        self.count += 1;
        self.count <= max
    }
}

impl Notices {
    pub(super) fn new(now: Instant) -> Notices {
        let second = || Second { began: now, count: 0 };
        Notices {
            title: None,
            cwd: None,
            bell: false,
            recorded: None,
            notified: None,
            calls: second(),
            links: second(),
            left_out: 0,
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
                self.bell = false; // this is the later call
                self.notified = Some(now);
                Notice {
                    record: Some(Event::Notify { title: title.clone(), body: body.clone() }),
                    call: Some((CallKind::Notify, call_text(&title, &body))),
                    message: Some(ServerMessage::Notify { title, body }),
                }
            }
            ScreenEvent::Bell if self.admit_call(now) => {
                // Programs ring beside a notification, and the words say more.
                if self.notified.is_some_and(|at| now < at + SAME_CALL) {
                    return ServerMessage::Bell.into();
                }
                self.bell = true;
                Notice { call: Some((CallKind::Bell, String::new())), ..ServerMessage::Bell.into() }
            }
            // A login page that waits for the user is a call; any other link is only a convenience.
            ScreenEvent::Url { url, open: true } if self.admit_call(now) => {
                ServerMessage::Url { url, open: true }.into()
            }
            ScreenEvent::Url { url, open: false } if self.links.admit(MAX_LINKS, now) => {
                ServerMessage::Url { url, open: false }.into()
            }
            ScreenEvent::Notify { .. } | ScreenEvent::Url { .. } | ScreenEvent::Bell => Notice::default(),
        }
    }

    /// Title, directory and bell that are due to be recorded; all of them when `last`.
    pub(super) fn due(&mut self, now: Instant, last: bool) -> Vec<Event> {
        if !last && self.record_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.recorded = Some(now);
        let title = self.title.take().map(|title| Event::Title { title });
        let cwd = self.cwd.take().map(|cwd| Event::Cwd { cwd });
        let bell = std::mem::take(&mut self.bell).then_some(Event::Bell);
        title.into_iter().chain(cwd).chain(bell).collect()
    }

    /// How many calls were left out in the second that has passed, for viewers.
    pub(super) fn left_out(&mut self, now: Instant) -> Option<ServerMessage> {
        if self.left_out == 0 || now < self.calls.began + Duration::from_secs(1) {
            return None;
        }
        let body = format!("{} more notifications and bells came too fast to show", std::mem::take(&mut self.left_out));
        Some(ServerMessage::Notify { title: "bowline".into(), body })
    }

    /// When [`Notices::due`] or [`Notices::left_out`] has something.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let tell = (self.left_out > 0).then(|| self.calls.began + Duration::from_secs(1));
        self.record_at().into_iter().chain(tell).min()
    }

    fn record_at(&self) -> Option<Instant> {
        let waits = self.title.is_some() || self.cwd.is_some() || self.bell;
        waits.then(|| self.recorded.map_or(self.calls.began, |at| at + RECORD_EVERY))
    }

    fn admit_call(&mut self, now: Instant) -> bool {
        // What was left out is told before the next second begins.
        let admitted = if self.left_out > 0 { false } else { self.calls.admit(MAX_CALLS, now) };
        self.left_out += u32::from(!admitted);
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
        assert_eq!(notices.due(start, false), [Event::Bell], "one record for all of them");
        assert_eq!(notices.left_out(start), None);
        let later = start + Duration::from_secs(1);
        assert_eq!(notices.poll_timeout(), Some(later));
        let Some(ServerMessage::Notify { body, .. }) = notices.left_out(later) else { panic!("nothing told") };
        assert!(body.starts_with("980 more"), "{body}");
        assert!(notices.handle(ScreenEvent::Bell, later).message.is_some());
    }

    #[test]
    fn titles_are_recorded_once_a_second_and_the_last_one_wins() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        notices.handle(ScreenEvent::Title("a".into()), start);
        assert_eq!(notices.due(start, false), [Event::Title { title: "a".into() }]);
        for title in ["b", "c"] {
            notices.handle(ScreenEvent::Title(title.into()), start);
        }
        assert_eq!(notices.due(start, false), []);
        assert_eq!(notices.due(start + RECORD_EVERY, false), [Event::Title { title: "c".into() }]);
    }

    /// npm and git print links all day: that used to raise "N more notifications, links and bells came too fast".
    #[test]
    fn links_are_not_notifications() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        let link = |n: usize| ScreenEvent::Url { url: format!("https://example.org/{n}"), open: false };
        let sent = (0..1000).filter(|n| notices.handle(link(*n), start).message.is_some()).count();
        assert_eq!(sent, MAX_LINKS as usize);
        assert_eq!(notices.poll_timeout(), None, "nothing to complain about");
        assert_eq!(notices.left_out(start + Duration::from_secs(2)), None);
        assert!(notices.handle(ScreenEvent::Bell, start).message.is_some(), "and they take no call's place");
    }

    /// A bell and a notification in one write: the bell used to replace the words.
    #[test]
    fn a_bell_beside_a_notification_does_not_hide_its_words() {
        let start = Instant::now();
        let mut notices = Notices::new(start);
        let notify = || ScreenEvent::Notify { title: String::new(), body: "done".into() };
        assert_eq!(notices.handle(notify(), start).call, Some((CallKind::Notify, "done".into())));
        let bell = notices.handle(ScreenEvent::Bell, start);
        assert_eq!(bell, ServerMessage::Bell.into(), "viewers hear it, and the call stays");
        assert_eq!(notices.due(start, true), [], "nor is it recorded over the words");
        let later = notices.handle(ScreenEvent::Bell, start + SAME_CALL);
        assert_eq!(later.call, Some((CallKind::Bell, String::new())), "a later one is a call of its own");
    }
}
