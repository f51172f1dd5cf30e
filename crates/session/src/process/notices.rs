//! What a program tells about itself (title, directory, notifications, links), at a rate that people can bear.

use std::time::{Duration, Instant};

use bowline_proto::message::ServerMessage;

use crate::screen::ScreenEvent;
use bowline_host::events::Event;

/// Title, directory and bell are recorded at most this often; viewers hear of each change.
const RECORD_EVERY: Duration = Duration::from_secs(1);
/// Notifications, links and bells in one second; the rest are counted, and the count is told.
const MAX_A_SECOND: u32 = 20;

/// Turns what the terminal was told into messages and records.
#[derive(Debug)]
pub(crate) struct Notices {
    title: Option<String>,
    cwd: Option<String>,
    bell: bool,
    recorded: Option<Instant>,
    second: Instant,
    in_second: u32,
    left_out: u32,
}

impl Notices {
    pub(crate) fn new(now: Instant) -> Notices {
        Notices { title: None, cwd: None, bell: false, recorded: None, second: now, in_second: 0, left_out: 0 }
    }

    /// The message for viewers, and what to record at once.
    pub(crate) fn handle(&mut self, event: ScreenEvent, now: Instant) -> (Option<ServerMessage>, Option<Event>) {
        match event {
            ScreenEvent::Title(title) => {
                self.title = Some(title.clone());
                (Some(ServerMessage::Title { title }), None)
            }
            ScreenEvent::Cwd(cwd) => {
                self.cwd = Some(cwd.clone());
                (Some(ServerMessage::Cwd { cwd }), None)
            }
            ScreenEvent::Notify { title, body } if self.admit(now) => {
                self.bell = false; // this is the later call
                let record = Event::Notify { title: title.clone(), body: body.clone() };
                (Some(ServerMessage::Notify { title, body }), Some(record))
            }
            ScreenEvent::Url { url, open } if self.admit(now) => (Some(ServerMessage::Url { url, open }), None),
            ScreenEvent::Bell if self.admit(now) => {
                self.bell = true;
                (Some(ServerMessage::Bell), None)
            }
            ScreenEvent::Notify { .. } | ScreenEvent::Url { .. } | ScreenEvent::Bell => (None, None),
        }
    }

    /// Title, directory and bell that are due to be recorded; all of them when `last`.
    pub(crate) fn due(&mut self, now: Instant, last: bool) -> Vec<Event> {
        if !last && self.poll_timeout().is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.recorded = Some(now);
        let title = self.title.take().map(|title| Event::Title { title });
        let cwd = self.cwd.take().map(|cwd| Event::Cwd { cwd });
        let bell = std::mem::take(&mut self.bell).then_some(Event::Bell);
        title.into_iter().chain(cwd).chain(bell).collect()
    }

    /// What was left out in the second that has passed.
    pub(crate) fn left_out(&mut self, now: Instant) -> Option<ServerMessage> {
        if self.left_out == 0 || now < self.second + Duration::from_secs(1) {
            return None;
        }
        let body = format!("{} more notifications, links and bells came too fast to show", self.left_out);
        self.left_out = 0;
        Some(ServerMessage::Notify { title: "bowline".into(), body })
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let record = (self.title.is_some() || self.cwd.is_some() || self.bell)
            .then(|| self.recorded.map_or(self.second, |at| at + RECORD_EVERY));
        let tell = (self.left_out > 0).then(|| self.second + Duration::from_secs(1));
        record.into_iter().chain(tell).min()
    }

    fn admit(&mut self, now: Instant) -> bool {
        if self.left_out == 0 && now >= self.second + Duration::from_secs(1) {
            self.second = now;
            self.in_second = 0;
        }
        self.in_second += 1;
        let admitted = self.in_second <= MAX_A_SECOND;
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
        let sent = (0..1000).filter(|_| notices.handle(ScreenEvent::Bell, start).0.is_some()).count();
        assert_eq!(sent, MAX_A_SECOND as usize);
        assert_eq!(notices.due(start, false), [Event::Bell], "one record for all of them");
        assert_eq!(notices.left_out(start), None);
        let later = start + Duration::from_secs(1);
        assert_eq!(notices.poll_timeout(), Some(later));
        let Some(ServerMessage::Notify { body, .. }) = notices.left_out(later) else { panic!("nothing told") };
        assert!(body.starts_with("980 more"), "{body}");
        assert!(notices.handle(ScreenEvent::Bell, later).0.is_some());
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
}
