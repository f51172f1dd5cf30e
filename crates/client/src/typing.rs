//! What the user types: to the program, or as a word to the viewer.

use bowline_proto::link::{NotTaken, Status};

use crate::attach::Outcome;
use crate::keys::{Command, Typed};
use crate::viewer::Viewer;

impl Viewer<'_> {
    /// Takes what the terminal sent.
    pub(crate) fn handle_keys(&mut self, bytes: &[u8]) {
        self.lines.dismiss();
        for typed in self.keys.handle_input(bytes) {
            match typed {
                Typed::Bytes(bytes) => self.handle_typed(&bytes),
                Typed::Command(command) => self.handle_command(command),
            }
        }
    }

    fn handle_typed(&mut self, bytes: &[u8]) {
        // Given up, there is nobody to type to; only the way back is listened for.
        if self.reconnector.status() == Status::Offline {
            if bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
                self.reconnector.handle_wake(self.clock.now());
            }
            return;
        }
        self.typed.extend_from_slice(bytes);
        self.offer_typed();
    }

    /// Gives the link as much of what was typed as it takes.
    pub(crate) fn offer_typed(&mut self) {
        if self.typed.is_empty() {
            return;
        }
        match self.link.handle_input(&self.typed, self.clock.now()) {
            Ok(taken) => drop(self.typed.drain(..taken)),
            Err(NotTaken::ReadOnly) => {
                self.typed.clear();
                self.lines.say("[bowline: watching only, keys are not sent]");
            }
            Err(NotTaken::Ended) => self.typed.clear(),
            // With a connection it is only a matter of time; without one, what does not fit is not kept.
            Err(NotTaken::Full) if self.reconnector.status() != Status::Open => {
                self.typed.clear();
                self.lines.say("[bowline: no connection, and no more keys can be kept]");
            }
            Err(NotTaken::Full) => {}
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Detach => self.outcome = Some(Outcome::Detached),
            Command::ClaimSize if self.options.observe => self.lines.say("[bowline: watching only]"),
            Command::ClaimSize => self.link.claim_size(self.display.size()),
            Command::Redraw if self.reconnector.status() == Status::Open => self.link.repaint(),
            Command::Redraw => self.reconnector.handle_wake(self.clock.now()),
            Command::SendUnsent => {
                self.link.send_unsent();
                self.lines.decided();
            }
            Command::DiscardUnsent => {
                self.link.discard_unsent();
                self.lines.decided();
            }
            Command::Help => self.lines.help(),
        }
    }
}
