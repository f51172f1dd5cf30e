//! Commands on their way: each is repeated on the next connection until it is answered.

use std::collections::VecDeque;

use serde_json::Value;

use crate::config::COMMANDS;
use crate::message::ClientMessage;

/// The commands without an answer, oldest first.
#[derive(Debug, Default)]
pub(super) struct Commands {
    waiting: VecDeque<(String, Value)>,
    /// How many of them this connection has carried.
    carried: usize,
}

impl Commands {
    /// Keeps a command. False when no more can be kept.
    pub(super) fn push(&mut self, id: String, command: Value) -> bool {
        let fits = self.waiting.len() < COMMANDS;
        if fits {
            self.waiting.push_back((id, command));
        }
        fits
    }

    /// The next to send.
    pub(super) fn poll_transmit(&mut self) -> Option<ClientMessage> {
        let (id, command) = self.waiting.get(self.carried)?.clone();
        self.carried += 1;
        Some(ClientMessage::Command { id, command })
    }

    /// It was accepted or rejected.
    pub(super) fn handle_answer(&mut self, id: &str) {
        if let Some(at) = self.waiting.iter().position(|(other, _)| other == id) {
            self.waiting.remove(at);
            self.carried -= usize::from(at < self.carried);
        }
    }

    /// The connection is gone: all that wait are sent again.
    pub(super) fn handle_disconnected(&mut self) {
        self.carried = 0;
    }

    /// Takes all of them back, and returns their ids.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = String> {
        self.carried = 0;
        self.waiting.drain(..).map(|(id, _)| id)
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
    fn what_is_not_answered_is_sent_again() {
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
        assert_eq!(commands.take_all().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(next(&mut commands), None);
    }

    #[test]
    fn they_are_bounded() {
        let mut commands = Commands::default();
        assert!((0..COMMANDS).all(|n| commands.push(n.to_string(), Value::Null)));
        assert!(!commands.push("more".to_owned(), Value::Null));
    }
}
