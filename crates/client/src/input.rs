//! Handles the user's input: bytes for the program, and commands to the viewer.

use bowline_proto::link::{Status, SubmitError};

use crate::attach::Outcome;
use crate::keys::{Command, KeyInput, MAX_KEY};
use crate::poll::MAX_READ;
use crate::viewer::Viewer;

impl Viewer<'_> {
    /// Handles bytes that were read from the terminal.
    pub(crate) fn handle_keys(&mut self, bytes: &[u8]) {
        self.status_line.clear_hint();
        // Reports that the terminal sends, such as those of the mouse, are not a decision by the user.
        if !bytes.starts_with(b"\x1b") && self.status_line.next_key_discards() {
            self.handle_command(Command::DiscardUnsent);
        }
        let had_room = self.has_room();
        for input in self.keys.handle_input(bytes) {
            match input {
                // The bytes of one read are kept together, even if commands divide them. A command may make room.
                KeyInput::Bytes(bytes) => self.send_input(&bytes, had_room || self.has_room()),
                KeyInput::Command(command) => self.handle_command(command),
            }
        }
    }

    fn send_input(&mut self, bytes: &[u8], has_room: bool) {
        let status = self.reconnector.status();
        // After giving up, Enter reconnects. Pressed alone it is not sent to the program; all other keys are kept.
        if status == Status::Offline && bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            self.reconnector.handle_wake(self.clock.now());
            if bytes.len() == 1 {
                return;
            }
        }
        // A paste arrives in pieces. Once a piece does not fit, later ones must be dropped too, even if they are
        // shorter: the program must not get the end of a paste without its beginning.
        if !has_room {
            return self.status_line.add_dropped(bytes.len());
        }
        match self.link.handle_input(bytes, self.clock.now()) {
            Ok(()) | Err(SubmitError::Ended) => {}
            Err(SubmitError::ReadOnly) => self.status_line.show_hint("[bowline: read-only, keys are not sent]"),
            Err(SubmitError::Full) => self.status_line.add_dropped(bytes.len()),
        }
    }

    /// Whether the link has room for everything that one read of the terminal can bring.
    fn has_room(&self) -> bool {
        self.link.input_room() >= MAX_READ + MAX_KEY
    }

    /// Whether to read keys. While the link is full, keys stay in the terminal's own queue until the session accepts
    /// earlier input. If it cannot accept any, keys are read anyway, because one may be a command to the viewer: to
    /// detach while disconnected, or to decide about unsent input when the link holds nothing else.
    pub(crate) fn wants_keys(&self) -> bool {
        let disconnected = self.reconnector.status() != Status::Open;
        disconnected || self.has_room() || self.link.unconfirmed_input() == 0
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Detach => self.outcome = Some(Outcome::Detached { unsent: 0 }),
            Command::ClaimSize if self.options.observe => {
                self.status_line.show_hint("[bowline: read-only, cannot resize the session]");
            }
            Command::ClaimSize => self.link.claim_size(self.display.size()),
            Command::Redraw if self.reconnector.status() == Status::Open => self.link.repaint(),
            Command::Redraw => self.reconnector.handle_wake(self.clock.now()),
            Command::SendUnsent => {
                self.link.send_unsent(self.clock.now());
                self.status_line.clear_unsent();
            }
            Command::DiscardUnsent => {
                self.link.discard_unsent();
                self.status_line.clear_unsent();
            }
            Command::Help => self.status_line.show_help(),
        }
    }
}
