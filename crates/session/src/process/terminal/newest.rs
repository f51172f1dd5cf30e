//! The newest output, in memory: most viewers want just that, and are spared a read of the log.

use bowline_host::log::SLACK;
use bowline_proto::Offset;

/// The newest output, still in the buffer it was read into: most viewers want just that, and are spared a read of the log.
#[derive(Debug)]
pub(super) struct Newest {
    /// Where it begins.
    from: Offset,
    len: usize,
    buf: Vec<u8>,
}

impl Newest {
    /// Nothing yet, with room for as much as one append of the log takes.
    pub(super) fn new(at: Offset) -> Newest {
        Newest { from: at, len: 0, buf: vec![0; SLACK as usize] }
    }

    /// Room for the next output, which is [`Newest::filled`] afterwards.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.len = 0;
        &mut self.buf
    }

    /// The room now begins with output from `from`.
    pub(super) fn filled(&mut self, from: Offset, len: usize) {
        (self.from, self.len) = (from, len);
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// One past its last byte.
    pub(super) fn end(&self) -> Offset {
        self.from + self.len as u64
    }

    /// This output, if it has all of it.
    pub(super) fn get(&self, from: Offset, len: usize) -> Option<&[u8]> {
        let at = from.checked_sub(self.from)? as usize;
        self.buf[..self.len].get(at..at.checked_add(len)?)
    }
}
