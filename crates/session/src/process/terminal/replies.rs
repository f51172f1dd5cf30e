//! The terminal's replies to queries, which go to the program ahead of everything typed: it waits for them.

use std::collections::VecDeque;
use std::io;

use crate::pty::Pty;

/// A program that queries its terminal without ever reading the replies loses those past this.
const MAX_REPLIES: usize = 64 << 10;

/// Replies that wait for room in the terminal.
#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: VecDeque<u8>,
}

impl Replies {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() <= MAX_REPLIES {
            self.bytes.extend(bytes);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes what the terminal takes.
    pub(super) fn write_to(&mut self, pty: &Pty) -> io::Result<()> {
        while !self.bytes.is_empty() {
            let taken = pty.write(self.bytes.as_slices().0)?;
            self.bytes.drain(..taken);
            if taken == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}
