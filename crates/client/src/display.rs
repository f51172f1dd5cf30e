//! Paints the session on the user's terminal, and restores the terminal afterwards.
//!
//! The session is shown on the main screen, not on the alternate one, so that the terminal's own scrollback works: the
//! text that was visible before scrolls up, then come the session's history, its screen, and its further output.
//! Detaching leaves all of that in place and continues below it, as `ssh` does. Only lasting changes by the session's
//! program (modes, colours, title) are undone.

use std::collections::VecDeque;
use std::io;

use bowline_proto::Offset;
use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use serde_json::Value;

use crate::bottom_row;
use crate::filter::Filter;
use crate::mirror;
use crate::tty::Tty;

/// An empty queue with a larger capacity than this is freed.
const MAX_IDLE_QUEUE: usize = 256 << 10;

/// The user's terminal while attached.
#[derive(Debug)]
pub struct Display {
    tty: Tty,
    size: Size,
    filter: Filter,
    /// Bytes not yet written to the terminal.
    queue: VecDeque<u8>,
    /// Total bytes ever queued.
    queued: u64,
    /// Pairs of a value of `queued` and the output offset that is visible once that many bytes are written.
    marks: VecDeque<(u64, Offset)>,
    /// The status line that covers the bottom row.
    covered: Option<String>,
    left: bool,
}

/// Where [`Display::leave`] puts the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavePosition {
    /// Below everything that is visible.
    Below,
    /// After the program's last line, if the cursor is still there.
    AfterOutput,
}

impl Display {
    /// Takes over the terminal: saves its title, and scrolls the visible text up into its scrollback.
    pub fn enter(tty: Tty) -> Display {
        let size = tty.size();
        let mut display = Display {
            tty,
            size,
            filter: Filter::new(),
            queue: VecDeque::new(),
            queued: 0,
            marks: VecDeque::new(),
            covered: None,
            left: false,
        };
        display.put(b"\x1b[22;0t");
        // As many newlines as the window has rows scroll exactly its used part away, wherever the cursor is.
        display.put(&b"\n".repeat(usize::from(size.rows())));
        display.put(b"\x1b[H");
        display
    }

    pub fn tty(&self) -> &Tty {
        &self.tty
    }

    /// The window's size as of the last [`Display::update_size`].
    pub fn size(&self) -> Size {
        self.size
    }

    /// Reads the window's size again, and returns it if it changed.
    pub fn update_size(&mut self) -> Option<Size> {
        let size = self.tty.size();
        let changed = size != self.size;
        self.size = size;
        changed.then_some(size)
    }

    /// Queues output of the session, filtered.
    pub fn output(&mut self, bytes: &[u8]) {
        let mut out = Vec::with_capacity(bytes.len());
        self.filter.filter(bytes, &mut out);
        self.put(&out);
    }

    /// Prepares for a snapshot. Before one of [`Scope::All`], terminal modes are reset and the visible text scrolls up.
    /// `skipped` is a line to print about the output missing in between.
    pub fn begin_snapshot(&mut self, scope: Scope, skipped: Option<&str>, first: bool) {
        let mut out = Vec::new();
        self.filter.reset(&mut out);
        self.filter.set_in_snapshot(true);
        self.covered = None;
        let alternate = self.filter.changes().is_alternate();
        if scope == Scope::All {
            self.filter.changes_mut().undo(self.size.cols(), &mut out);
        }
        let scrolls = (scope == Scope::All && !first) || (skipped.is_some() && !alternate);
        if scrolls && !self.filter.is_muted() {
            out.extend_from_slice(b"\x1b[r\x1b[m");
            self.scroll_off(skipped, &mut out);
        }
        self.put(&out);
    }

    pub fn end_snapshot(&mut self) {
        self.filter.set_in_snapshot(false);
    }

    /// Scrolls everything visible, then `line`, up into the scrollback.
    fn scroll_off(&self, line: Option<&str>, out: &mut Vec<u8>) {
        let rows = self.size.rows();
        out.extend_from_slice(format!("\x1b[{rows};1H").as_bytes());
        if let Some(line) = line {
            out.extend_from_slice(format!("\r\n{}\r", bottom_row::fit(line, self.size.cols())).as_bytes());
        }
        out.extend(std::iter::repeat_n(b'\n', usize::from(rows)));
        out.extend_from_slice(b"\x1b[H");
    }

    /// Stops or resumes showing output. After resuming, the caller must request a repaint.
    pub fn set_muted(&mut self, muted: bool) {
        let mut out = Vec::new();
        self.filter.interrupt(&mut out);
        self.put(&out);
        self.filter.set_muted(muted);
        self.covered = None;
    }

    /// Paints a screen of another size, with a line below it. Only for use while output is muted.
    pub fn mirror(&mut self, screen: &Value, line: &str) {
        let mut out = Vec::new();
        mirror::paint(screen, line, self.size, &mut out);
        self.put(&out);
    }

    /// Covers the bottom row with a line, until [`Display::uncover`].
    pub fn cover(&mut self, line: &str) {
        if self.covered.as_deref() == Some(line) {
            return;
        }
        let mut out = Vec::new();
        self.filter.interrupt(&mut out);
        if self.filter.changes().is_synchronised() {
            out.extend_from_slice(b"\x1b[?2026l");
        }
        bottom_row::draw(line, self.size, &mut out);
        self.covered = Some(line.to_owned());
        self.put(&out);
    }

    /// Blanks the bottom row if a line covers it. If so, returns true, and the caller must request a repaint.
    pub fn uncover(&mut self) -> bool {
        if self.covered.take().is_none() {
            return false;
        }
        let mut out = Vec::new();
        self.filter.interrupt(&mut out);
        bottom_row::erase(self.size, &mut out);
        self.put(&out);
        true
    }

    /// Records that everything queued so far shows the output up to `offset`.
    pub fn mark(&mut self, offset: Offset) {
        self.marks.push_back((self.queued, offset));
    }

    /// Whether bytes wait for the terminal to accept them.
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Writes as much as the terminal accepts. Returns the offset up to which output is now visible, if it advanced.
    pub fn flush(&mut self) -> io::Result<Option<Offset>> {
        while !self.queue.is_empty() {
            let written = self.tty.write(self.queue.as_slices().0)?;
            if written == 0 {
                break;
            }
            self.queue.drain(..written);
        }
        if self.queue.is_empty() && self.queue.capacity() > MAX_IDLE_QUEUE {
            self.queue = VecDeque::new();
        }
        let written = self.queued - self.queue.len() as u64;
        let mut shown = None;
        while let Some((_, offset)) = self.marks.front().copied().filter(|(at, _)| *at <= written) {
            shown = Some(offset);
            self.marks.pop_front();
        }
        Ok(shown)
    }

    /// Restores the terminal: undoes lasting changes and places the cursor. Later calls do nothing.
    pub fn leave(&mut self, position: LeavePosition) {
        if std::mem::replace(&mut self.left, true) {
            return;
        }
        let mut out = Vec::new();
        self.filter.reset(&mut out);
        let changes = self.filter.changes_mut();
        let (moves, reports) = (changes.moves_cursor(), changes.reports_input());
        changes.undo(self.size.cols(), &mut out);
        if self.covered.take().is_some() {
            bottom_row::erase(self.size, &mut out);
        }
        out.extend_from_slice(b"\x1b[23;0t");
        match position {
            LeavePosition::AfterOutput if !moves && self.filter.is_at_line_start() => out.extend_from_slice(b"\r"),
            LeavePosition::AfterOutput if !moves => out.extend_from_slice(b"\r\n"),
            _ => out.extend_from_slice(format!("\x1b[{};1H\r\n", self.size.rows()).as_bytes()),
        }
        self.put(&out);
        let bytes: Vec<u8> = self.queue.drain(..).collect();
        let _ = self.tty.write_all(&bytes);
        if reports {
            self.tty.discard_input();
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.queue.extend(bytes);
        self.queued += bytes.len() as u64;
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.leave(LeavePosition::Below);
    }
}
