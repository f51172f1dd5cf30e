//! An index of the session's output: the range in the log, how far the screen is, and the terminal size at each
//! offset.

use std::collections::VecDeque;

use crate::Offset;
use crate::session::ExitStatus;
use crate::size::Size;

/// The index of one epoch's output. Offsets only grow.
#[derive(Debug)]
pub(super) struct OutputIndex {
    start: Offset,
    end: Offset,
    /// How far the emulator has processed the output.
    screen: Offset,
    /// The size before the first of `resizes`.
    base: Size,
    /// Each size with the offset where it takes effect. Offsets ascend, and neighbouring sizes differ.
    resizes: VecDeque<(Offset, Size)>,
    max_resizes: usize,
    pub(super) exit: Option<ExitStatus>,
}

impl OutputIndex {
    pub(super) fn new(size: Size, max_resizes: usize) -> OutputIndex {
        OutputIndex {
            start: 0,
            end: 0,
            screen: 0,
            base: size,
            resizes: VecDeque::new(),
            max_resizes: max_resizes.max(1),
            exit: None,
        }
    }

    /// The oldest offset that can be replayed: its byte is in the log, and the size there is known.
    pub(super) fn start(&self) -> Offset {
        self.start
    }

    pub(super) fn end(&self) -> Offset {
        self.end
    }

    pub(super) fn screen(&self) -> Offset {
        self.screen
    }

    pub(super) fn retain(&mut self, start: Offset, end: Offset) {
        self.end = self.end.max(end);
        self.start = self.start.max(start).min(self.end);
        while self.resizes.front().is_some_and(|(at, _)| *at <= self.start) {
            self.forget_oldest();
        }
    }

    pub(super) fn set_screen(&mut self, offset: Offset) {
        self.screen = self.screen.max(offset).min(self.end);
    }

    /// Records that the terminal has this size from `at` on, replacing an earlier record for the same offset.
    pub(super) fn record_resize(&mut self, at: Offset, size: Size) {
        if at <= self.start && self.resizes.is_empty() {
            self.base = size;
            return;
        }
        let i = self.resizes.partition_point(|(other, _)| *other < at);
        match self.resizes.get_mut(i) {
            Some((other, recorded)) if *other == at => *recorded = size,
            _ => self.resizes.insert(i, (at, size)),
        }
        // Keep neighbouring sizes different.
        if self.resizes.get(i + 1).is_some_and(|(_, next)| *next == size) {
            self.resizes.remove(i + 1);
        }
        if i.checked_sub(1).map_or(self.base, |before| self.resizes[before].1) == size {
            self.resizes.remove(i);
        }
        while self.resizes.len() > self.max_resizes {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((at, size)) = self.resizes.pop_front() {
            self.base = size;
            // The size before it is no longer known, so the output there cannot be replayed.
            self.start = self.start.max(at);
        }
    }

    /// The size for the byte at `offset`.
    pub(super) fn size_at(&self, offset: Offset) -> Size {
        match self.resizes.partition_point(|(at, _)| *at <= offset) {
            0 => self.base,
            n => self.resizes[n - 1].1,
        }
    }

    /// The latest size.
    pub(super) fn size(&self) -> Size {
        self.resizes.back().map_or(self.base, |(_, size)| *size)
    }

    /// The number of bytes from `offset` to the next change of size, or to the end.
    pub(super) fn len_at_same_size(&self, offset: Offset) -> u64 {
        let next = self.resizes.partition_point(|(at, _)| *at <= offset);
        let stop = self.resizes.get(next).map_or(self.end, |(at, _)| *at).min(self.end);
        stop.saturating_sub(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cols: u32) -> Size {
        Size::new(cols, 24).unwrap()
    }

    #[test]
    fn r23_a_replay_has_the_size_of_the_original() {
        let mut index = OutputIndex::new(size(80), 10);
        index.retain(0, 100);
        index.record_resize(40, size(100));
        index.record_resize(40, size(90));
        index.record_resize(70, size(60));
        assert_eq!([39, 40, 69, 70].map(|at| index.size_at(at).cols()), [80, 90, 90, 60]);
        assert_eq!([0, 40, 70, 100].map(|at| index.len_at_same_size(at)), [40, 30, 30, 0]);
        index.record_resize(40, size(80));
        assert_eq!(index.len_at_same_size(0), 70);
        index.retain(75, 100);
        assert_eq!((index.size_at(75).cols(), index.size()), (60, size(60)));
    }

    #[test]
    fn r52_a_flood_of_resizes_trims_the_log_instead_of_growing() {
        let mut index = OutputIndex::new(size(80), 4);
        index.retain(0, 100);
        for at in 1..=10 {
            index.record_resize(at * 10, size(100 + at as u32));
        }
        assert_eq!(index.start(), 60);
        assert_eq!([60, 69, 70, 100].map(|at| index.size_at(at).cols()), [106, 106, 107, 110]);
    }
}
