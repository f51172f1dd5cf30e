//! What goes to the program beside the viewers' keys: answers of the terminal, and text sent by commands.

use std::collections::VecDeque;
use std::io;

use crate::pty::Pty;

/// A program that asks its terminal without ever reading the answers loses those past this.
const MAX_REPLIES: usize = 64 << 10;
/// Text of commands that the program has not read; a command past this is refused.
pub(crate) const MAX_COMMANDS: usize = 256 << 10;

/// Bytes that wait for room in the terminal.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    replies: VecDeque<u8>,
    commands: VecDeque<u8>,
}

impl Typed {
    /// Answers of the terminal.
    pub(crate) fn reply(&mut self, bytes: &[u8]) {
        if self.replies.len() + bytes.len() <= MAX_REPLIES {
            self.replies.extend(bytes);
        }
    }

    /// Whether a command may bring this much text.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.commands.len() + len <= MAX_COMMANDS
    }

    /// Text of a command.
    pub(crate) fn command(&mut self, bytes: &[u8]) {
        self.commands.extend(bytes);
    }

    /// Whether something waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty() && self.commands.is_empty()
    }

    /// Writes what the terminal takes: answers first, since a program waits for them.
    pub(crate) fn write_to(&mut self, pty: &Pty) -> io::Result<()> {
        for queue in [&mut self.replies, &mut self.commands] {
            while !queue.is_empty() {
                let taken = pty.write(queue.as_slices().0)?;
                queue.drain(..taken);
                if taken == 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
