//! The real terminal as the session's screen: what is painted on it, what covers it for a moment, and what is left.
//!
//! The session is shown on the main screen, not on the alternate one, so that the terminal's own scrollback works:
//! what was visible before scrolls up into it, the session's history follows, then its screen, and everything it
//! prints from there on. Detaching leaves all of that where it is and goes on below it, as leaving `ssh` does. Only
//! what the session's program changed for good (modes, colours, title) is undone.

use std::collections::VecDeque;
use std::io;

use bowline_proto::Offset;
use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use serde_json::Value;

use crate::filter::Filter;
use crate::mirror;
use crate::notice;
use crate::tty::Tty;

/// A queue that once held more than this gives its memory back when it is empty.
const KEPT: usize = 256 << 10;

/// The terminal, while attached.
#[derive(Debug)]
pub struct Display {
    tty: Tty,
    size: Size,
    filter: Filter,
    /// What the terminal has not taken yet.
    queue: VecDeque<u8>,
    /// Bytes ever queued.
    queued: u64,
    /// Which output offset is reached when this many bytes are written.
    marks: VecDeque<(u64, Offset)>,
    /// A line of ours covers the bottom row.
    covered: Option<String>,
    left: bool,
}

/// Where the user goes on after leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Below everything that is visible.
    Below,
    /// After the program's last line, if that is where the cursor is.
    AfterOutput,
}

impl Display {
    /// Takes the terminal over: saves its title, and scrolls what is visible up into its scrollback.
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
        // From wherever the cursor is, as many lines as the window has scroll exactly what was used of it.
        display.put(&b"\n".repeat(usize::from(size.rows())));
        display.put(b"\x1b[H");
        display
    }

    /// The terminal itself.
    pub fn tty(&self) -> &Tty {
        &self.tty
    }

    /// The window's size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Looks at the window again; the new size, if it changed.
    pub fn update_size(&mut self) -> Option<Size> {
        let size = self.tty.size();
        let changed = size != self.size;
        self.size = size;
        changed.then_some(size)
    }

    /// Shows output of the session.
    pub fn output(&mut self, bytes: &[u8]) {
        let mut out = Vec::with_capacity(bytes.len());
        self.filter.filter(bytes, &mut out);
        self.put(&out);
    }

    /// Prepares for a snapshot. Before a whole one, everything is put back to what a fresh terminal has, and what is
    /// visible scrolls up; `skipped` is a line that says what is missing in between.
    pub fn begin_snapshot(&mut self, scope: Scope, skipped: Option<&str>, first: bool) {
        let mut out = Vec::new();
        self.filter.reset(&mut out);
        self.filter.set_painting(true);
        self.covered = None;
        let alternate = self.filter.touched().alternate();
        if scope == Scope::All {
            self.filter.touched_mut().undo(self.size.cols(), &mut out);
        }
        let scrolls = (scope == Scope::All && !first) || (skipped.is_some() && !alternate);
        if scrolls && !self.filter.is_muted() {
            out.extend_from_slice(b"\x1b[r\x1b[m");
            self.scroll_off(skipped, &mut out);
        }
        self.put(&out);
    }

    /// The snapshot is complete.
    pub fn end_snapshot(&mut self) {
        self.filter.set_painting(false);
    }

    /// Scrolls everything visible, and then a line of ours, up into the scrollback.
    fn scroll_off(&self, line: Option<&str>, out: &mut Vec<u8>) {
        let rows = self.size.rows();
        out.extend_from_slice(format!("\x1b[{rows};1H").as_bytes());
        if let Some(line) = line {
            out.extend_from_slice(format!("\r\n{}\r", notice::fit(line, self.size.cols())).as_bytes());
        }
        out.extend(std::iter::repeat_n(b'\n', usize::from(rows)));
        out.extend_from_slice(b"\x1b[H");
    }

    /// Keeps output from the terminal, or lets it through again; it must then be painted anew.
    pub fn set_muted(&mut self, muted: bool) {
        let mut out = Vec::new();
        self.filter.interrupt(&mut out);
        self.put(&out);
        self.filter.set_muted(muted);
        self.covered = None;
    }

    /// Paints a screen of another size, with a line below it. For while output is muted.
    pub fn mirror(&mut self, screen: &Value, line: &str) {
        let mut out = Vec::new();
        mirror::paint(screen, line, self.size, &mut out);
        self.put(&out);
    }

    /// Covers the bottom row with a line, in place of the one before. It goes with [`Display::uncover`].
    pub fn cover(&mut self, line: &str) {
        if self.covered.as_deref() == Some(line) {
            return;
        }
        let mut out = Vec::new();
        self.filter.interrupt(&mut out);
        if self.filter.touched().synchronised() {
            out.extend_from_slice(b"\x1b[?2026l");
        }
        notice::draw(line, self.size, &mut out);
        self.covered = Some(line.to_owned());
        self.put(&out);
    }

    /// Blanks the covered row. True when there was one: the screen must then be painted again.
    pub fn uncover(&mut self) -> bool {
        if self.covered.take().is_none() {
            return false;
        }
        let mut out = Vec::new();
        self.filter.interrupt(&mut out);
        notice::erase(self.size, &mut out);
        self.put(&out);
        true
    }

    /// What is queued up to here shows the output up to `offset`.
    pub fn mark(&mut self, offset: Offset) {
        self.marks.push_back((self.queued, offset));
    }

    /// Whether something waits for the terminal.
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Writes what the terminal takes; how far the output has been shown with that, if it came further.
    pub fn flush(&mut self) -> io::Result<Option<Offset>> {
        while !self.queue.is_empty() {
            let written = self.tty.write(self.queue.as_slices().0)?;
            if written == 0 {
                break;
            }
            self.queue.drain(..written);
        }
        if self.queue.is_empty() && self.queue.capacity() > KEPT {
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

    /// Gives the terminal back: everything is undone that lasts, and the cursor is where the user goes on.
    pub fn leave(&mut self, leave: Leave) {
        if std::mem::replace(&mut self.left, true) {
            return;
        }
        let mut out = Vec::new();
        self.filter.reset(&mut out);
        let touched = self.filter.touched_mut();
        let (moves, reports) = (touched.moves_cursor(), touched.reports_input());
        touched.undo(self.size.cols(), &mut out);
        if self.covered.take().is_some() {
            notice::erase(self.size, &mut out);
        }
        out.extend_from_slice(b"\x1b[23;0t");
        match leave {
            Leave::AfterOutput if !moves && self.filter.is_at_line_start() => out.extend_from_slice(b"\r"),
            Leave::AfterOutput if !moves => out.extend_from_slice(b"\r\n"),
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
        self.leave(Leave::Below);
    }
}
