//! Events in the output: title, working directory, notifications, URLs, the bell.

use super::limits::{EVENTS_MAX, NOTIFY_BODY_MAX, NOTIFY_TITLE_MAX};

/// An event for viewers. Its texts have no control characters and are bounded in size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenEvent {
    /// The title changed. Only the last change since the last drain is reported.
    Title(String),
    /// The working directory changed, on this host.
    Cwd(String),
    /// A notification. `title` or `body` may be empty, but not both.
    Notify { title: String, body: String },
    /// A URL, normalised, that was printed for the first time. With `open`, it is a login page that a
    /// command line tool waits for.
    Url { url: String, open: bool },
    /// The bell rang at least once since the last drain.
    Bell,
}

/// Events since the last drain.
#[derive(Debug, Default)]
pub(super) struct Events {
    title: Option<String>,
    cwd: Option<String>,
    bell: bool,
    listed: Vec<ScreenEvent>,
}

impl Events {
    pub(super) fn title(&mut self, title: &str) {
        self.title = Some(title.to_owned());
    }

    pub(super) fn cwd(&mut self, cwd: String) {
        self.cwd = Some(cwd);
    }

    pub(super) fn bell(&mut self) {
        self.bell = true;
    }

    /// Adds a URL. Returns `false` if there is no room for it.
    pub(super) fn url(&mut self, url: &str, open: bool) -> bool {
        self.list(ScreenEvent::Url { url: url.to_owned(), open })
    }

    pub(super) fn notify(&mut self, title: &str, body: &str) {
        let (title, body) = (clean(title, NOTIFY_TITLE_MAX), clean(body, NOTIFY_BODY_MAX));
        if !(title.is_empty() && body.is_empty()) {
            self.list(ScreenEvent::Notify { title, body });
        }
    }

    /// Whether there is no room for another notification or URL.
    pub(super) fn is_full(&self) -> bool {
        self.listed.len() >= EVENTS_MAX
    }

    fn list(&mut self, event: ScreenEvent) -> bool {
        let room = !self.is_full();
        if room {
            self.listed.push(event);
        }
        room
    }

    pub(super) fn take(&mut self) -> Vec<ScreenEvent> {
        let mut events: Vec<_> = self.title.take().map(ScreenEvent::Title).into_iter().collect();
        events.extend(self.cwd.take().map(ScreenEvent::Cwd));
        events.append(&mut self.listed);
        if std::mem::take(&mut self.bell) {
            events.push(ScreenEvent::Bell);
        }
        events
    }
}

/// Removes control characters and those that change the direction of text, and cuts the result to `max` bytes.
pub(super) fn clean(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for c in text.chars() {
        let turns_text =
            matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let hostile = c.is_control() || turns_text;
        if hostile {
            continue;
        }
        if out.len() + c.len_utf8() > max {
            break;
        }
        out.push(c);
    }
    out.trim().to_owned()
}
