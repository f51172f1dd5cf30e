//! The end of the agent's program, and of the session.

use std::time::{Duration, Instant};

use bowline_host::signal;
use bowline_proto::agent::event::AgentEvent;
use bowline_proto::agent::run::ProgramExit;
use bowline_proto::session::ExitStatus;
use rustix::process::{Pid, Signal, WaitStatus};

use super::super::core::Core;
use super::Agent;
use crate::process_tree;

/// How long what an exited program left behind may take to exit. After that it is killed.
const SWEEP_WITHIN: Duration = Duration::from_secs(2);
/// How long to wait for killed processes. Those of another user cannot be killed.
const GIVE_UP_AFTER: Duration = Duration::from_secs(4);
/// How often to check for them. They are also checked when a process was reaped.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// The end of the processes that an exited program left behind.
pub(super) struct Sweep {
    has_asked: bool,
    pub(super) next: Instant,
    kill_at: Instant,
    give_up_at: Instant,
}

impl Sweep {
    fn new(now: Instant) -> Sweep {
        Sweep { has_asked: false, next: now, kill_at: now + SWEEP_WITHIN, give_up_at: now + GIVE_UP_AFTER }
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
            member.signal(Signal::TERM);
            member.signal(Signal::CONT); // a stopped process would not handle SIGTERM
        }
    }

    /// Ends the tools of an aborted run that the agent has left running: asks them now, and kills them later.
    pub(super) fn end_tools(&mut self) {
        let Some(program) = self.program() else { return };
        let tools = process_tree::tools_since(program, self.run_began).unwrap_or_default();
        for tool in &tools {
            tool.signal(Signal::TERM);
            tool.signal(Signal::CONT); // a stopped process would not handle SIGTERM
        }
        let earlier = self.aborted_tools.take().map(|(_, tools)| tools).unwrap_or_default();
        let tools: Vec<_> = earlier.into_iter().chain(tools).collect();
        self.aborted_tools = (!tools.is_empty()).then(|| (Instant::now() + SWEEP_WITHIN, tools));
    }

    /// Kills what is left of them. A signal to a process that has ended reaches no other.
    pub(super) fn kill_aborted_tools(&mut self, now: Instant) {
        if let Some((_, tools)) = self.aborted_tools.take_if(|(at, _)| now >= *at) {
            tools.iter().for_each(|tool| _ = tool.signal(Signal::KILL));
        }
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
        if !self.sweep_tree() {
            return false;
        }
        let exit = self.program.take().and_then(|program| program.exit.clone()).unwrap_or_default();
        (self.adapter, self.sweep) = (None, None);
        self.runs.handle_exit(&exit, core.now());
        true
    }

    /// Ends what an exited program left behind: first asks, then kills. Returns whether nothing is left, or nothing more
    /// can be done.
    fn sweep_tree(&mut self) -> bool {
        let Some(sweep) = &mut self.sweep else { return true };
        let now = Instant::now();
        sweep.next = now + SWEEP_EVERY;
        let Ok(members) = process_tree::members(None) else { return now >= sweep.give_up_at };
        if members.is_empty() || now >= sweep.give_up_at {
            return true;
        }
        let signal = if now >= sweep.kill_at { Some(Signal::KILL) } else { None };
        let first = (!std::mem::replace(&mut sweep.has_asked, true)).then_some(Signal::TERM);
        for member in &members {
            signal.or(first).into_iter().for_each(|signal| _ = member.signal(signal));
        }
        false
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
