//! The text of the status line on the bottom row: the connection first, then unsent input, then hints.

use std::time::Duration;

use bowline_proto::link::{Status, Unsent};
use bowline_proto::message::Permissions;
use bowline_proto::size::Size;

use crate::keys::DetachKey;

/// On a screen that scrolls, the line appears only after this long without output.
const QUIET: Duration = Duration::from_millis(300);
/// How long the first connection may take before the line says that the viewer is waiting.
const SLOW: Duration = Duration::from_millis(700);
/// How many bytes of unsent input the line shows; the rest is only counted.
const SHOWN: usize = 24;

#[derive(Debug)]
pub(crate) struct StatusLine {
    /// The detach key as shown to the user; empty if there is none.
    detach_key: String,
    status: Status,
    /// The text for `status`, if it needs one.
    connection: Option<String>,
    /// Input that waits for the user to send or discard it.
    unsent: Unsent,
    /// Typed bytes that did not fit into the link, since the user last decided about unsent input.
    dropped: usize,
    /// The text for `unsent` and `dropped`.
    unsent_line: Option<String>,
    /// `unsent_line` has been on the screen as it is now.
    unsent_shown: bool,
    /// Shown until the next key or output.
    hint: Option<String>,
    /// Whether the keys are shown, until the next key, output or change of the connection.
    help: bool,
    session: Option<Size>,
    permissions: Permissions,
    quiet_from: Option<Duration>,
    /// When the first dial began.
    since: Option<Duration>,
    /// The last reason that the server or a dial gave.
    reason: String,
    now: Duration,
}

impl StatusLine {
    pub(crate) fn new(detach_key: Option<DetachKey>) -> StatusLine {
        StatusLine {
            detach_key: detach_key.map_or_else(String::new, |detach_key| detach_key.to_string()),
            status: Status::Connecting,
            connection: None,
            unsent: Unsent::default(),
            dropped: 0,
            unsent_line: None,
            unsent_shown: false,
            hint: None,
            help: false,
            session: None,
            permissions: Permissions { write: true, size: false },
            quiet_from: None,
            since: None,
            reason: String::new(),
            now: Duration::ZERO,
        }
    }

    /// Sets the connection's status. The text is made here, once per change, so that it does not count down.
    pub(crate) fn set_status(&mut self, status: Status, now: Duration) {
        self.status = status;
        self.help = false;
        self.connection = match status {
            Status::Reconnecting { attempt, at } => {
                let seconds = at.saturating_sub(now).as_millis().div_ceil(1000);
                let when = if seconds == 0 { "now".to_owned() } else { format!("in {seconds}s") };
                Some(format!("[bowline: connection lost, retrying {when} (attempt {attempt})]"))
            }
            Status::Offline => {
                Some(format!("[bowline: gave up reconnecting; press Enter to retry{}]", self.detach_hint()))
            }
            Status::Connecting | Status::Open | Status::Ended | Status::NeedsLogin | Status::Gone(_) => None,
        };
    }

    fn detach_hint(&self) -> String {
        if self.detach_key.is_empty() { String::new() } else { format!(", {} d to detach", self.detach_key) }
    }

    /// Remembers the reason that the server or a dial gave.
    pub(crate) fn set_reason(&mut self, reason: &str) {
        reason.clone_into(&mut self.reason);
    }

    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// Output arrived: the hint is removed, and any other line waits for [`QUIET`].
    pub(crate) fn handle_output(&mut self, now: Duration) {
        self.clear_hint();
        self.quiet_from = Some(now + QUIET);
    }

    /// A key was pressed.
    pub(crate) fn clear_hint(&mut self) {
        self.hint = None;
        self.help = false;
    }

    pub(crate) fn set_session(&mut self, size: Size, permissions: Permissions) {
        self.session = Some(size);
        self.permissions = permissions;
    }

    pub(crate) fn set_permissions(&mut self, permissions: Permissions) {
        self.permissions = permissions;
    }

    /// Shows a line until the next key or output.
    pub(crate) fn show_hint(&mut self, line: &str) {
        self.hint = Some(line.to_owned());
    }

    /// Shows the keys until the next key, output or change of the connection.
    pub(crate) fn show_help(&mut self) {
        self.help = true;
    }

    fn help_line(&self) -> String {
        let (key, r) = (&self.detach_key, if self.connection.is_some() { "retry now" } else { "redraw" });
        format!("[bowline: {key} then: d detach, s resize, r {r}, {key} send {key}]")
    }

    /// Sets all of the input that waits for the user's decision.
    pub(crate) fn set_unsent(&mut self, unsent: Unsent) {
        self.unsent = unsent;
        self.update_unsent_line();
    }

    /// Counts typed bytes that did not fit into the link.
    pub(crate) fn add_dropped(&mut self, bytes: usize) {
        self.dropped += bytes;
        self.update_unsent_line();
    }

    /// The user sent or discarded all unsent input.
    pub(crate) fn clear_unsent(&mut self) {
        (self.unsent, self.dropped) = (Unsent::default(), 0);
        self.update_unsent_line();
    }

    fn update_unsent_line(&mut self) {
        let (bytes, dropped, detach_key) = (&self.unsent.bytes, self.dropped, &self.detach_key);
        let (hide, decide) = match detach_key.is_empty() {
            true => ("the next key hides this".to_owned(), "the next key discards it".to_owned()),
            false => (format!("{detach_key} n to hide"), format!("{detach_key} y to send, {detach_key} n to discard")),
        };
        let line = match (bytes.len(), dropped) {
            (0, 0) => None,
            (0, _) => Some(format!("[bowline: input buffer full, {dropped} bytes dropped ({hide})]")),
            (len, _) => {
                let shown: String = String::from_utf8_lossy(&bytes[..len.min(SHOWN)]).escape_debug().collect();
                let doubt = if self.unsent.doubtful > 0 { " (part may have arrived)" } else { "" };
                let more = if len > SHOWN { format!(".. {len} bytes") } else { String::new() };
                let gone = if dropped > 0 { format!(", {dropped} more dropped") } else { String::new() };
                Some(format!("[bowline: not sent{doubt}: \"{shown}\"{more}{gone} ({decide})]"))
            }
        };
        self.unsent_shown &= self.unsent_line == line;
        self.unsent_line = line;
    }

    /// Whether the next key discards the unsent input: without a detach key there is no other way to decide, and the
    /// user has seen the line that says so.
    pub(crate) fn next_key_discards(&self) -> bool {
        self.detach_key.is_empty() && self.unsent_shown
    }

    /// The line to show now, if any.
    pub(crate) fn poll_line(&mut self, window: Size, now: Duration) -> Option<String> {
        self.now = now;
        let help = self.help.then(|| self.help_line());
        if self.connection.is_some() {
            return help.or_else(|| self.connection.clone());
        }
        if self.status == Status::Connecting {
            let late = now >= *self.since.get_or_insert(now) + SLOW;
            return late.then(|| format!("[bowline: waiting for the session to answer{}]", self.detach_hint()));
        }
        // A mirrored screen reserves a row for the line. On a screen that scrolls, it waits for quiet.
        let mirrored = self.size_line(window);
        if self.status != Status::Open || (mirrored.is_none() && self.quiet_from.is_some_and(|at| now < at)) {
            return None;
        }
        self.quiet_from = None;
        self.unsent_shown = self.unsent_line.is_some();
        self.unsent_line.clone().or(help).or_else(|| self.hint.clone()).or(mirrored)
    }

    /// Whether another viewer decides the session's size, and it differs from this window's.
    pub(crate) fn is_mirrored(&self, window: Size) -> bool {
        self.session.is_some_and(|session| session != window) && !self.permissions.size
    }

    fn size_line(&self, window: Size) -> Option<String> {
        let session = self.session.filter(|_| self.is_mirrored(window))?;
        let (cols, rows, detach_key) = (session.cols(), session.rows(), &self.detach_key);
        let can_claim = self.permissions.write && !detach_key.is_empty();
        let how = if can_claim { format!("{detach_key} s to resize; ") } else { String::new() };
        Some(format!("[bowline: {how}size {cols}x{rows} set by another viewer]"))
    }

    /// When to call [`StatusLine::poll_line`] again, although nothing else happened.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let quiet = self
            .quiet_from
            .filter(|at| *at > self.now && (self.unsent_line.is_some() || self.hint.is_some() || self.help));
        let slow =
            self.since.map(|since| since + SLOW).filter(|at| *at > self.now && self.status == Status::Connecting);
        quiet.or(slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: (u32, u32) = (80, 24);

    fn open_line() -> (StatusLine, Size) {
        let mut line = StatusLine::new(Some(DetachKey::default()));
        line.set_status(Status::Open, Duration::ZERO);
        (line, Size::new(WINDOW.0, WINDOW.1).unwrap())
    }

    #[test]
    fn r6_one_line_per_backoff_step() {
        let (mut line, window) = open_line();
        let second = Duration::from_secs(1);
        line.set_status(Status::Reconnecting { attempt: 3, at: 14 * second }, 10 * second);
        for at in 10..14 {
            let text = line.poll_line(window, at * second);
            assert_eq!(text.as_deref(), Some("[bowline: connection lost, retrying in 4s (attempt 3)]"));
        }
        line.set_status(Status::Open, 14 * second);
        assert_eq!(line.poll_line(window, 14 * second), None);
    }

    /// The list of keys used to appear only after the reconnect.
    #[test]
    fn the_keys_are_shown_while_disconnected_until_the_next_key() {
        let (mut line, window) = open_line();
        let lost = Status::Reconnecting { attempt: 1, at: Duration::from_secs(1) };
        line.set_status(lost, Duration::ZERO);
        line.show_help();
        let help = line.poll_line(window, Duration::ZERO).unwrap();
        assert!(help.contains("d detach") && help.contains("r retry now"), "{help}");
        line.clear_hint();
        assert!(line.poll_line(window, Duration::ZERO).unwrap().contains("connection lost"));
        line.show_help();
        line.set_status(lost, Duration::ZERO);
        assert!(line.poll_line(window, Duration::ZERO).unwrap().contains("connection lost"), "the help hides a change");
        line.set_status(Status::Open, Duration::ZERO);
        line.show_help();
        assert!(line.poll_line(window, Duration::ZERO).unwrap().contains("r redraw"));
    }

    #[test]
    fn a_session_that_does_not_answer_is_reported_as_slow() {
        let (mut line, window) = (StatusLine::new(Some(DetachKey::default())), Size::default());
        assert_eq!(line.poll_line(window, Duration::ZERO), None);
        assert_eq!(line.poll_timeout(), Some(SLOW));
        assert!(line.poll_line(window, SLOW).is_some_and(|text| text.contains("waiting for the session")));
        line.set_status(Status::Open, SLOW);
        assert_eq!(line.poll_line(window, SLOW), None);
    }

    #[test]
    fn r7_giving_up_says_how_to_retry() {
        let (mut line, window) = open_line();
        line.set_status(Status::Offline, Duration::ZERO);
        let text = line.poll_line(window, Duration::ZERO).unwrap();
        assert!(text.contains("press Enter to retry") && text.contains("Ctrl-\\ d to detach"), "{text}");
    }

    #[test]
    fn r16_unsent_input_is_shown_until_the_user_decides() {
        let (mut line, window) = open_line();
        let mut show = |bytes: &'static [u8], doubtful| {
            line.set_unsent(Unsent { bytes: bytes.into(), doubtful });
            line.clear_hint();
            line.poll_line(window, Duration::ZERO).unwrap()
        };
        let text = show(b"rm -rf build", 0);
        assert!(text.contains(r#"not sent: "rm -rf build" (Ctrl-\ y to send"#), "{text}");
        // A second disconnection does not hide the input of the first, because `y` sends both.
        let text = show(b"rm -rf build\r", 1);
        assert!(text.contains(r#"not sent (part may have arrived): "rm -rf build\r" (Ctrl-\ y to send"#), "{text}");
        let text = show(b"rm -rf build\rand then much more", 1);
        assert!(text.contains(r#"rm -rf build\rand then mu".. 31 bytes ("#), "{text}");
        line.clear_unsent();
        assert_eq!(line.poll_line(window, Duration::ZERO), None);
    }

    #[test]
    fn r16_dropped_keys_are_counted_until_the_user_decides() {
        let (mut line, window) = open_line();
        line.add_dropped(4096);
        line.add_dropped(8);
        line.clear_hint();
        let text = line.poll_line(window, Duration::ZERO).unwrap();
        assert!(text.contains("input buffer full, 4104 bytes dropped"), "{text}");
        line.set_unsent(Unsent { bytes: "ls".into(), doubtful: 0 });
        let text = line.poll_line(window, Duration::ZERO).unwrap();
        assert!(text.contains("not sent: \"ls\", 4104 more dropped"), "{text}");
        line.clear_unsent();
        assert_eq!(line.poll_line(window, Duration::ZERO), None);
    }

    #[test]
    fn r16_without_a_detach_key_the_next_key_discards_shown_input() {
        let (mut line, window) = (StatusLine::new(None), Size::default());
        line.set_status(Status::Open, Duration::ZERO);
        line.set_unsent(Unsent { bytes: "rm -rf build".into(), doubtful: 0 });
        assert!(!line.next_key_discards(), "the line has not been shown yet");
        line.handle_output(Duration::ZERO);
        assert_eq!(line.poll_line(window, Duration::ZERO), None);
        assert!(!line.next_key_discards(), "the line waits for quiet");
        let text = line.poll_line(window, QUIET).unwrap();
        assert_eq!(text, "[bowline: not sent: \"rm -rf build\" (the next key discards it)]");
        assert!(line.next_key_discards());
        // More unsent input has arrived that the user has not seen.
        line.set_unsent(Unsent { bytes: "rm -rf build/x".into(), doubtful: 0 });
        assert!(!line.next_key_discards());
        assert!(line.poll_line(window, QUIET).is_some_and(|text| text.contains("rm -rf build/x")));
        line.clear_unsent();
        assert_eq!((line.poll_line(window, QUIET), line.next_key_discards()), (None, false));
        // Without a detach key, no line mentions one.
        line.set_session(Size::new(120, 40).unwrap(), Permissions { write: true, size: false });
        let text = line.poll_line(window, QUIET).unwrap();
        assert_eq!(text, "[bowline: size 120x40 set by another viewer]");
    }

    #[test]
    fn r16_with_a_detach_key_no_other_key_decides() {
        let (mut line, window) = open_line();
        line.set_unsent(Unsent { bytes: "ls".into(), doubtful: 0 });
        assert!(line.poll_line(window, Duration::ZERO).is_some() && !line.next_key_discards());
    }

    #[test]
    fn r23_a_size_set_by_another_viewer_is_shown_with_the_key_that_claims_it() {
        let (mut line, window) = open_line();
        line.set_session(Size::new(120, 40).unwrap(), Permissions { write: true, size: false });
        let text = line.poll_line(window, Duration::ZERO).unwrap();
        assert!(text.contains("size 120x40") && text.contains("Ctrl-\\ s to resize"), "{text}");
        line.set_permissions(Permissions { write: true, size: true });
        assert_eq!(line.poll_line(window, Duration::ZERO), None);
    }
}
