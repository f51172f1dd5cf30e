//! A viewer's position in the output: what the connection must deliver next, and what the caller has polled.

use crate::Offset;
use crate::ids::Epoch;
use crate::message::{Attached, Cursor, Verdict};
use crate::size::Size;

/// The position of a viewer, across all its connections. Refuses output and snapshots that do not continue it.
#[derive(Debug)]
pub(super) struct Position {
    /// The end of what the caller has polled; the next connection resumes here. `None` while a snapshot is incomplete.
    cursor: Option<Cursor>,
    /// The session's epoch on the latest connection.
    epoch: Option<Epoch>,
    /// The next output byte on this connection.
    next: Offset,
    /// A snapshot that is not yet received whole.
    incoming: Option<IncomingSnapshot>,
    /// The width of the caller's terminal.
    cols: Option<u16>,
    /// The width changed, and the snapshot that should follow has not arrived: its connection may have been lost.
    needs_repaint: bool,
}

#[derive(Debug)]
struct IncomingSnapshot {
    offset: Offset,
    /// Bytes that are still to come.
    remaining: u64,
}

impl Position {
    pub(super) fn new(cursor: Option<Cursor>) -> Position {
        Position {
            epoch: cursor.as_ref().map(|cursor| cursor.epoch.clone()),
            cursor,
            next: 0,
            incoming: None,
            cols: None,
            needs_repaint: false,
        }
    }

    pub(super) fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// Whether a snapshot is not yet received whole.
    pub(super) fn in_snapshot(&self) -> bool {
        self.incoming.is_some()
    }

    /// The next output byte on this connection.
    pub(super) fn next(&self) -> Offset {
        self.next
    }

    /// The rest of an incomplete snapshot will not arrive.
    pub(super) fn handle_disconnected(&mut self) {
        self.incoming = None;
    }

    /// The server answered the hello. Returns whether the epoch has changed since the previous connection.
    pub(super) fn handle_attached(&mut self, attached: &Attached) -> Result<bool, &'static str> {
        let cursor = self.cursor.as_ref().map(|cursor| cursor.offset);
        if attached.verdict == Verdict::Exact && cursor != Some(attached.offset) {
            return Err("an exact resume from another offset");
        }
        let previous = self.epoch.replace(attached.epoch.clone());
        self.next = attached.offset;
        Ok(previous.is_some_and(|epoch| epoch != attached.epoch))
    }

    /// The server announced a snapshot of `bytes` bytes.
    pub(super) fn handle_snapshot(&mut self, offset: Offset, bytes: u64) -> Result<(), &'static str> {
        if self.in_snapshot() || offset < self.next {
            return Err("a snapshot of an earlier offset, or inside another snapshot");
        }
        self.next = offset;
        self.incoming = Some(IncomingSnapshot { offset, remaining: bytes });
        Ok(())
    }

    /// A part of a snapshot arrived.
    pub(super) fn handle_part(&mut self, bytes: usize) -> Result<(), &'static str> {
        let incoming = self.incoming.as_mut().ok_or("a snapshot part without a snapshot")?;
        incoming.remaining = incoming.remaining.checked_sub(bytes as u64).ok_or("a snapshot longer than announced")?;
        Ok(())
    }

    /// The offset of the incoming snapshot, once it is received whole.
    pub(super) fn poll_snapshot(&mut self) -> Option<Offset> {
        self.incoming.take_if(|incoming| incoming.remaining == 0).map(|incoming| incoming.offset)
    }

    /// Output arrived. Returns the new part of it, and the offset of that part: overlap is trimmed, a gap is refused.
    pub(super) fn handle_output<'a>(
        &mut self,
        offset: Offset,
        bytes: &'a [u8],
    ) -> Result<Option<(Offset, &'a [u8])>, &'static str> {
        if self.in_snapshot() || offset > self.next {
            return Err("a gap in the output");
        }
        let overlap = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(overlap..).filter(|new| !new.is_empty()) else { return Ok(None) };
        let from = self.next;
        self.next += new.len() as u64;
        Ok(Some((from, new)))
    }

    /// The caller has polled everything before `offset`.
    pub(super) fn handle_polled(&mut self, offset: Offset) {
        self.cursor = self.epoch.clone().map(|epoch| Cursor { epoch, offset });
    }

    /// The caller begins to apply a snapshot. Until it has all of it, its terminal has no position in the output.
    pub(super) fn begin_snapshot(&mut self, size: Size) {
        self.cursor = None;
        self.cols = Some(size.cols());
    }

    /// The caller has polled a whole snapshot.
    pub(super) fn end_snapshot(&mut self) {
        self.needs_repaint = false;
    }

    /// The caller's terminal has this size now. With `expect_repaint`, the server sends a snapshot after a change of
    /// width.
    pub(super) fn handle_resized(&mut self, size: Size, expect_repaint: bool) {
        let changed = self.cols.replace(size.cols()).is_some_and(|cols| cols != size.cols());
        self.needs_repaint |= changed && expect_repaint;
    }

    /// Whether the snapshot that should follow a change of width has not arrived.
    pub(super) fn needs_repaint(&self) -> bool {
        self.needs_repaint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> Position {
        let mut position = Position::new(None);
        position.next = 10;
        position
    }

    #[test]
    fn overlap_is_trimmed_and_a_gap_is_refused() {
        let mut position = position();
        assert_eq!(position.handle_output(8, b"abcd"), Ok(Some((10, &b"cd"[..]))));
        assert_eq!(position.handle_output(8, b"abcd"), Ok(None));
        assert_eq!(position.handle_output(0, b"a"), Ok(None));
        assert_eq!(position.handle_output(13, b"x"), Err("a gap in the output"));
        assert_eq!(position.next(), 12);
    }

    #[test]
    fn a_snapshot_arrives_whole_or_not_at_all() {
        const EARLIER: &str = "a snapshot of an earlier offset, or inside another snapshot";
        let mut position = position();
        assert_eq!(position.handle_part(1), Err("a snapshot part without a snapshot"));
        assert_eq!(position.handle_snapshot(9, 3), Err(EARLIER));
        assert_eq!(position.handle_snapshot(20, 3), Ok(()));
        assert_eq!(position.handle_snapshot(20, 3), Err(EARLIER));
        assert_eq!(position.handle_output(20, b"x"), Err("a gap in the output"));
        assert_eq!((position.handle_part(2), position.poll_snapshot()), (Ok(()), None));
        assert_eq!(position.handle_part(2), Err("a snapshot longer than announced"));
        assert_eq!(
            (position.handle_part(1), position.poll_snapshot(), position.poll_snapshot()),
            (Ok(()), Some(20), None)
        );
        position.handle_snapshot(20, 3).unwrap();
        position.handle_disconnected();
        assert!(!position.in_snapshot());
    }

    #[test]
    fn a_change_of_width_needs_a_repaint_until_a_snapshot_is_whole() {
        let mut position = position();
        let (narrow, wide) = (Size::new(80, 24).unwrap(), Size::new(100, 24).unwrap());
        position.handle_resized(narrow, true);
        assert!(!position.needs_repaint(), "the first size is not a change");
        position.handle_resized(wide, false);
        assert!(!position.needs_repaint(), "a viewer that waits gets no snapshot");
        position.handle_resized(narrow, true);
        assert!(position.needs_repaint());
        position.begin_snapshot(wide);
        assert!(position.needs_repaint());
        position.end_snapshot();
        assert!(!position.needs_repaint());
    }
}
