//! The end of the agent's program, and of the session.

use std::io;
use std::time::{Duration, Instant};

use bowline_host::signal;
use bowline_proto::agent::event::{AgentEvent, RunId};
use bowline_proto::agent::run::{End, ProgramExit};
use bowline_proto::session::ExitStatus;
use rustix::process::{Pid, Signal, WaitStatus};

use super::super::core::Core;
use super::Agent;
use crate::process_tree::{self, Member};

/// How long what an exited program or an aborted run left behind may take to exit. After that it is killed.
const SWEEP_WITHIN: Duration = Duration::from_secs(2);
/// How long to wait for killed processes. Those of another user cannot be killed.
const GIVE_UP_AFTER: Duration = Duration::from_secs(4);
/// The time between two checks for them, at first and later.
const SWEEP_EVERY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// The end of processes that an exited program, or an aborted run, left behind.
pub(super) struct Sweep {
    has_asked: bool,
    pub(super) next: Instant,
    pause: Duration,
    kill_at: Instant,
    give_up_at: Instant,
}

impl Sweep {
    fn new(now: Instant) -> Sweep {
        let (kill_at, give_up_at) = (now + SWEEP_WITHIN, now + GIVE_UP_AFTER);
        Sweep { has_asked: false, next: now, pause: SWEEP_EVERY.0, kill_at, give_up_at }
    }

    /// Asks those that are left to exit, the first time, and kills them in the end. Returns whether there are none, or
    /// nothing more can be done.
    fn handle(&mut self, left: io::Result<Vec<Member>>) -> bool {
        let now = Instant::now();
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(SWEEP_EVERY.1);
        let Ok(left) = left else { return now >= self.give_up_at };
        if left.is_empty() || now >= self.give_up_at {
            return true;
        }
        let is_first = !std::mem::replace(&mut self.has_asked, true);
        for process in &left {
            if now >= self.kill_at {
                process.signal(Signal::KILL);
            } else if is_first {
                process.ask_to_exit();
            }
        }
        false
    }
}

/// The tools of an aborted run that the agent has ended.
pub(super) struct AbortedTools {
    /// When the first of them can have been started, in clock ticks after the boot.
    since: u64,
    /// When the last of them can have been started. `None` while their run waits for their end: no other run has tools then.
    until: Option<u64>,
    sweep: Sweep,
    have_ended: bool,
    /// The end of their run, if it waits for theirs.
    end: Option<(RunId, End)>,
}

impl AbortedTools {
    /// When to check for them again; `None` if they have ended.
    pub(super) fn next(&self) -> Option<Instant> {
        (!self.have_ended).then_some(self.sweep.next)
    }

    fn check(&mut self, program: Pid) {
        self.have_ended |= self.sweep.handle(process_tree::tools(program, self.since, self.until));
    }
}

impl Agent {
    /// Closes the program's standard input, and asks it and everything that it started to exit.
    pub(super) fn terminate(&mut self, core: &mut Core) {
        self.sync(core);
        if let Some(program) = &mut self.program {
            program.close_stdin(core);
        }
        for member in process_tree::members(self.program()).unwrap_or_default() {
            member.ask_to_exit();
        }
    }

    /// The agent says that a run ended. If it was aborted, its tools are ended first: the next run must not meet them.
    pub(super) fn handle_run_end(&mut self, core: &Core, run: RunId, end: End) {
        let waits = |tools: &AbortedTools| tools.end.as_ref().is_some_and(|(waiting, _)| *waiting == run);
        if self.aborted_tools.as_ref().is_some_and(waits) {
            return; // it said so before
        }
        if self.runs.current() == Some(run) && self.runs.is_cancelling() && !end.success {
            self.end_tools();
            // A run of the agent's own that follows at once must not wait.
            if let Some(tools) = self.aborted_tools.as_mut().filter(|_| !end.goes_on) {
                (tools.until, tools.end) = (None, Some((run, end)));
                return self.runs.handle_tools_left(run, core.now());
            }
        }
        self.end_run(core, run, end);
    }

    /// Begins to end the tools of the current run, if there are any.
    fn end_tools(&mut self) {
        let Some(program) = self.program() else { return };
        // Those of an earlier run may still be there.
        let since = self.aborted_tools.take().map_or(self.run_began, |earlier| earlier.since.min(self.run_began));
        let (until, sweep) = (Some(process_tree::now_in_ticks()), Sweep::new(Instant::now()));
        let mut tools = AbortedTools { since, until, sweep, have_ended: false, end: None };
        tools.check(program);
        self.aborted_tools = Some(tools).filter(|tools| !tools.have_ended);
    }

    /// Checks for the tools of an aborted run, also while the journal cannot be written. If the program has exited,
    /// everything that it started is ended.
    pub(super) fn check_tools(&mut self, now: Instant) {
        let program = self.program.as_ref().filter(|program| program.exit.is_none()).map(|program| program.pid);
        if let (Some(program), Some(tools)) = (program, &mut self.aborted_tools)
            && tools.next().is_some_and(|at| now >= at)
        {
            tools.check(program);
        }
    }

    /// Ends an aborted run if its tools have ended. Returns whether there is more to do.
    pub(super) fn handle_ended_tools(&mut self, core: &Core) -> bool {
        let ended = self.aborted_tools.take_if(|tools| tools.have_ended).and_then(|tools| tools.end);
        ended.is_some_and(|(run, end)| {
            self.end_run(core, run, end);
            true
        })
    }

    /// Ends an aborted run without waiting for its tools any more.
    pub(super) fn end_aborted_run(&mut self, core: &Core) {
        let Some(tools) = &mut self.aborted_tools else { return };
        tools.until.get_or_insert_with(process_tree::now_in_ticks);
        if let Some((run, end)) = tools.end.take() {
            self.end_run(core, run, end);
        }
    }

    fn end_run(&mut self, core: &Core, run: RunId, end: End) {
        if self.runs.current() == Some(run) {
            let adapter = self.adapter.as_ref();
            let awaits = |request| adapter.is_some_and(|adapter| adapter.awaits_after_run(request));
            self.approvals.handle_run_end(run, awaits);
        }
        self.collect_steps();
        let own = self.runs.handle_end(run, end, core.now());
        self.begin_own_turn(own);
        self.collect_steps();
    }

    /// Kills the program and everything that it started.
    pub(super) fn kill(&self) {
        for member in process_tree::members(self.program()).unwrap_or_default() {
            member.signal(Signal::KILL);
        }
    }

    /// The program's process.
    pub(in super::super) fn program(&self) -> Option<Pid> {
        self.program.as_ref().map(|program| program.pid)
    }

    pub(in super::super) fn handle_reaped(&mut self, core: &mut Core, pid: Pid, status: WaitStatus) {
        if let Some(program) = self.program.as_mut().filter(|program| program.pid == pid) {
            let signal = status.terminating_signal().map(signal::name);
            program.exit = Some(ProgramExit { code: status.exit_status(), signal });
        }
        // A tool whose parent has exited is reaped here.
        self.check_tools(Instant::now());
        self.work(core);
    }

    /// Handles the exit of the program: once everything that it printed was read, and everything that it started has
    /// ended, too. While the journal cannot be written, nothing is read. Returns whether there is more to do.
    pub(super) fn handle_exited_program(&mut self, core: &mut Core) -> bool {
        let Some(program) = self.program.as_ref().filter(|program| program.exit.is_some()) else { return false };
        if self.is_stuck() {
            return false;
        }
        if !program.was_read {
            // It takes no more prompts, whatever its last words say.
            self.runs.handle_gone();
            self.read_rest(core);
            self.approvals.handle_exit();
            self.collect_steps();
            if let Some(program) = &mut self.program {
                program.was_read = true;
                program.close_all(core);
            }
            self.sweep = Some(Sweep::new(Instant::now()));
            return true;
        }
        let left = process_tree::members(None);
        if !self.sweep.as_mut().is_none_or(|sweep| sweep.handle(left)) {
            return false;
        }
        self.end_aborted_run(core);
        self.aborted_tools = None;
        let exit = self.program.take().and_then(|program| program.exit.clone()).unwrap_or_default();
        (self.adapter, self.sweep) = (None, None);
        self.runs.handle_exit(&exit, core.now());
        true
    }

    /// Whether no process of the agent has to be waited for.
    pub(in super::super) fn is_reaped(&self) -> bool {
        self.program.as_ref().is_none_or(|program| program.exit.is_some())
    }

    /// Begins to end the session. The agent may take this long.
    pub(in super::super) fn handle_ending(&mut self, core: &mut Core, grace: Duration) {
        self.is_ending = true;
        // The agent is told to stop its run first, so that it does not go on because of an answer.
        self.runs.handle_ending(grace, core.now());
        self.approvals.handle_ending();
        self.work(core);
        if self.program.is_none() {
            self.terminate(core); // processes that an earlier program left behind
        }
    }

    /// Every process that the session started has ended, or cannot be signalled.
    pub(in super::super) fn handle_tree_ended(&mut self, core: &mut Core) {
        self.work_all(core);
        self.exit_status = Some(ExitStatus { code: Some(0), signal: None });
    }

    pub(in super::super) fn exit_status(&self) -> Option<&ExitStatus> {
        self.exit_status.as_ref()
    }

    /// Records the exit and reports it to viewers.
    pub(in super::super) fn finish(&mut self, core: &mut Core, status: ExitStatus) {
        self.approvals.handle_ending();
        self.collect_steps();
        self.end_aborted_run(core);
        self.runs.handle_ended();
        self.retry_at = None;
        self.work_all(core);
        let ExitStatus { code, signal } = status.clone();
        // On a full disk the end is not recorded: the next reader finds the session lost, and ends its runs.
        if !self.is_stuck() && self.append(core, &AgentEvent::Exit { code, signal }).is_ok() {
            self.sync(core);
            self.publish(core);
            self.write_checkpoint();
        }
        self.follow.handle_exit(status);
    }
}
