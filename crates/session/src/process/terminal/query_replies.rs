//! Replies to terminal queries, queued for the program. They are written before typed input, since the
//! program waits for them.

use std::collections::VecDeque;
use std::io;

use crate::pty::Pty;

/// The most bytes that are queued. Further replies are dropped, since the program sends queries but does not read.
const MAX_REPLIES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct QueryReplies {
    bytes: VecDeque<u8>,
}

impl QueryReplies {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() <= MAX_REPLIES {
            self.bytes.extend(bytes);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes as much as the PTY accepts.
    pub(super) fn write_to(&mut self, pty: &Pty) -> io::Result<()> {
        while !self.bytes.is_empty() {
            let written = pty.write(self.bytes.as_slices().0)?;
            self.bytes.drain(..written);
            if written == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}
