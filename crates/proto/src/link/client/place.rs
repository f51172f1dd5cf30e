//! Where a viewer is in the output: what its connection brings next, and what its caller has been given.

use crate::Offset;
use crate::ids::Epoch;
use crate::message::{Attached, Cursor, Verdict};
use crate::size::Size;

/// A place in the output, over all connections. What does not follow it is refused with a reason.
#[derive(Debug)]
pub(super) struct Place {
    /// What the caller has been given, and so what a resume may build on.
    cursor: Option<Cursor>,
    /// The life that this connection speaks of.
    epoch: Option<Epoch>,
    /// The next output byte on this connection.
    next: Offset,
    /// What is still to come of a snapshot.
    painting: Option<Painting>,
    /// The width that the caller's terminal has.
    cols: Option<u16>,
    /// That width changed, and the owner's screen has not been painted since: a cut took it away.
    unpainted: bool,
}

#[derive(Debug)]
struct Painting {
    offset: Offset,
    left: u64,
}

impl Place {
    pub(super) fn new(cursor: Option<Cursor>) -> Place {
        Place {
            epoch: cursor.as_ref().map(|cursor| cursor.epoch.clone()),
            cursor,
            next: 0,
            painting: None,
            cols: None,
            unpainted: false,
        }
    }

    /// Where the caller is.
    pub(super) fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// Whether part of a snapshot is still to come.
    pub(super) fn is_painting(&self) -> bool {
        self.painting.is_some()
    }

    /// The next output byte on this connection.
    pub(super) fn next(&self) -> Offset {
        self.next
    }

    /// The connection is gone: what is missing of a snapshot does not come.
    pub(super) fn handle_disconnected(&mut self) {
        self.painting = None;
    }

    /// The server answered the hello. Returns whether it speaks of another life than the last one did.
    pub(super) fn handle_attached(&mut self, attached: &Attached) -> Result<bool, &'static str> {
        let here = self.cursor.as_ref().map(|cursor| cursor.offset);
        if attached.verdict == Verdict::Exact && here != Some(attached.offset) {
            return Err("exact, but from another place");
        }
        let last = self.epoch.replace(attached.epoch.clone());
        self.next = attached.offset;
        Ok(last.is_some_and(|epoch| epoch != attached.epoch))
    }

    /// A snapshot of this length begins.
    pub(super) fn handle_snapshot(&mut self, offset: Offset, bytes: u64) -> Result<(), &'static str> {
        if self.is_painting() || offset < self.next {
            return Err("a snapshot of the past");
        }
        self.next = offset;
        self.painting = Some(Painting { offset, left: bytes });
        Ok(())
    }

    /// A part of a snapshot came.
    pub(super) fn handle_part(&mut self, bytes: usize) -> Result<(), &'static str> {
        let painting = self.painting.as_mut().ok_or("a part of no snapshot")?;
        painting.left = painting.left.checked_sub(bytes as u64).ok_or("a snapshot longer than announced")?;
        Ok(())
    }

    /// The offset of a snapshot, once it is whole.
    pub(super) fn poll_painted(&mut self) -> Option<Offset> {
        self.painting.take_if(|painting| painting.left == 0).map(|painting| painting.offset)
    }

    /// Output came. Returns what of it is new, and where that begins: overlap is trimmed, a hole is refused.
    pub(super) fn handle_output<'a>(
        &mut self,
        offset: Offset,
        bytes: &'a [u8],
    ) -> Result<Option<(Offset, &'a [u8])>, &'static str> {
        if self.is_painting() || offset > self.next {
            return Err("a hole in the output");
        }
        let seen = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
        let Some(fresh) = bytes.get(seen..).filter(|fresh| !fresh.is_empty()) else { return Ok(None) };
        let from = self.next;
        self.next += fresh.len() as u64;
        Ok(Some((from, fresh)))
    }

    /// The caller has been given everything up to here.
    pub(super) fn handle_polled(&mut self, offset: Offset) {
        self.cursor = self.epoch.clone().map(|epoch| Cursor { epoch, offset });
    }

    /// The caller begins to paint a snapshot: until that is whole, its terminal is of no known place.
    pub(super) fn handle_paint(&mut self, size: Size) {
        self.cursor = None;
        self.cols = Some(size.cols());
    }

    /// The caller has painted a snapshot.
    pub(super) fn handle_painted(&mut self) {
        self.unpainted = false;
    }

    /// The caller's terminal has this size now. With `repainted`, the server paints the screen after a change of width.
    pub(super) fn handle_resized(&mut self, size: Size, repainted: bool) {
        let changed = self.cols.replace(size.cols()).is_some_and(|cols| cols != size.cols());
        self.unpainted |= changed && repainted;
    }

    /// Whether the screen that was to follow a change of width has not come.
    pub(super) fn is_unpainted(&self) -> bool {
        self.unpainted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let mut place = Place::new(None);
        place.next = 10;
        place
    }

    #[test]
    fn overlap_is_trimmed_and_a_hole_is_refused() {
        let mut place = place();
        assert_eq!(place.handle_output(8, b"abcd"), Ok(Some((10, &b"cd"[..]))));
        assert_eq!(place.handle_output(8, b"abcd"), Ok(None));
        assert_eq!(place.handle_output(0, b"a"), Ok(None));
        assert_eq!(place.handle_output(13, b"x"), Err("a hole in the output"));
        assert_eq!(place.next(), 12);
    }

    #[test]
    fn a_snapshot_comes_whole_or_not_at_all() {
        let mut place = place();
        assert_eq!(place.handle_part(1), Err("a part of no snapshot"));
        assert_eq!(place.handle_snapshot(9, 3), Err("a snapshot of the past"));
        assert_eq!(place.handle_snapshot(20, 3), Ok(()));
        assert_eq!(place.handle_snapshot(20, 3), Err("a snapshot of the past"));
        assert_eq!(place.handle_output(20, b"x"), Err("a hole in the output"));
        assert_eq!((place.handle_part(2), place.poll_painted()), (Ok(()), None));
        assert_eq!(place.handle_part(2), Err("a snapshot longer than announced"));
        assert_eq!((place.handle_part(1), place.poll_painted(), place.poll_painted()), (Ok(()), Some(20), None));
        place.handle_snapshot(20, 3).unwrap();
        place.handle_disconnected();
        assert!(!place.is_painting());
    }

    #[test]
    fn a_change_of_width_is_unpainted_until_a_snapshot_is_whole() {
        let mut place = place();
        let (narrow, wide) = (Size::new(80, 24).unwrap(), Size::new(100, 24).unwrap());
        place.handle_resized(narrow, true);
        assert!(!place.is_unpainted(), "the first size is no change");
        place.handle_resized(wide, false);
        assert!(!place.is_unpainted(), "the server paints for those who skip only");
        place.handle_resized(narrow, true);
        assert!(place.is_unpainted());
        place.handle_paint(wide);
        assert!(place.is_unpainted());
        place.handle_painted();
        assert!(!place.is_unpainted());
    }
}
