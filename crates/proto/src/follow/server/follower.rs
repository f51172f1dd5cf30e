//! An attached client: what it may do, the next event that it is sent, and the answers that wait for it.

use std::collections::VecDeque;

use crate::config::COMMANDS;
use crate::follow::FollowMessage;
use crate::link::server::caller::ClientKey;
use crate::message::{Cursor, Hello};

/// An attached client.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) client: ClientKey,
    /// The number of the connection attempt, counted by the client.
    pub(super) dial: u64,
    /// The gateway or the local socket allows the client to write, whether it wants to or not.
    pub(super) granted: bool,
    /// May send commands.
    pub(super) write: bool,
    /// The name under which its commands are recorded.
    pub(super) by: String,
    /// The cursor of the hello, until `attached` answers it.
    pub(super) unanswered_hello: Option<Option<Cursor>>,
    /// The number of the next event that is sent. 0 before `attached`.
    pub(super) next: u64,
    /// Commands that the driver has not answered.
    running_commands: usize,
    /// Answers that wait for room on the connection.
    answers: VecDeque<FollowMessage>,
}

impl Follower {
    pub(super) fn new(client: ClientKey, hello: Hello, granted: bool) -> Follower {
        Follower {
            client,
            dial: hello.conn,
            granted,
            write: granted && !hello.observe,
            by: match hello.grant {
                None => "local".to_owned(),
                // An older gateway does not name its callers.
                Some(grant) => grant.name.or(grant.caller).unwrap_or_else(|| "gateway".to_owned()),
            },
            unanswered_hello: Some(hello.cursor),
            next: 0,
            running_commands: 0,
            answers: VecDeque::new(),
        }
    }

    /// Commands whose answer has not been sent. Those wait in memory, so they count until the client reads them.
    pub(super) fn unanswered_commands(&self) -> usize {
        self.running_commands + self.answers.len()
    }

    /// Whether so many answers wait that a command cannot even be rejected: the client sends and does not read.
    pub(super) fn answers_are_full(&self) -> bool {
        self.unanswered_commands() >= 2 * COMMANDS
    }

    pub(super) fn handle_command(&mut self) {
        self.running_commands += 1;
    }

    pub(super) fn handle_command_done(&mut self, answer: FollowMessage) {
        self.running_commands = self.running_commands.saturating_sub(1);
        self.answers.push_back(answer);
    }

    /// Answers a command that the driver does not get.
    pub(super) fn reject(&mut self, rejected: FollowMessage) {
        self.answers.push_back(rejected);
    }

    pub(super) fn next_answer(&mut self) -> Option<FollowMessage> {
        self.answers.pop_front()
    }
}
