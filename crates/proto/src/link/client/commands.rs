//! Unanswered commands: each is sent again on every new connection until it is answered.

use std::collections::VecDeque;

use serde_json::Value;

use crate::config::COMMANDS;
use crate::message::ClientMessage;

/// The queue of unanswered commands, oldest first.
#[derive(Debug, Default)]
pub(super) struct Commands {
    unanswered: VecDeque<(String, Value)>,
    /// How many of them were sent on this connection.
    sent: usize,
}

impl Commands {
    /// Returns false if [`COMMANDS`] are unanswered already.
    pub(super) fn push(&mut self, id: String, command: Value) -> bool {
        let fits = self.unanswered.len() < COMMANDS;
        if fits {
            self.unanswered.push_back((id, command));
        }
        fits
    }

    pub(super) fn poll_transmit(&mut self) -> Option<ClientMessage> {
        let (id, command) = self.unanswered.get(self.sent)?.clone();
        self.sent += 1;
        Some(ClientMessage::Command { id, command })
    }

    /// The server accepted or rejected a command.
    pub(super) fn handle_answer(&mut self, id: &str) {
        if let Some(at) = self.unanswered.iter().position(|(other, _)| other == id) {
            self.unanswered.remove(at);
            self.sent -= usize::from(at < self.sent);
        }
    }

    /// All unanswered commands are sent again on the next connection.
    pub(super) fn handle_disconnected(&mut self) {
        self.sent = 0;
    }

    /// Removes all commands, and returns their ids.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = String> {
        self.sent = 0;
        self.unanswered.drain(..).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(commands: &mut Commands) -> Option<String> {
        commands.poll_transmit().map(|message| match message {
            ClientMessage::Command { id, .. } => id,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn unanswered_commands_are_sent_again() {
        let mut commands = Commands::default();
        for id in ["a", "b", "c"] {
            assert!(commands.push(id.to_owned(), Value::Null));
        }
        assert_eq!((next(&mut commands), next(&mut commands)), (Some("a".into()), Some("b".into())));
        commands.handle_answer("a");
        commands.handle_answer("unknown");
        assert_eq!((next(&mut commands), next(&mut commands)), (Some("c".into()), None));
        commands.handle_disconnected();
        assert_eq!(next(&mut commands), Some("b".into()));
        assert_eq!(commands.drain().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(next(&mut commands), None);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut commands = Commands::default();
        assert!((0..COMMANDS).all(|n| commands.push(n.to_string(), Value::Null)));
        assert!(!commands.push("more".to_owned(), Value::Null));
    }
}
