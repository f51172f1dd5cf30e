//! The session's output as its viewers' streams see it: what the log holds, how far the screen is, and which size
//! was in force where.

use std::collections::VecDeque;

use crate::Offset;
use crate::session::ExitStatus;
use crate::size::Size;

/// The output of one life. Offsets only grow.
#[derive(Debug)]
pub(super) struct Tape {
    start: Offset,
    end: Offset,
    screen: Offset,
    /// The size before the first of `resizes`.
    base: Size,
    /// From which offset on the terminal had which size; offsets ascend, neighbours differ.
    resizes: VecDeque<(Offset, Size)>,
    most_resizes: usize,
    pub(super) exit: Option<ExitStatus>,
}

impl Tape {
    pub(super) fn new(size: Size, most_resizes: usize) -> Tape {
        Tape {
            start: 0,
            end: 0,
            screen: 0,
            base: size,
            resizes: VecDeque::new(),
            most_resizes: most_resizes.max(1),
            exit: None,
        }
    }

    /// The first byte from which a replay is right.
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

    pub(super) fn screen_at(&mut self, offset: Offset) {
        self.screen = self.screen.max(offset).min(self.end);
    }

    /// The size from `at` on; a later word about the same place replaces the earlier one.
    pub(super) fn resized(&mut self, at: Offset, size: Size) {
        if at <= self.start && self.resizes.is_empty() {
            self.base = size;
            return;
        }
        let i = self.resizes.partition_point(|(other, _)| *other < at);
        match self.resizes.get_mut(i) {
            Some((other, there)) if *other == at => *there = size,
            _ => self.resizes.insert(i, (at, size)),
        }
        // Neighbours differ: a change to the same size is none.
        if self.resizes.get(i + 1).is_some_and(|(_, next)| *next == size) {
            self.resizes.remove(i + 1);
        }
        if i.checked_sub(1).map_or(self.base, |before| self.resizes[before].1) == size {
            self.resizes.remove(i);
        }
        while self.resizes.len() > self.most_resizes {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((at, size)) = self.resizes.pop_front() {
            self.base = size;
            // What came before it can no longer be replayed at its own size.
            self.start = self.start.max(at);
        }
    }

    /// The size in force for the byte at `offset`.
    pub(super) fn size_at(&self, offset: Offset) -> Size {
        match self.resizes.partition_point(|(at, _)| *at <= offset) {
            0 => self.base,
            n => self.resizes[n - 1].1,
        }
    }

    /// The size now.
    pub(super) fn size(&self) -> Size {
        self.resizes.back().map_or(self.base, |(_, size)| *size)
    }

    /// How far output goes from `offset` without a change of size.
    pub(super) fn run(&self, offset: Offset) -> u64 {
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
    fn r23_a_replay_has_the_size_of_its_time() {
        let mut tape = Tape::new(size(80), 10);
        tape.retain(0, 100);
        tape.resized(40, size(100));
        tape.resized(40, size(90));
        tape.resized(70, size(60));
        assert_eq!([39, 40, 69, 70].map(|at| tape.size_at(at).cols()), [80, 90, 90, 60]);
        assert_eq!([0, 40, 70, 100].map(|at| tape.run(at)), [40, 30, 30, 0]);
        tape.resized(40, size(80));
        assert_eq!(tape.run(0), 70);
        tape.retain(75, 100);
        assert_eq!((tape.size_at(75).cols(), tape.size()), (60, size(60)));
    }

    #[test]
    fn r52_a_flood_of_resizes_trims_the_log_instead_of_growing() {
        let mut tape = Tape::new(size(80), 4);
        tape.retain(0, 100);
        for at in 1..=10 {
            tape.resized(at * 10, size(100 + at as u32));
        }
        assert_eq!(tape.start(), 60);
        assert_eq!([60, 69, 70, 100].map(|at| tape.size_at(at).cols()), [106, 106, 107, 110]);
    }
}
