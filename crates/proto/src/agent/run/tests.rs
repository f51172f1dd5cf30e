//! Explores the run machine in all orders of inputs, and checks that each accepted prompt ends exactly once.

mod cases;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;
use crate::agent::event::CommandSource;
use crate::agent::fold::Fold;
use crate::journal::Record;

/// How many inputs the exploration goes deep.
const DEPTH: usize = 10;
/// More prompts than this are not sent in one exploration: a third one behaves as the second.
const MAX_OPEN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Input {
    Prompt,
    AbortFirst,
    /// The first run and every later one.
    AbortAll,
    AbortLast,
    Activity,
    Ready,
    SpawnFailed,
    Unusable,
    EndWell,
    EndBadly,
    /// The agent says that an aborted run ended, and tools of it are left.
    ToolsLeft,
    /// The agent goes on with a turn of its own.
    EndAndGoOn,
    /// The end of a run that is over.
    EndOfAnother,
    OwnTurn,
    /// The program cannot continue the conversation.
    Restart,
    /// The program closed its pipes.
    Closed,
    Exit,
    /// The time of the next deadline.
    Timeout,
    /// A time before it, but long enough for a second abort.
    SomeTime,
    EndSession,
    Ended,
}

const INPUTS: [Input; 21] = [
    Input::Prompt,
    Input::AbortFirst,
    Input::AbortAll,
    Input::AbortLast,
    Input::Activity,
    Input::Ready,
    Input::SpawnFailed,
    Input::Unusable,
    Input::EndWell,
    Input::EndBadly,
    Input::ToolsLeft,
    Input::EndAndGoOn,
    Input::EndOfAnother,
    Input::OwnTurn,
    Input::Restart,
    Input::Closed,
    Input::Exit,
    Input::Timeout,
    Input::SomeTime,
    Input::EndSession,
    Input::Ended,
];

/// A machine with its driver, and the journal that they wrote.
#[derive(Clone)]
struct World {
    runs: Runs,
    now: Duration,
    journal: Vec<AgentEvent>,
    /// The driver's view of the program: started and not exited.
    program_runs: bool,
    terminated: bool,
    sent: Vec<RunId>,
    ended: bool,
    path: Vec<Input>,
}

impl World {
    fn new() -> World {
        World {
            runs: Runs::new(RunId(0), None),
            now: Duration::ZERO,
            journal: Vec::new(),
            program_runs: false,
            terminated: false,
            sent: Vec::new(),
            ended: false,
            path: Vec::new(),
        }
    }

    /// Everything that decides what happens next, without absolute times and numbers.
    fn key(&self) -> String {
        let first = self.runs.open.iter().map(|open| open.run.0).min().unwrap_or(self.runs.next.0);
        let ago = |at: Duration| at.as_millis() as i128 - self.now.as_millis() as i128;
        let open: Vec<_> = self
            .runs
            .open
            .iter()
            .map(|open| {
                let phase = match &open.phase {
                    Phase::Waiting(_) => json!("waiting"),
                    Phase::Running => json!("running"),
                    Phase::Cancelling { last_abort } => json!(ago(*last_abort).max(-1000) as i64),
                };
                json!([open.run.0 - first, phase])
            })
            .collect();
        let program = match self.runs.program {
            Program::Starting { silent_since, is_gone } => json!([ago(silent_since) as i64, is_gone]),
            other => json!(format!("{other:?}")),
        };
        let stop = self.runs.stop.map(|stop| match stop {
            Stop::TerminateAt(at) => json!(["terminate", ago(at) as i64]),
            Stop::KillAt(at) => json!(["kill", ago(at) as i64]),
        });
        json!([open, program, stop, self.runs.ending, self.program_runs, self.terminated, self.ended]).to_string()
    }

    /// Whether the driver could report this now.
    fn allows(&self, input: Input) -> bool {
        let first = self.runs.open.front().map(|open| open.run);
        match input {
            Input::Prompt => !self.ended && self.runs.open.len() < MAX_OPEN,
            Input::AbortFirst | Input::AbortAll | Input::AbortLast => first.is_some() && !self.ended,
            Input::Activity | Input::Ready | Input::EndWell | Input::EndBadly | Input::EndAndGoOn => self.program_runs,
            Input::EndOfAnother | Input::OwnTurn | Input::Restart | Input::Closed => self.program_runs,
            Input::Exit | Input::Unusable => self.program_runs,
            Input::ToolsLeft => self.program_runs && self.runs.is_cancelling(),
            // A program that could not be run.
            Input::SpawnFailed => self.program_runs && matches!(self.runs.program, Program::Starting { .. }),
            Input::Timeout => self.runs.poll_timeout().is_some(),
            Input::SomeTime => self.runs.poll_timeout().is_some_and(|at| at > self.now + ABORT_AGAIN),
            Input::EndSession => !self.ended,
            Input::Ended => self.runs.ending && !self.program_runs && !self.ended,
        }
    }

    fn apply(&mut self, input: Input) {
        self.path.push(input);
        let now = self.now;
        let error = RunError::new("e", "e");
        match input {
            Input::Prompt => {
                let run = self.runs.check_prompt().unwrap();
                let (text, attachments) = ("p".to_owned(), Vec::new());
                let source = CommandSource { command: format!("{run}"), digest: String::new(), by: String::new() };
                self.record(AgentEvent::Prompt { run, source, text: text.clone(), attachments: Vec::new() });
                self.runs.handle_prompt(Prompt { text, attachments }, now);
            }
            Input::AbortFirst => self.abort(0, false),
            Input::AbortAll => self.abort(0, true),
            Input::AbortLast => self.abort(self.runs.open.len() - 1, false),
            Input::Activity => self.runs.handle_activity(now),
            Input::Ready => self.runs.handle_ready(now),
            Input::SpawnFailed => {
                self.program_runs = false;
                self.runs.handle_unusable(&error, false, now);
            }
            Input::Unusable => self.runs.handle_unusable(&error, true, now),
            Input::EndWell | Input::EndBadly | Input::EndAndGoOn => {
                let run = self.runs.current().unwrap_or(RunId(0));
                let goes_on = input == Input::EndAndGoOn;
                let end = End { success: input != Input::EndBadly, goes_on, ..End::default() };
                let own = self.runs.handle_end(run, end, now);
                assert!(own.is_none() || own == self.runs.current(), "{:?}", self.path);
            }
            Input::ToolsLeft => self.runs.handle_tools_left(self.runs.current().unwrap(), now),
            Input::EndOfAnother => drop(self.runs.handle_end(RunId(1000), End::default(), now)),
            Input::OwnTurn => drop(self.runs.handle_own_turn()),
            Input::Restart => self.runs.handle_restart(now),
            Input::Closed => self.runs.handle_closed(now),
            Input::Exit => {
                self.runs.handle_gone();
                assert!(self.runs.poll_output().is_none(), "nothing follows before its last words: {:?}", self.path);
                (self.program_runs, self.terminated) = (false, false);
                self.runs.handle_exit(&ProgramExit { code: Some(1), signal: None }, now);
            }
            Input::Timeout => {
                self.now = self.runs.poll_timeout().unwrap().max(now);
                self.runs.handle_timeout(self.now);
            }
            Input::SomeTime => {
                self.now += ABORT_AGAIN;
                self.runs.handle_timeout(self.now);
            }
            Input::EndSession => self.runs.handle_ending(Duration::from_secs(5), now),
            Input::Ended => {
                self.ended = true;
                self.runs.handle_ended();
            }
        }
        while let Some(output) = self.runs.poll_output() {
            self.perform(output);
        }
    }

    fn abort(&mut self, at: usize, queue: bool) {
        let run = self.runs.open[at].run;
        self.runs.check_abort(run).unwrap();
        let source = CommandSource { command: String::new(), digest: String::new(), by: String::new() };
        self.record(AgentEvent::AbortRequested { run, source, queue });
        self.runs.handle_abort(run, queue, self.now);
    }

    fn record(&mut self, event: AgentEvent) {
        self.journal.push(event);
    }

    /// Does what the machine says, and checks that it makes sense.
    fn perform(&mut self, output: Output) {
        let path = &self.path;
        match output {
            Output::Append(event) => self.journal.push(event),
            Output::Start => {
                assert!(!self.program_runs, "a second program was started: {path:?}");
                self.program_runs = true;
            }
            Output::Send { run, .. } => {
                assert!(self.program_runs && !self.terminated, "sent to no program: {path:?}");
                assert!(!self.sent.contains(&run), "sent twice: {path:?}");
                assert!(
                    matches!(self.journal.last(), Some(AgentEvent::RunStarted { run: started, .. }) if *started == run),
                    "sent before it was recorded: {path:?}"
                );
                self.sent.push(run);
            }
            Output::Cancel => assert!(self.program_runs, "cancelled in no program: {path:?}"),
            Output::Terminate => {
                assert!(self.program_runs && !self.terminated, "terminated twice, or nothing: {path:?}");
                self.terminated = true;
            }
            Output::Kill => assert!(self.program_runs && self.terminated, "killed too early: {path:?}"),
        }
    }
}

fn fold(journal: &[AgentEvent]) -> Fold {
    let mut fold = Fold::default();
    for (seq, event) in journal.iter().enumerate() {
        fold.fold(&Record::new(seq as u64, String::new(), event.clone()));
    }
    fold
}

/// Every run has one `complete`, after its beginning, and is not started after its end.
fn check_journal(journal: &[AgentEvent], path: &[Input]) {
    let mut ended: BTreeMap<RunId, bool> = BTreeMap::new();
    for event in journal {
        match event {
            AgentEvent::Prompt { run, .. } => {
                assert_eq!(ended.insert(*run, false), None, "{run} began twice: {path:?}");
            }
            AgentEvent::RunStarted { run, cause: Cause::Agent } => {
                assert_eq!(ended.insert(*run, false), None, "{run} began twice: {path:?}");
            }
            AgentEvent::RunStarted { run, .. } => assert_eq!(ended.get(run), Some(&false), "{run} started: {path:?}"),
            AgentEvent::Complete(complete) => {
                assert_eq!(ended.insert(complete.run, true), Some(false), "{} ended: {path:?}", complete.run);
                // A run that was being aborted when the session was ended is both aborted and interrupted.
                let is_cut_short = complete.aborted || complete.interrupted;
                assert!(!(complete.success && is_cut_short), "{complete:?}: {path:?}");
                let failed = !complete.success && !is_cut_short;
                assert!(complete.error.is_none() || failed, "{complete:?}: {path:?}");
            }
            _ => {}
        }
    }
    let open: Vec<RunId> = ended.iter().filter(|(_, ended)| !**ended).map(|(run, _)| *run).collect();
    let mut folded: Vec<RunId> = fold(journal).open.iter().map(|open| open.run).collect();
    folded.sort();
    assert_eq!(folded, open, "the fold disagrees about what is open: {path:?}");
}

/// A crash after any prefix of the journal: the repair ends each open run, once.
fn check_prefixes(journal: &[AgentEvent], from: usize, path: &[Input]) {
    for len in from..=journal.len() {
        let mut repaired = journal[..len].to_vec();
        repaired.extend(fold(&repaired).interruptions());
        check_journal(&repaired, path);
        assert!(fold(&repaired).open.is_empty(), "open after a repair: {path:?}");
        assert!(fold(&repaired).interruptions().is_empty(), "repaired twice: {path:?}");
    }
}

/// All orders of inputs, breadth first. Two orders that lead to the same state are continued once.
#[test]
fn r33_every_order_of_inputs_ends_each_run_once() {
    let mut seen = BTreeSet::new();
    let mut level = vec![World::new()];
    let mut transitions = 0;
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for world in level {
            for input in INPUTS.into_iter().filter(|input| world.allows(*input)) {
                let mut after = world.clone();
                after.apply(input);
                transitions += 1;
                check_journal(&after.journal, &after.path);
                check_prefixes(&after.journal, world.journal.len(), &after.path);
                let machine: Vec<RunId> = after.runs.open.iter().map(|open| open.run).collect();
                let folded: Vec<RunId> = fold(&after.journal).open.iter().map(|open| open.run).collect();
                assert_eq!(machine, folded, "the machine and the fold disagree: {:?}", after.path);
                assert!(!after.ended || machine.is_empty(), "open after the end: {:?}", after.path);
                // Whatever happened, time alone, or the program's exit, gets every run out of the agent.
                assert!(after.can_finish(), "stuck: {:?}", after.path);
                if seen.insert(after.key()) {
                    next.push(after);
                }
            }
        }
        level = next;
    }
    assert!(transitions > 2000, "only {transitions} transitions were explored");
}

impl World {
    /// Whether an aborted or ended run comes to its end without any help of the agent.
    fn can_finish(&self) -> bool {
        let mut world = self.clone();
        while let Some(run) = world.runs.open.front().map(|open| open.run) {
            let before = world.runs.open.len();
            world.runs.handle_abort(run, true, world.now);
            for _ in 0..4 {
                while let Some(output) = world.runs.poll_output() {
                    world.perform(output);
                }
                match world.runs.poll_timeout() {
                    Some(at) => {
                        world.now = at.max(world.now);
                        world.runs.handle_timeout(world.now);
                    }
                    None => break,
                }
            }
            while let Some(output) = world.runs.poll_output() {
                world.perform(output);
            }
            if world.program_runs && !world.runs.open.is_empty() {
                if !world.terminated {
                    return false;
                }
                world.apply(Input::Exit);
            }
            if world.runs.open.len() >= before {
                return false;
            }
        }
        true
    }
}

fn run_of(inputs: &[Input]) -> World {
    let mut world = World::new();
    for input in inputs {
        assert!(world.allows(*input), "{input:?} is not possible");
        world.apply(*input);
    }
    world
}

fn completes(world: &World) -> Vec<Complete> {
    let complete = |event: &AgentEvent| match event {
        AgentEvent::Complete(complete) => Some(complete.clone()),
        _ => None,
    };
    world.journal.iter().filter_map(complete).collect()
}
