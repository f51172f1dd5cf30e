//! What the user types: to the program, or as a word to the viewer.

use bowline_proto::link::{NotTaken, Status, Unsent};

use crate::attach::Outcome;
use crate::keys::{Command, Typed};
use crate::viewer::Viewer;

impl Viewer<'_> {
    /// Takes what the terminal sent.
    pub(crate) fn handle_keys(&mut self, bytes: &[u8]) {
        self.lines.dismiss();
        // A terminal's reports, such as those of the mouse, are nobody's answer.
        if !bytes.starts_with(b"\x1b") && self.lines.next_key_forgets() {
            self.handle_command(Command::DiscardUnsent);
        }
        for typed in self.keys.handle_input(bytes) {
            match typed {
                Typed::Bytes(bytes) => self.handle_typed(&bytes),
                Typed::Command(command) => self.handle_command(command),
            }
        }
    }

    fn handle_typed(&mut self, bytes: &[u8]) {
        let status = self.reconnector.status();
        // Given up, Enter is the way back. Pressed alone it is for nothing else; all other keys are kept.
        if status == Status::Offline && bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            self.reconnector.handle_wake(self.clock.now());
            if bytes.len() == 1 {
                return;
            }
        }
        self.backlog.push(bytes, status != Status::Open);
        self.lines.undecided(&self.backlog);
        self.offer_typed();
    }

    /// Gives the link as much of what was typed as it takes.
    pub(crate) fn offer_typed(&mut self) {
        if self.backlog.rest().is_empty() {
            return;
        }
        match self.link.handle_input(self.backlog.rest(), self.clock.now()) {
            Ok(taken) => self.backlog.taken(taken),
            Err(NotTaken::ReadOnly) => {
                self.backlog.forget_rest();
                self.lines.say("[bowline: watching only, keys are not sent]");
            }
            Err(NotTaken::Ended) => self.backlog.forget_rest(),
            Err(NotTaken::Full) => {}
        }
    }

    /// The link gave typed bytes back. They are kept here, with what was typed after them.
    pub(crate) fn hold_unsent(&mut self, unsent: &Unsent) {
        self.link.discard_unsent();
        self.backlog.hold(unsent);
        self.lines.undecided(&self.backlog);
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Detach => self.outcome = Some(Outcome::Detached),
            Command::ClaimSize if self.options.observe => self.lines.say("[bowline: watching only]"),
            Command::ClaimSize => self.link.claim_size(self.display.size()),
            Command::Redraw if self.reconnector.status() == Status::Open => self.link.repaint(),
            Command::Redraw => self.reconnector.handle_wake(self.clock.now()),
            Command::SendUnsent => {
                self.backlog.send();
                self.lines.undecided(&self.backlog);
                self.offer_typed();
            }
            Command::DiscardUnsent => {
                self.backlog.discard();
                self.lines.undecided(&self.backlog);
            }
            Command::Help => self.lines.help(),
        }
    }
}
