//! Which line of the viewer's own is to be seen, if any: the connection first, then what needs an answer, then hints.

use std::time::Duration;

use bowline_proto::link::{Status, Unsent};
use bowline_proto::message::You;
use bowline_proto::size::Size;

use crate::keys::Prefix;

/// A line on a live screen waits until the program has printed nothing for this long.
const QUIET: Duration = Duration::from_millis(300);
/// A session that has not answered for this long is said to be slow.
const SLOW: Duration = Duration::from_millis(700);
/// How much of unsent typing is shown.
const SHOWN: usize = 24;

/// What there is to say.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The detach key, in words.
    prefix: String,
    status: Status,
    /// What the connection's status says.
    connection: Option<String>,
    /// Typing that was not sent and waits for a decision.
    unsent: Unsent,
    /// How many typed bytes were not kept, since the last decision.
    lost: usize,
    /// What the user is told of both.
    unsent_line: Option<String>,
    /// The user could read that.
    unsent_shown: bool,
    /// A hint that goes with the next key or output.
    hint: Option<String>,
    session: Option<Size>,
    you: You,
    quiet_from: Option<Duration>,
    /// When the first dial began.
    since: Option<Duration>,
    /// The last reason that the server or a dial gave.
    reason: String,
    now: Duration,
}

impl Lines {
    pub(crate) fn new(prefix: Option<Prefix>) -> Lines {
        Lines {
            prefix: prefix.map_or_else(String::new, |prefix| prefix.to_string()),
            status: Status::Connecting,
            connection: None,
            unsent: Unsent::default(),
            lost: 0,
            unsent_line: None,
            unsent_shown: false,
            hint: None,
            session: None,
            you: You { write: true, size: false },
            quiet_from: None,
            since: None,
            reason: String::new(),
            now: Duration::ZERO,
        }
    }

    /// The connection's status changed. The line is made here, once for each change, so that it stands still between.
    pub(crate) fn status(&mut self, status: Status, now: Duration) {
        self.status = status;
        self.connection = match status {
            Status::Reconnecting { attempt, at } => {
                let seconds = at.saturating_sub(now).as_millis().div_ceil(1000);
                let when = if seconds == 0 { "now".to_owned() } else { format!("in {seconds}s") };
                Some(format!("[bowline: connection lost, retrying {when} (attempt {attempt})]"))
            }
            Status::Offline => Some(format!("[bowline: no connection, given up; Enter retries{}]", self.way_out())),
            Status::Connecting | Status::Open | Status::Ended | Status::NeedsLogin | Status::Gone(_) => None,
        };
    }

    /// How to leave, if there is a key for it.
    fn way_out(&self) -> String {
        if self.prefix.is_empty() { String::new() } else { format!(", {} d leaves", self.prefix) }
    }

    /// The server or a dial gave a reason.
    pub(crate) fn said(&mut self, reason: &str) {
        reason.clone_into(&mut self.reason);
    }

    /// The last reason given.
    pub(crate) fn refusal(&self) -> &str {
        &self.reason
    }

    /// Output came: hints go, the rest waits for quiet.
    pub(crate) fn output(&mut self, now: Duration) {
        self.hint = None;
        self.quiet_from = Some(now + QUIET);
    }

    /// A key was pressed: what was only to be read has been.
    pub(crate) fn dismiss(&mut self) {
        self.hint = None;
    }

    /// The session has this size, and this is what the viewer may do.
    pub(crate) fn size(&mut self, session: Size, you: You) {
        self.session = Some(session);
        self.you = you;
    }

    /// What the viewer may do changed.
    pub(crate) fn you(&mut self, you: You) {
        self.you = you;
    }

    /// Says something until the next key or output.
    pub(crate) fn say(&mut self, line: &str) {
        self.hint = Some(line.to_owned());
    }

    /// Shows the keys.
    pub(crate) fn help(&mut self) {
        let prefix = &self.prefix;
        self.hint = Some(format!("[bowline: {prefix} then d detaches, s takes the size, r redraws, {prefix} is sent]"));
    }

    /// Typing was not sent: this is all that waits for a decision.
    pub(crate) fn unsent(&mut self, unsent: Unsent) {
        self.unsent = unsent;
        self.update_unsent_line();
    }

    /// Typed bytes did not fit into the link, and are gone.
    pub(crate) fn lost(&mut self, bytes: usize) {
        self.lost += bytes;
        self.update_unsent_line();
    }

    /// The user decided about all of it.
    pub(crate) fn decided(&mut self) {
        (self.unsent, self.lost) = (Unsent::default(), 0);
        self.update_unsent_line();
    }

    fn update_unsent_line(&mut self) {
        let (bytes, lost, prefix) = (&self.unsent.bytes, self.lost, &self.prefix);
        let (hide, ways) = match prefix.is_empty() {
            true => ("the next key hides this".to_owned(), "the next key forgets it".to_owned()),
            false => (format!("{prefix} n hides this"), format!("{prefix} y sends it, {prefix} n forgets it")),
        };
        let line = match (bytes.len(), lost) {
            (0, 0) => None,
            (0, _) => Some(format!("[bowline: {lost} bytes more were typed than can be kept ({hide})]")),
            (len, _) => {
                let shown: String = String::from_utf8_lossy(&bytes[..len.min(SHOWN)]).escape_debug().collect();
                let doubt = if self.unsent.doubtful > 0 { ", part of it perhaps" } else { "" };
                let more = if len > SHOWN { format!(".. {len} bytes") } else { String::new() };
                let gone = if lost > 0 { format!(", {lost} more were not kept") } else { String::new() };
                Some(format!("[bowline: not sent{doubt}: \"{shown}\"{more}{gone} ({ways})]"))
            }
        };
        self.unsent_shown &= self.unsent_line == line;
        self.unsent_line = line;
    }

    /// Whether the next key forgets what was not sent: it was read, and without a detach key no other word is possible.
    pub(crate) fn next_key_forgets(&self) -> bool {
        self.prefix.is_empty() && self.unsent_shown
    }

    /// The line to be seen now.
    pub(crate) fn wanted(&mut self, window: Size, now: Duration) -> Option<String> {
        self.now = now;
        if self.connection.is_some() {
            return self.connection.clone();
        }
        if self.status == Status::Connecting {
            let late = now >= *self.since.get_or_insert(now) + SLOW;
            return late.then(|| format!("[bowline: waiting for the session to answer{}]", self.way_out()));
        }
        // A mirrored screen keeps a row for this; on one that scrolls, a line waits for quiet.
        let mirrored = self.foreign_size(window);
        if self.status != Status::Open || (mirrored.is_none() && self.quiet_from.is_some_and(|at| now < at)) {
            return None;
        }
        self.quiet_from = None;
        self.unsent_shown = self.unsent_line.is_some();
        self.unsent_line.clone().or_else(|| self.hint.clone()).or(mirrored)
    }

    /// Whether another viewer's window decides the size, and it is not like this one.
    pub(crate) fn is_foreign(&self, window: Size) -> bool {
        self.session.is_some_and(|session| session != window) && !self.you.size
    }

    fn foreign_size(&self, window: Size) -> Option<String> {
        let session = self.session.filter(|_| self.is_foreign(window))?;
        let (cols, rows, prefix) = (session.cols(), session.rows(), &self.prefix);
        let may = self.you.write && !prefix.is_empty();
        let how = if may { format!("{prefix} s takes the size; ") } else { String::new() };
        Some(format!("[bowline: {how}it is {cols}x{rows}, another viewer's]"))
    }

    /// When [`Lines::wanted`] may answer differently by itself.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let quiet = self.quiet_from.filter(|at| *at > self.now && (self.unsent_line.is_some() || self.hint.is_some()));
        let slow =
            self.since.map(|since| since + SLOW).filter(|at| *at > self.now && self.status == Status::Connecting);
        quiet.or(slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: (u32, u32) = (80, 24);

    fn lines() -> (Lines, Size) {
        let mut lines = Lines::new(Some(Prefix::default()));
        lines.status(Status::Open, Duration::ZERO);
        (lines, Size::new(WINDOW.0, WINDOW.1).unwrap())
    }

    #[test]
    fn r6_one_line_per_backoff_step() {
        let (mut lines, window) = lines();
        let second = Duration::from_secs(1);
        lines.status(Status::Reconnecting { attempt: 3, at: 14 * second }, 10 * second);
        for at in 10..14 {
            let line = lines.wanted(window, at * second);
            assert_eq!(line.as_deref(), Some("[bowline: connection lost, retrying in 4s (attempt 3)]"));
        }
        lines.status(Status::Open, 14 * second);
        assert_eq!(lines.wanted(window, 14 * second), None);
    }

    #[test]
    fn a_session_that_does_not_answer_is_said_to_be_slow() {
        let (mut lines, window) = (Lines::new(Some(Prefix::default())), Size::default());
        assert_eq!(lines.wanted(window, Duration::ZERO), None);
        assert_eq!(lines.poll_timeout(), Some(SLOW));
        assert!(lines.wanted(window, SLOW).is_some_and(|line| line.contains("waiting for the session")));
        lines.status(Status::Open, SLOW);
        assert_eq!(lines.wanted(window, SLOW), None);
    }

    #[test]
    fn r7_giving_up_names_the_way_back() {
        let (mut lines, window) = lines();
        lines.status(Status::Offline, Duration::ZERO);
        let line = lines.wanted(window, Duration::ZERO).unwrap();
        assert!(line.contains("Enter retries") && line.contains("Ctrl-\\ d leaves"), "{line}");
    }

    #[test]
    fn r16_unsent_typing_is_shown_until_it_is_decided() {
        let (mut lines, window) = lines();
        let mut unsent = |bytes: &'static [u8], doubtful| {
            lines.unsent(Unsent { bytes: bytes.into(), doubtful });
            lines.dismiss();
            lines.wanted(window, Duration::ZERO).unwrap()
        };
        let line = unsent(b"rm -rf build", 0);
        assert!(line.contains(r#"not sent: "rm -rf build" (Ctrl-\ y sends it"#), "{line}");
        // A second absence does not hide what the first left, for `y` sends both.
        let line = unsent(b"rm -rf build\r", 1);
        assert!(line.contains(r#"not sent, part of it perhaps: "rm -rf build\r" (Ctrl-\ y sends it"#), "{line}");
        let line = unsent(b"rm -rf build\rand then much more", 1);
        assert!(line.contains(r#"rm -rf build\rand then mu".. 31 bytes ("#), "{line}");
        lines.decided();
        assert_eq!(lines.wanted(window, Duration::ZERO), None);
    }

    #[test]
    fn r16_keys_that_could_not_be_kept_are_counted_until_that_was_read() {
        let (mut lines, window) = lines();
        lines.lost(4096);
        lines.lost(8);
        lines.dismiss();
        let line = lines.wanted(window, Duration::ZERO).unwrap();
        assert!(line.contains("4104 bytes more were typed than can be kept"), "{line}");
        lines.unsent(Unsent { bytes: "ls".into(), doubtful: 0 });
        let line = lines.wanted(window, Duration::ZERO).unwrap();
        assert!(line.contains("not sent: \"ls\", 4104 more were not kept"), "{line}");
        lines.decided();
        assert_eq!(lines.wanted(window, Duration::ZERO), None);
    }

    #[test]
    fn r16_without_a_detach_key_the_next_key_forgets_what_was_read() {
        let (mut lines, window) = (Lines::new(None), Size::default());
        lines.status(Status::Open, Duration::ZERO);
        lines.unsent(Unsent { bytes: "rm -rf build".into(), doubtful: 0 });
        assert!(!lines.next_key_forgets(), "the user has not read it yet");
        lines.output(Duration::ZERO);
        assert_eq!(lines.wanted(window, Duration::ZERO), None);
        assert!(!lines.next_key_forgets(), "it waits for quiet");
        let line = lines.wanted(window, QUIET).unwrap();
        assert_eq!(line, "[bowline: not sent: \"rm -rf build\" (the next key forgets it)]");
        assert!(lines.next_key_forgets());
        // There is more of it since.
        lines.unsent(Unsent { bytes: "rm -rf build/x".into(), doubtful: 0 });
        assert!(!lines.next_key_forgets());
        assert!(lines.wanted(window, QUIET).is_some_and(|line| line.contains("rm -rf build/x")));
        lines.decided();
        assert_eq!((lines.wanted(window, QUIET), lines.next_key_forgets()), (None, false));
        // No line names a key that nobody has.
        lines.size(Size::new(120, 40).unwrap(), You { write: true, size: false });
        let line = lines.wanted(window, QUIET).unwrap();
        assert_eq!(line, "[bowline: it is 120x40, another viewer's]");
    }

    #[test]
    fn r16_with_a_detach_key_no_other_key_decides() {
        let (mut lines, window) = lines();
        lines.unsent(Unsent { bytes: "ls".into(), doubtful: 0 });
        assert!(lines.wanted(window, Duration::ZERO).is_some() && !lines.next_key_forgets());
    }

    #[test]
    fn r23_a_foreign_size_is_told_with_the_way_to_claim_it() {
        let (mut lines, window) = lines();
        lines.size(Size::new(120, 40).unwrap(), You { write: true, size: false });
        let line = lines.wanted(window, Duration::ZERO).unwrap();
        assert!(line.contains("120x40") && line.contains("Ctrl-\\ s takes the size"), "{line}");
        lines.you(You { write: true, size: true });
        assert_eq!(lines.wanted(window, Duration::ZERO), None);
    }
}
