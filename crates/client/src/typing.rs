//! What the user types: to the program, or as a word to the viewer.

use bowline_proto::link::{NotTaken, Status};

use crate::attach::Outcome;
use crate::keys::{Command, MAX_KEY, Typed};
use crate::viewer::Viewer;
use crate::waiting::READ;

impl Viewer<'_> {
    /// Takes what the terminal sent.
    pub(crate) fn handle_keys(&mut self, bytes: &[u8]) {
        self.lines.dismiss();
        // A terminal's reports, such as those of the mouse, are nobody's answer.
        if !bytes.starts_with(b"\x1b") && self.lines.next_key_forgets() {
            self.handle_command(Command::DiscardUnsent);
        }
        let had_room = self.has_room();
        for typed in self.keys.handle_input(bytes) {
            match typed {
                // What one read brings is kept whole, also when commands divide it. A decision makes room within it.
                Typed::Bytes(bytes) => self.handle_typed(&bytes, had_room || self.has_room()),
                Typed::Command(command) => self.handle_command(command),
            }
        }
    }

    fn handle_typed(&mut self, bytes: &[u8], has_room: bool) {
        let status = self.reconnector.status();
        // Given up, Enter is the way back. Pressed alone it is for nothing else; all other keys are kept.
        if status == Status::Offline && bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            self.reconnector.handle_wake(self.clock.now());
            if bytes.len() == 1 {
                return;
            }
        }
        // A paste comes in pieces. Once one does not fit, a shorter one after it must not, or the program would get a tail
        // without what is before it.
        if !has_room {
            return self.lines.lost(bytes.len());
        }
        match self.link.handle_input(bytes, self.clock.now()) {
            Ok(()) | Err(NotTaken::Ended) => {}
            Err(NotTaken::ReadOnly) => self.lines.say("[bowline: watching only, keys are not sent]"),
            Err(NotTaken::Full) => self.lines.lost(bytes.len()),
        }
    }

    /// Whether the link has room for all that one read of the terminal can bring.
    fn has_room(&self) -> bool {
        self.link.input_room() >= READ + MAX_KEY
    }

    /// Whether keys are to be read. Without room for them they wait in the terminal's own queue until the session has
    /// taken some of what was typed before. Where it takes nothing, they are read all the same, since one of them may be for
    /// the viewer itself: without a connection the detach key, and while all that waits is unsent the decision about it.
    pub(crate) fn wants_keys(&self) -> bool {
        let away = self.reconnector.status() != Status::Open;
        away || self.has_room() || self.link.input_waiting() == 0
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Detach => self.outcome = Some(Outcome::Detached { unsent: 0 }),
            Command::ClaimSize if self.options.observe => self.lines.say("[bowline: watching only]"),
            Command::ClaimSize => self.link.claim_size(self.display.size()),
            Command::Redraw if self.reconnector.status() == Status::Open => self.link.repaint(),
            Command::Redraw => self.reconnector.handle_wake(self.clock.now()),
            Command::SendUnsent => {
                self.link.send_unsent(self.clock.now());
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
