//! The latest read of the PTY, kept in memory until the next one.

use bowline_host::log::SLACK;
use bowline_proto::Offset;

/// The output of the latest read of the PTY, in the buffer it was read into. Most viewers need only this,
/// so frames for them are built without reading the log, and before the log has it.
#[derive(Debug)]
pub(super) struct LatestOutput {
    from: Offset,
    len: usize,
    buf: Vec<u8>,
}

impl LatestOutput {
    /// Starts empty, with room for as much as the log accepts in one append.
    pub(super) fn new(at: Offset) -> LatestOutput {
        LatestOutput { from: at, len: 0, buf: vec![0; SLACK as usize] }
    }

    /// Discards the output, and returns the buffer for the next read. Call [`LatestOutput::set_filled`] after it.
    pub(super) fn clear(&mut self) -> &mut [u8] {
        self.len = 0;
        &mut self.buf
    }

    /// The buffer now begins with `len` bytes of output from `from` on.
    pub(super) fn set_filled(&mut self, from: Offset, len: usize) {
        (self.from, self.len) = (from, len);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// The offset after the last byte.
    pub(super) fn end(&self) -> Offset {
        self.from + self.len as u64
    }

    /// The `len` bytes from `from` on, if all of them are here.
    pub(super) fn get(&self, from: Offset, len: usize) -> Option<&[u8]> {
        let at = from.checked_sub(self.from)? as usize;
        self.buf[..self.len].get(at..at.checked_add(len)?)
    }
}
