//! The machine that gives every accepted prompt exactly one `complete`, whatever the agent does.
//!
//! The driver records a command as its event first, and then reports it here. What follows comes out of
//! [`Runs::poll_output`], in order: events to append, and what to do with the agent's program. Nothing may be done before
//! the events in front of it are in the journal.

use std::collections::VecDeque;
use std::time::Duration;

use super::command::MAX_WAITING;
use super::event::{AgentEvent, Cause, Complete, Level, RunError, RunId};

/// An agent that starts may be silent for this long. After that it is ended, and the waiting runs fail.
pub const START_SILENCE: Duration = Duration::from_secs(60);
/// How long an agent may take to end a run that is being aborted. After that its program is asked to exit.
pub const CANCEL_WITHIN: Duration = Duration::from_secs(2);
/// How long it may take to exit. After that it is killed.
pub const EXIT_WITHIN: Duration = Duration::from_secs(2);
/// How long the end of the tools of an aborted run may take. After that the agent's program is asked to exit, too.
pub const TOOLS_WITHIN: Duration = Duration::from_secs(6);
/// A second abort counts as impatience, and skips [`CANCEL_WITHIN`], only if it comes this long after the first: a double
/// click is one abort.
pub const ABORT_AGAIN: Duration = Duration::from_millis(500);

/// What the driver does next.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are events")]
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Append this event to the journal.
    Append(AgentEvent),
    /// Start the agent's program, with the conversation that the journal names.
    Start,
    /// Give this prompt to the agent.
    Send { run: RunId, prompt: Prompt },
    /// Tell the agent to stop its run.
    Cancel,
    /// Close the program's standard input, and send SIGTERM to it and everything that it started.
    Terminate,
    /// Send SIGKILL to it and everything that it started.
    Kill,
}

/// The content of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    /// The ids of uploads.
    pub attachments: Vec<String>,
}

/// How the agent says that a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The agent reported a normal end.
    pub success: bool,
    /// Why it stopped, in its words.
    pub stop_reason: Option<String>,
    pub error: Option<RunError>,
    /// The agent goes on at once with a turn of its own, before it takes another prompt.
    pub goes_on: bool,
}

/// How the agent's program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramExit {
    pub code: Option<i32>,
    pub signal: Option<String>,
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{MAX_WAITING} prompts are waiting already; send this one when a run has ended")]
    QueueFull,
    #[error("that run is not open; it may have ended already")]
    NotRunning,
}

/// The runs of a session, and the state of the agent's program.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    next: RunId,
    /// Runs without a `complete`, oldest first. Only the first can be in the agent.
    open: VecDeque<OpenRun>,
    program: Program,
    /// When the agent's program is asked to exit, or is killed, because it has not done what it was told.
    stop: Option<Stop>,
    /// The session is being ended, and accepts nothing more.
    ending: bool,
    conversation: Option<String>,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenRun {
    run: RunId,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The agent does not have the prompt yet.
    Waiting(Prompt),
    Running,
    /// A client aborted it, last at this time.
    Cancelling {
        last_abort: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Absent,
    /// It has not said yet that it is ready for prompts. If it `is_gone`, it never will.
    Starting {
        silent_since: Duration,
        is_gone: bool,
    },
    Ready,
    /// It was asked to exit, and gets no more prompts.
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Ask it to exit at this time.
    TerminateAt(Duration),
    /// Kill it at this time.
    KillAt(Duration),
}

impl Runs {
    /// The machine of a session whose earlier runs have all ended. `next` is the first unused id.
    pub fn new(next: RunId, conversation: Option<String>) -> Runs {
        Runs {
            next,
            open: VecDeque::new(),
            program: Program::Absent,
            stop: None,
            ending: false,
            conversation,
            outputs: VecDeque::new(),
        }
    }

    /// The id of the next run, unless no prompt can be accepted now.
    pub fn check_prompt(&self) -> Result<RunId, Refused> {
        let waiting = self.open.iter().filter(|open| matches!(open.phase, Phase::Waiting(_))).count();
        if waiting < MAX_WAITING { Ok(self.next) } else { Err(Refused::QueueFull) }
    }

    /// Whether this run is in the agent and is not being aborted, so that it can be given more instructions.
    pub fn check_steer(&self, run: RunId) -> Result<(), Refused> {
        let is_running = |open: &OpenRun| open.run == run && open.phase == Phase::Running;
        let is_steerable = self.program == Program::Ready && self.open.front().is_some_and(is_running);
        if is_steerable { Ok(()) } else { Err(Refused::NotRunning) }
    }

    /// Whether this run can be aborted.
    pub fn check_abort(&self, run: RunId) -> Result<(), Refused> {
        if self.open.iter().any(|open| open.run == run) { Ok(()) } else { Err(Refused::NotRunning) }
    }

    /// A prompt was accepted and recorded as the run that [`Runs::check_prompt`] returned.
    pub fn handle_prompt(&mut self, prompt: Prompt, now: Duration) {
        self.open.push_back(OpenRun { run: self.next, phase: Phase::Waiting(prompt) });
        self.next.0 += 1;
        if self.ending {
            return self.interrupt_waiting();
        }
        self.advance(now);
    }

    /// Starts the program although no prompt waits, so that a mistake is noticed before the first one.
    pub fn handle_opened(&mut self, now: Duration) {
        self.start(now);
    }

    /// An abort was accepted and recorded.
    pub fn handle_abort(&mut self, run: RunId, and_later: bool, now: Duration) {
        // Later by position: a run that the agent began by itself comes before prompts with lower numbers.
        let Some(at) = self.open.iter().position(|open| open.run == run) else { return };
        let end = if and_later { self.open.len() } else { at + 1 };
        let is_waiting = |open: &&OpenRun| matches!(open.phase, Phase::Waiting(_));
        let ended: Vec<RunId> = self.open.range(at..end).filter(is_waiting).map(|open| open.run).collect();
        self.open.retain(|open| !ended.contains(&open.run));
        for run in ended {
            self.complete(Complete { run, aborted: true, ..Complete::default() });
        }
        let Some(open) = self.open.front_mut().filter(|open| open.run == run) else { return };
        match open.phase {
            Phase::Running => {
                open.phase = Phase::Cancelling { last_abort: now };
                // One that was asked to exit already has its deadline.
                if self.program != Program::Leaving {
                    self.outputs.push_back(Output::Cancel);
                    self.stop_sooner(Stop::TerminateAt(now + CANCEL_WITHIN));
                }
            }
            Phase::Cancelling { last_abort } if now >= last_abort + ABORT_AGAIN => {
                open.phase = Phase::Cancelling { last_abort: now };
                self.terminate(now);
            }
            Phase::Cancelling { .. } | Phase::Waiting(_) => {}
        }
    }

    /// The agent printed something. While it starts, it may take its time as long as it does.
    pub fn handle_activity(&mut self, now: Duration) {
        if let Program::Starting { silent_since, .. } = &mut self.program {
            *silent_since = now;
        }
    }

    /// The agent is ready for prompts.
    pub fn handle_ready(&mut self, now: Duration) {
        if let Program::Starting { is_gone: false, .. } = self.program {
            self.program = Program::Ready;
            self.advance(now);
        }
    }

    /// The agent cannot be used: its program cannot be run, or it refused the conversation.
    pub fn handle_unusable(&mut self, error: &RunError, program_runs: bool, now: Duration) {
        self.fail_waiting(error);
        match program_runs {
            true => self.terminate(now),
            false => (self.program, self.stop) = (Program::Absent, None),
        }
    }

    /// The program has to be started again, because it cannot continue the conversation. Runs that wait go on waiting.
    pub fn handle_restart(&mut self, now: Duration) {
        if let Program::Starting { .. } = self.program {
            self.terminate(now);
        }
    }

    /// The agent says that a run ended. If it goes on by itself, that is the run that is returned.
    pub fn handle_end(&mut self, run: RunId, end: End, now: Duration) -> Option<RunId> {
        let is_current = |open: &OpenRun| open.run == run && !matches!(open.phase, Phase::Waiting(_));
        if !self.open.front().is_some_and(is_current) {
            let text = format!("the agent reported the end of {run}, which is not in it");
            self.append(AgentEvent::Notice { level: Level::Debug, text });
            return None;
        }
        let goes_on = end.goes_on;
        let ended = self.end_current(end, None);
        if self.ending {
            self.terminate(now);
        } else if self.program != Program::Leaving {
            self.stop = None; // the agent did as it was told
        }
        let own = if goes_on { self.handle_own_turn() } else { None };
        self.after(ended, now);
        own
    }

    /// The agent says that a run ended that is being aborted, but tools of that run have not ended yet. The agent did as it
    /// was told, and is not asked to exit. [`Runs::handle_end`] follows, within [`TOOLS_WITHIN`].
    pub fn handle_tools_left(&mut self, run: RunId, now: Duration) {
        let is_meant = self.is_cancelling() && self.current() == Some(run);
        if is_meant && !self.ending && self.program != Program::Leaving {
            self.stop = Some(Stop::TerminateAt(now + TOOLS_WITHIN));
        }
    }

    /// The agent began a turn by itself. It becomes a run, unless another one is in the agent already: that may not have
    /// reached the agent yet, and must not end with this turn.
    pub fn handle_own_turn(&mut self) -> Option<RunId> {
        if self.current().is_some() || !matches!(self.program, Program::Ready) || self.ending {
            return None;
        }
        let run = self.next;
        self.next.0 += 1;
        self.open.push_front(OpenRun { run, phase: Phase::Running });
        self.append(AgentEvent::RunStarted { run, cause: Cause::Agent });
        Some(run)
    }

    /// The agent's program has exited. Its last words and its end follow; it gets no more prompts.
    pub fn handle_gone(&mut self) {
        match &mut self.program {
            Program::Absent => {}
            Program::Starting { is_gone, .. } => *is_gone = true,
            Program::Ready | Program::Leaving => self.program = Program::Leaving,
        }
    }

    /// The program has closed its standard input or output. It gets no more prompts, and is asked to exit if it does not.
    pub fn handle_closed(&mut self, now: Duration) {
        match self.program {
            Program::Absent | Program::Leaving => return,
            // Its exit, which usually follows, says more about why it did not start.
            Program::Starting { .. } => self.handle_gone(),
            Program::Ready => self.program = Program::Leaving,
        }
        self.stop_sooner(Stop::TerminateAt(now + CANCEL_WITHIN));
    }

    /// The agent's program exited, and everything that it printed was handled.
    pub fn handle_exit(&mut self, exit: &ProgramExit, now: Duration) {
        let was_starting = matches!(self.program, Program::Starting { .. });
        (self.program, self.stop) = (Program::Absent, None);
        let ended = self.current().map(|_| self.end_current(End::default(), Some(exit)));
        if self.ending {
            return self.interrupt_waiting();
        }
        match ended {
            Some(ended) => self.after(ended, now),
            None if was_starting => self.fail_start(&exit_error(exit)),
            None => self.advance(now),
        }
    }

    /// The conversation's id changed.
    pub fn handle_conversation(&mut self, id: &str) {
        self.conversation = Some(id.to_owned());
    }

    /// The session is being ended: the agent may take this long. Can be called again to give it less time.
    pub fn handle_ending(&mut self, grace: Duration, now: Duration) {
        let was_ending = std::mem::replace(&mut self.ending, true);
        self.interrupt_waiting();
        if self.program == Program::Absent {
            return;
        }
        if self.current().is_none() || self.program == Program::Leaving {
            return self.terminate(now);
        }
        if !was_ending && !matches!(self.open.front(), Some(OpenRun { phase: Phase::Cancelling { .. }, .. })) {
            self.outputs.push_back(Output::Cancel);
        }
        // The same share of the time as in an abort, if there is less of it.
        self.stop_sooner(Stop::TerminateAt(now + CANCEL_WITHIN.min(grace * 2 / 5)));
    }

    /// The session has ended, and nothing of the agent is left.
    pub fn handle_ended(&mut self) {
        self.ending = true;
        if self.current().is_some() {
            self.end_current(End::default(), None);
        }
        self.interrupt_waiting();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        if let Program::Starting { silent_since, .. } = self.program
            && now >= silent_since + START_SILENCE
        {
            let seconds = START_SILENCE.as_secs();
            let error = RunError::new("agent_silent", format!("the agent has not become ready for {seconds} seconds"));
            self.fail_start(&error);
            self.terminate(now);
        }
        match self.stop {
            Some(Stop::TerminateAt(at)) if now >= at => {
                if let Program::Starting { .. } = self.program {
                    self.fail_start(&RunError::new("agent_closed", "the agent closed its pipes while it started"));
                }
                self.terminate(now);
            }
            Some(Stop::KillAt(at)) if now >= at => {
                // Again until it has exited: the list of its processes may have been incomplete.
                self.stop = Some(Stop::KillAt(now + EXIT_WITHIN));
                self.outputs.push_back(Output::Kill);
            }
            _ => {}
        }
    }

    /// When to call [`Runs::handle_timeout`], at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let silent = match self.program {
            Program::Starting { silent_since, .. } => Some(silent_since + START_SILENCE),
            Program::Absent | Program::Ready | Program::Leaving => None,
        };
        let stop = self.stop.map(|(Stop::TerminateAt(at) | Stop::KillAt(at))| at);
        silent.into_iter().chain(stop).min()
    }

    /// What to do next, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether the run in the agent is being aborted.
    pub fn is_cancelling(&self) -> bool {
        matches!(self.open.front(), Some(OpenRun { phase: Phase::Cancelling { .. }, .. }))
    }

    /// The run that is in the agent.
    pub fn current(&self) -> Option<RunId> {
        self.open.front().filter(|open| !matches!(open.phase, Phase::Waiting(_))).map(|open| open.run)
    }

    /// Starts the first waiting run, or the program that it needs.
    fn advance(&mut self, now: Duration) {
        if self.ending || self.open.is_empty() || self.current().is_some() {
            return;
        }
        match (self.program, self.open.front_mut()) {
            (Program::Absent, _) => self.start(now),
            (Program::Ready, Some(first)) => {
                let run = first.run;
                if let Phase::Waiting(prompt) = std::mem::replace(&mut first.phase, Phase::Running) {
                    self.append(AgentEvent::RunStarted { run, cause: Cause::Prompt });
                    self.outputs.push_back(Output::Send { run, prompt });
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, now: Duration) {
        if self.program == Program::Absent && !self.ending {
            self.program = Program::Starting { silent_since: now, is_gone: false };
            self.outputs.push_back(Output::Start);
        }
    }

    fn terminate(&mut self, now: Duration) {
        if matches!(self.stop, Some(Stop::KillAt(_))) {
            return; // it was asked already
        }
        self.program = Program::Leaving;
        self.stop = Some(Stop::KillAt(now + EXIT_WITHIN));
        self.outputs.push_back(Output::Terminate);
    }

    fn stop_sooner(&mut self, stop: Stop) {
        self.stop = match (self.stop, stop) {
            (Some(Stop::TerminateAt(before)), Stop::TerminateAt(at)) => Some(Stop::TerminateAt(at.min(before))),
            (Some(Stop::KillAt(at)), _) => Some(Stop::KillAt(at)),
            (None, stop) | (_, stop) => Some(stop),
        };
    }

    /// Ends the run that is in the agent, by what the agent says or by the exit of its program.
    fn end_current(&mut self, end: End, exit: Option<&ProgramExit>) -> Ended {
        let Some(OpenRun { run, phase }) = self.open.pop_front() else { return Ended::Other };
        let is_aborted = matches!(phase, Phase::Cancelling { .. }) && !end.success;
        let is_interrupted = self.ending && !end.success;
        let error = match exit {
            Some(exit) if !is_aborted && !is_interrupted => Some(exit_error(exit)),
            // What a cancelled run reports as an error is the cancellation.
            None if !is_aborted && !is_interrupted => end.error,
            Some(_) | None => None,
        };
        let exit = exit.cloned().unwrap_or_default();
        let success = end.success;
        self.complete(Complete {
            run,
            started: true,
            success,
            aborted: is_aborted,
            interrupted: is_interrupted,
            exit_code: exit.code,
            signal: exit.signal,
            stop_reason: end.stop_reason,
            conversation: None,
            error,
        });
        if success || is_aborted { Ended::AsWished } else { Ended::Other }
    }

    /// The next run starts after success or abort. After any other end, those behind it were meant for another state of
    /// the work: they end without being started.
    fn after(&mut self, ended: Ended, now: Duration) {
        match ended {
            Ended::AsWished => self.advance(now),
            Ended::Other => {
                self.fail_waiting(&RunError::new(
                    "earlier_run_failed",
                    "an earlier run failed, so this one was not started",
                ));
            }
        }
    }

    /// The agent did not become ready. If no run waits for it, a notice says so: otherwise only the next prompt would tell.
    fn fail_start(&mut self, error: &RunError) {
        if self.open.is_empty() && !self.ending {
            let text = format!("{}; the next prompt tries again", error.message);
            self.append(AgentEvent::Notice { level: Level::Error, text });
        }
        self.fail_waiting(error);
    }

    fn fail_waiting(&mut self, error: &RunError) {
        for run in self.take_waiting() {
            self.complete(Complete { run, error: Some(error.clone()), ..Complete::default() });
        }
    }

    fn interrupt_waiting(&mut self) {
        for run in self.take_waiting() {
            self.complete(Complete { run, interrupted: true, ..Complete::default() });
        }
    }

    fn take_waiting(&mut self) -> Vec<RunId> {
        let is_waiting = |open: &OpenRun| matches!(open.phase, Phase::Waiting(_));
        let waiting = self.open.iter().filter(|open| is_waiting(open)).map(|open| open.run).collect();
        self.open.retain(|open| !is_waiting(open));
        waiting
    }

    fn complete(&mut self, complete: Complete) {
        let conversation = self.conversation.clone();
        self.append(AgentEvent::Complete(Complete { conversation, ..complete }));
    }

    fn append(&mut self, event: AgentEvent) {
        self.outputs.push_back(Output::Append(event));
    }
}

/// How a run ended, as far as the runs behind it are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// With success, or because a client aborted it.
    AsWished,
    Other,
}

fn exit_error(exit: &ProgramExit) -> RunError {
    let how = match (&exit.signal, exit.code) {
        (Some(signal), _) => format!("was ended by {signal}"),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "exited".to_owned(),
    };
    RunError::new("agent_exited", format!("the agent's program {how}"))
}

#[cfg(test)]
mod tests;
