//! The commands that the user gave and whose events have not arrived yet, as they are shown.

use bowline_proto::agent::approval::ApprovalId;
use bowline_proto::agent::command::AgentCommand;
use bowline_proto::agent::event::RunId;
use bowline_proto::post::{Delivery, Failure, FailureReason, State, WaitReason};

use super::text::{Paint, Style, Text};
use super::wording::already_answered;
use crate::escape::one_line;

/// Commands in the order in which they were given.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    commands: Vec<Posted>,
}

#[derive(Debug)]
struct Posted {
    id: String,
    command: AgentCommand,
    state: State,
    stop: StopRequest,
}

/// Whether the user wants the run of a prompt to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopRequest {
    None,
    /// It is to be stopped, once it is known.
    Pending,
    /// It is known, and the session is told.
    Made,
}

/// When the run of a prompt can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Now(RunId),
    /// Once the session has accepted the prompt: then its run is known.
    Later,
}

/// What became of a command, for the user to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It was given up. Why, in words.
    Failed(String),
    /// The approval was answered before, as these words say.
    TooLate { approval: ApprovalId, how: String },
    /// It is the prompt of this run, which the user wants to stop.
    Unwanted(RunId),
}

impl Posted {
    /// The approval that it answers.
    fn answers(&self) -> Option<ApprovalId> {
        match &self.command {
            AgentCommand::Approve { approval, .. }
            | AgentCommand::Deny { approval, .. }
            | AgentCommand::Answer { approval, .. } => Some(*approval),
            AgentCommand::Prompt { .. }
            | AgentCommand::Abort { .. }
            | AgentCommand::Steer { .. }
            | AgentCommand::Set(_) => None,
        }
    }

    /// The text of a prompt in one line; what another command does.
    fn title(&self) -> String {
        match &self.command {
            AgentCommand::Prompt { text, .. } | AgentCommand::Steer { text, .. } => one_line(text),
            AgentCommand::Abort { .. } => "the request to stop".to_owned(),
            AgentCommand::Approve { .. } | AgentCommand::Deny { .. } | AgentCommand::Answer { .. } => {
                "the answer".to_owned()
            }
            AgentCommand::Set(_) => "the setting".to_owned(),
        }
    }

    /// A prompt that is on its way.
    fn is_coming_prompt(&self) -> bool {
        matches!(&self.command, AgentCommand::Prompt { .. }) && !matches!(self.state, State::Failed(_))
    }

    /// The run of a prompt that the session has accepted.
    fn run(&self) -> Option<RunId> {
        match &self.state {
            State::Delivered(Delivery::Accepted { run, .. }) => run.as_ref()?.parse().ok(),
            _ => None,
        }
    }

    fn is_accepted(&self) -> bool {
        matches!(self.state, State::Delivered(_))
    }

    fn is_failed_prompt(&self) -> bool {
        matches!((&self.command, &self.state), (AgentCommand::Prompt { .. }, State::Failed(_)))
    }
}

impl Outgoing {
    pub(crate) fn handle_posted(&mut self, id: String, command: AgentCommand) {
        self.commands.push(Posted { id, command, state: State::Sending { tries: 0 }, stop: StopRequest::None });
    }

    /// The event of this command has arrived. Returns whether it is a prompt whose run is to be stopped.
    pub(crate) fn handle_recorded(&mut self, id: &str) -> bool {
        let recorded = self.commands.extract_if(.., |posted| posted.id == id);
        recorded.into_iter().any(|posted| posted.stop == StopRequest::Pending)
    }

    /// The run of the oldest prompt that is on its way, and is not to be stopped yet, is to be stopped. `None` if there is no
    /// such prompt.
    pub(crate) fn stop_next_prompt(&mut self) -> Option<Stop> {
        let can_stop = |posted: &&mut Posted| posted.is_coming_prompt() && posted.stop == StopRequest::None;
        let posted = self.commands.iter_mut().find(can_stop)?;
        let run = posted.run();
        posted.stop = if run.is_some() { StopRequest::Made } else { StopRequest::Pending };
        Some(run.map_or(Stop::Later, Stop::Now))
    }

    /// The history was read again: what was accepted before is in it.
    pub(crate) fn handle_history(&mut self) {
        self.commands.retain(|posted| !posted.is_accepted());
    }

    /// The state of a command changed.
    pub(crate) fn handle_state(&mut self, id: &str, state: State) -> Option<Settled> {
        let at = self.commands.iter().position(|posted| posted.id == id)?;
        let posted = self.commands.get_mut(at)?;
        posted.state = state;
        match &posted.state {
            // The event of an accepted command removes it. Its sender decides about a prompt that failed.
            State::Waiting { .. } | State::Sending { .. } | State::Retrying { .. } => None,
            State::Delivered(Delivery::Accepted { .. }) => {
                let run = posted.run().filter(|_| posted.stop == StopRequest::Pending)?;
                posted.stop = StopRequest::Made;
                Some(Settled::Unwanted(run))
            }
            State::Failed(_) if posted.is_failed_prompt() => None,
            State::Delivered(Delivery::AlreadyAnswered { outcome, by }) => {
                let is_question = matches!(posted.command, AgentCommand::Answer { .. });
                let how = already_answered(is_question, *outcome, by.as_deref());
                let approval = posted.answers()?;
                self.commands.remove(at);
                Some(Settled::TooLate { approval, how })
            }
            State::Delivered(Delivery::NotRunning) => {
                self.commands.remove(at);
                None
            }
            State::Failed(failure) => {
                let line = format!("{} was not delivered: {}", posted.title(), describe(failure));
                self.commands.remove(at);
                Some(Settled::Failed(line))
            }
        }
    }

    /// Whether an answer to this approval is on its way.
    pub(crate) fn is_answering(&self, approval: ApprovalId) -> bool {
        self.commands.iter().any(|posted| posted.answers() == Some(approval))
    }

    /// The oldest prompt that was not delivered.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.commands.iter().find(|posted| posted.is_failed_prompt()).map(|posted| posted.id.as_str())
    }

    /// The prompt is sent again.
    pub(crate) fn handle_sent_again(&mut self, id: &str) {
        if let Some(posted) = self.commands.iter_mut().find(|posted| posted.id == id) {
            (posted.state, posted.stop) = (State::Sending { tries: 0 }, StopRequest::None);
        }
    }

    /// Whether a command is on its way that may still arrive.
    pub(crate) fn is_delivering(&self) -> bool {
        let is_on_its_way = |posted: &Posted| !matches!(posted.state, State::Delivered(_) | State::Failed(_));
        self.commands.iter().any(is_on_its_way)
    }

    /// Whether this command is among them.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.commands.iter().any(|posted| posted.id == id)
    }

    /// How many commands the session has not accepted.
    pub(crate) fn undelivered(&self) -> usize {
        self.commands.iter().filter(|posted| !posted.is_accepted()).count()
    }

    /// The texts of the prompts that the session has not accepted.
    pub(crate) fn undelivered_prompts(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().filter(|posted| !posted.is_accepted()).filter_map(|posted| match &posted.command {
            AgentCommand::Prompt { text, .. } | AgentCommand::Steer { text, .. } => Some(text.as_str()),
            AgentCommand::Approve { .. }
            | AgentCommand::Deny { .. }
            | AgentCommand::Answer { .. }
            | AgentCommand::Abort { .. }
            | AgentCommand::Set(_) => None,
        })
    }

    /// A row for each command that has not arrived.
    pub(crate) fn rows(&self, style: Style) -> Vec<String> {
        let row = |posted: &Posted| {
            let title = posted.title();
            let text = match &posted.state {
                State::Failed(failure) => {
                    let why = describe(failure);
                    Text::new(
                        &format!("✗ not delivered: {why} · Ctrl-R sends it again · Ctrl-X discards it"),
                        Paint::RED,
                    )
                    .with(&format!(" · {title}"), Paint::DIM)
                }
                _ if posted.stop != StopRequest::None => Text::new(&format!("> {title} (will be stopped)"), Paint::DIM),
                State::Sending { tries: 0 } | State::Delivered(_) | State::Waiting { why: WaitReason::Turn } => {
                    Text::new(&format!("> {title}"), Paint::DIM)
                }
                State::Waiting { why } => {
                    let why = match why {
                        WaitReason::Turn | WaitReason::Held => "waits for the one before",
                        WaitReason::Login => "the server does not accept the token",
                        WaitReason::Offline => "offline",
                    };
                    Text::new(&format!("> {title} ({why})"), Paint::DIM)
                }
                State::Sending { .. } => Text::new(&format!("> {title} (trying again)"), Paint::DIM),
                State::Retrying { message, .. } => {
                    Text::new(&format!("> {title} (not delivered yet: {message})"), Paint::DIM)
                }
            };
            text.cut(style.cut_columns()).line(style)
        };
        self.commands.iter().map(row).collect()
    }
}

/// Why a command failed, in words.
pub(super) fn describe(failure: &Failure) -> String {
    let reason = match &failure.reason {
        FailureReason::Refused { .. } => "it was refused",
        FailureReason::SessionGone => "the session has ended",
        FailureReason::NoSpace => "the disk, or the session's journal, is full",
        FailureReason::Expired => "no answer within ten minutes",
        FailureReason::Old => "it is more than ten minutes old",
        FailureReason::Unreadable => "it cannot be read",
    };
    match failure.message.as_str() {
        "" => reason.to_owned(),
        message => one_line(message),
    }
}
