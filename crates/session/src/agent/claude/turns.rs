//! Which run the turn in Claude Code is: one of a prompt, or one that it began by itself.

use bowline_proto::agent::event::RunId;

use super::messages::{LifecycleLine, ResultLine};

/// The most further instructions that may wait in the agent at the same time; then no more are accepted.
const MAX_STEERS: usize = 64;

/// The turn in the agent, and the messages that wait there.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turn: Turn,
    /// Further instructions that the agent has not begun to follow.
    steers: Vec<Steer>,
    /// The agent reports what becomes of messages.
    has_lifecycle: bool,
    /// The agent has said something in this turn.
    pub(super) has_text: bool,
    /// The kind of error that the agent reported last in this turn.
    pub(super) error: Option<String>,
}

#[derive(Debug)]
struct Steer {
    message: String,
    /// A turn has ended, and since then the agent has not begun to follow any instruction.
    has_waited: bool,
}

#[derive(Debug, Default)]
enum Turn {
    #[default]
    Idle,
    Prompt {
        run: RunId,
        message: String,
        state: MessageState,
        /// While it was running, a turn ended that does not name it.
        was_passed_over: bool,
    },
    /// A turn that the agent began by itself. It has no run until the session has named one. One that an instruction is
    /// expected to begin may never begin.
    Own { run: Option<RunId>, has_begun: bool },
}

/// What has become of a prompt's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageState {
    /// It waits in the agent, or is on its way there. A turn that the agent began by itself may be going on.
    Waiting,
    Running,
    Completed,
    Cancelled,
}

/// What a `result` means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// This run ended. `goes_on`: a message that waits is a turn of its own, which begins at once. `is_cancelled`: the
    /// agent did not follow the prompt to its end, whatever the result says.
    Run { run: RunId, goes_on: bool, is_cancelled: bool },
    /// The end of a turn that is no run.
    NoRun,
}

/// A run that ended without a `result`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SilentEnd {
    /// The prompt was cancelled before it ran.
    Prompt(RunId),
    /// The agent is done with the prompt, but the result, which came before, did not name it.
    Unanswered(RunId),
    /// The instruction that would have begun it was cancelled.
    Own(RunId),
}

impl Turns {
    pub(super) fn prompt(&mut self, run: RunId, message: String) {
        // A program that reports what becomes of messages also says when the turn of this one begins.
        let state = if self.has_lifecycle { MessageState::Waiting } else { MessageState::Running };
        self.begin(Turn::Prompt { run, message, state, was_passed_over: false });
    }

    /// The turn that the agent began by itself is this run.
    pub(super) fn handle_own_turn(&mut self, run: RunId) {
        let has_begun = !matches!(self.turn, Turn::Own { has_begun: false, .. });
        self.begin(Turn::Own { run: Some(run), has_begun });
    }

    /// The agent has begun a turn. Whether it began it by itself, and the session has to name a run.
    pub(super) fn handle_turn(&mut self) -> bool {
        match &mut self.turn {
            Turn::Idle => {
                self.begin(Turn::Own { run: None, has_begun: true });
                true
            }
            Turn::Own { has_begun, .. } => {
                *has_begun = true;
                false
            }
            Turn::Prompt { .. } => false,
        }
    }

    fn begin(&mut self, turn: Turn) {
        self.turn = turn;
        (self.has_text, self.error) = (false, None);
    }

    /// The run that the agent works at.
    pub(super) fn run(&self) -> Option<RunId> {
        match &self.turn {
            Turn::Idle | Turn::Prompt { state: MessageState::Waiting, .. } => None,
            Turn::Prompt { run, .. } => Some(*run),
            Turn::Own { run, .. } => *run,
        }
    }

    /// Whether the agent has a turn that can be given more instructions.
    pub(super) fn can_steer(&self) -> bool {
        !matches!(self.turn, Turn::Idle) && self.steers.len() < MAX_STEERS
    }

    pub(super) fn steer(&mut self, message: String) {
        self.steers.push(Steer { message, has_waited: false });
    }

    /// What became of a message. Returns a run that this ended: it has no `result`.
    pub(super) fn handle_lifecycle(&mut self, line: &LifecycleLine) -> Option<SilentEnd> {
        self.has_lifecycle = true;
        let known = self.steers.len();
        if line.state != "queued" {
            self.steers.retain(|steer| steer.message != line.command_uuid);
        }
        let was_steer = self.steers.len() < known;
        if was_steer {
            // The agent takes one after the other.
            self.steers.iter_mut().for_each(|steer| steer.has_waited = false);
        }
        match &mut self.turn {
            Turn::Own { has_begun, .. } if was_steer && line.state == "started" => {
                *has_begun = true;
                None
            }
            // There is nothing left that could begin it.
            Turn::Own { run, has_begun: false } if was_steer && self.steers.is_empty() => {
                let run = *run;
                self.turn = Turn::Idle;
                run.map(SilentEnd::Own)
            }
            Turn::Prompt { run, message, state, was_passed_over } if *message == line.command_uuid => {
                let (run, before) = (*run, *state);
                if *was_passed_over && matches!(line.state.as_str(), "completed" | "cancelled") {
                    self.turn = Turn::Idle;
                    return Some(SilentEnd::Unanswered(run));
                }
                match line.state.as_str() {
                    "queued" => *state = MessageState::Waiting,
                    "started" => *state = MessageState::Running,
                    "completed" => *state = MessageState::Completed,
                    "cancelled" if before == MessageState::Waiting => {
                        self.turn = Turn::Idle;
                        return Some(SilentEnd::Prompt(run));
                    }
                    "cancelled" => *state = MessageState::Cancelled,
                    _ => {}
                }
                if before == MessageState::Waiting && *state != before {
                    // What was said until now belongs to another turn.
                    (self.has_text, self.error) = (false, None);
                }
                None
            }
            Turn::Idle | Turn::Own { .. } | Turn::Prompt { .. } => None,
        }
    }

    /// A turn has ended.
    pub(super) fn handle_result(&mut self, result: &ResultLine) -> TurnEnd {
        let answered = result.user_message_uuids.as_ref().map(|list| list.0.as_slice());
        self.forget_steers(answered.unwrap_or_default());
        let (run, is_cancelled) = match &mut self.turn {
            Turn::Idle => return TurnEnd::NoRun,
            Turn::Prompt { run, message, state, was_passed_over } => {
                let is_answered = match answered {
                    Some(answered) => answered.contains(message),
                    // Such a program does not say which messages it answers. One that does has ended another turn.
                    None => !self.has_lifecycle && result.origin.is_none(),
                };
                // No other result follows for a message that the agent is done with.
                let is_done = matches!(state, MessageState::Completed | MessageState::Cancelled);
                if !is_answered && !is_done {
                    *was_passed_over |= *state == MessageState::Running;
                    return TurnEnd::NoRun;
                }
                (Some(*run), !is_answered && *state == MessageState::Cancelled)
            }
            Turn::Own { run, .. } => (*run, false),
        };
        // A message that the agent has not read yet is one of its own turns, too.
        let goes_on = self.has_lifecycle && !self.steers.is_empty();
        self.turn = if goes_on { Turn::Own { run: None, has_begun: false } } else { Turn::Idle };
        run.map_or(TurnEnd::NoRun, |run| TurnEnd::Run { run, goes_on, is_cancelled })
    }

    /// Forgets the instructions that a turn has answered. Those that waited for a turn already and were passed over were
    /// dropped by the agent: otherwise, every later run would seem to go on with them. Should one of them follow after
    /// all, it begins a turn like any other of the agent's own.
    fn forget_steers(&mut self, answered: &[String]) {
        let known = self.steers.len();
        self.steers.retain(|steer| !answered.contains(&steer.message));
        if self.steers.len() == known {
            self.steers.retain(|steer| !steer.has_waited);
        }
        self.steers.iter_mut().for_each(|steer| steer.has_waited = true);
    }
}
