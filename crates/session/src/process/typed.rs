//! What goes to the program ahead of everything typed: answers of the terminal.

use std::collections::VecDeque;
use std::io;

use crate::pty::Pty;

/// A program that asks its terminal without ever reading the answers loses those past this.
const MAX_REPLIES: usize = 64 << 10;

/// Bytes that wait for room in the terminal.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    replies: VecDeque<u8>,
}

impl Typed {
    /// Answers of the terminal.
    pub(crate) fn reply(&mut self, bytes: &[u8]) {
        if self.replies.len() + bytes.len() <= MAX_REPLIES {
            self.replies.extend(bytes);
        }
    }

    /// Whether something waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Writes what the terminal takes.
    pub(crate) fn write_to(&mut self, pty: &Pty) -> io::Result<()> {
        while !self.replies.is_empty() {
            let taken = pty.write(self.replies.as_slices().0)?;
            self.replies.drain(..taken);
            if taken == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}
