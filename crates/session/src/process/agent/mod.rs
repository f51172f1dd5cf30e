//! An agent session: a conversation, its journal, and the agent's program while it runs.
//!
//! The path of what the agent prints, from one wait of the loop to the next:
//!
//! 1. [`Agent::read_output`] (`pipes.rs`) reads up to 64 KiB. The adapter ([`crate::agent`]) turns the lines into events
//!    and ends of runs; the run machine decides what follows from those.
//! 2. [`Agent::work`] appends the events to the journal, and does what comes after them: nothing is done or sent to
//!    viewers before its record is written.
//! 3. [`Agent::poll_frames`] sends each viewer the lines of the journal from its own number on.
//!
//! `start.rs` starts a session and its program, `commands.rs` accepts commands, `attachments.rs` reads the files that go
//! with prompts, `ending.rs` ends it.

mod attachments;
mod commands;
mod ending;
mod pipes;
mod program;
mod start;
mod unwritten;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use bowline_host::blobs;
use bowline_host::files;
use bowline_host::registry::agent_info;
use bowline_host::spec::MAX_TTL;
use bowline_host::timestamp::{timestamp, timestamp_of};
use bowline_host::transcript::{self, Put, ReadPosition, Transcript};
use bowline_proto::agent::approval::{Answer, Approval, ApprovalOutput, Approvals, RequestKey};
use bowline_proto::agent::config::Settings;
use bowline_proto::agent::event::{AgentEvent, Level, RunError, RunId};
use bowline_proto::agent::run::{Output, Runs};
use bowline_proto::follow::{EpochStart, Server, ServerEvent};
use bowline_proto::link::ConnId;
use bowline_proto::problem::Code;
use bowline_proto::session::{AgentInfo, ExitStatus};
use rustix::fs::Mode;

use self::ending::{AbortedTools, Sweep};
use self::pipes::ErrorNotices;
use self::program::{Program, STDERR, STDIN, STDOUT};
pub(super) use self::start::PreparedAgent;
use super::body::BodyEvent;
use super::core::Core;
use super::poll::Ready;
use crate::agent::{Adapter, AdapterEvent, BlobText, merge_deltas};
use crate::process_tree;

/// After a failed write to the journal, it is tried again this often.
const RETRY: Duration = Duration::from_secs(1);
/// The most blobs that are written before viewers and others get their turn: each is synced, and one line of the agent can
/// have hundreds.
const MAX_BLOBS_AT_ONCE: usize = 8;
/// The checkpoint is written this long after an event, unless a run has changed: then at once.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(1);

/// A conversation with an agent.
pub(super) struct Agent {
    pub(super) follow: Server,
    /// Queued for [`Body::poll_event`](super::body::Body::poll_event).
    pub(super) events: VecDeque<BodyEvent>,
    transcript: Transcript,
    runs: Runs,
    approvals: Approvals,
    program: Option<Program>,
    adapter: Option<Box<dyn Adapter>>,
    /// Events of the adapter that are not queued yet, because more of the same text may follow.
    unmerged: Vec<AgentEvent>,
    /// The next program must not continue the conversation, because the last one did not know it.
    starts_anew: bool,
    /// Events to append and things to do, in order. Empty unless the journal cannot be written, or many blobs are to be.
    steps: VecDeque<Step>,
    /// When to try to write the journal again.
    retry_at: Option<Instant>,
    /// Why it could not be written last.
    write_error: Option<(Code, String)>,
    /// The number of the next event, as far as viewers know.
    published: u64,
    /// The parts of the description that those who follow it were last told.
    shown: (Option<AgentInfo>, String),
    /// Appended events that must be synced before anything follows from them.
    unsynced: bool,
    checkpoint_due: Option<Instant>,
    /// Where each viewer's next event is in the journal.
    positions: BTreeMap<ConnId, ReadPosition>,
    error_notices: ErrorNotices,
    umask: Mode,
    /// When the run in the agent began, in clock ticks after the boot.
    run_began: u64,
    /// Tools of an aborted run that are being ended.
    aborted_tools: Option<AbortedTools>,
    /// A notice said that there is no room for blobs.
    blobs_are_full: bool,
    /// The program is to be asked to exit.
    is_terminated: bool,
    /// Set while an exited program's processes are being ended.
    sweep: Option<Sweep>,
    /// Set once the session was ended and every process has exited.
    exit_status: Option<ExitStatus>,
    is_ending: bool,
}

/// Something to do, once everything before it is done.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are events")]
enum Step {
    Run(Output),
    /// Append a tool call, and write the blob of its output.
    AppendWithBlob(AgentEvent, BlobText),
    /// Answer a request of the agent.
    Answer(RequestKey, Answer),
    /// Give more instructions to the run in the agent.
    Steer(String),
    Set(Settings),
}

impl Agent {
    pub(super) fn register(&self, core: &Core) -> io::Result<()> {
        self.program.as_ref().map_or(Ok(()), |program| program.register(core))
    }

    pub(super) fn handle_ready(&mut self, core: &mut Core, ready: &Ready) {
        match ready.token {
            STDIN => {
                if let Some(program) = &mut self.program {
                    program.handle_stdin(core, ready.hung_up);
                }
                self.check_pipes(core);
            }
            STDOUT => self.read_output(core),
            STDERR => self.read_errors(core),
            _ => {}
        }
        self.work(core);
    }

    pub(super) fn before_serving(&mut self, core: &mut Core) -> bool {
        let mut had_events = false;
        while let Some(event) = self.follow.poll_event() {
            had_events = true;
            match event {
                ServerEvent::Command { conn, id, command, by } => {
                    let answer = self.command(core, id, &command, &by);
                    self.follow.handle_command_done(conn, answer);
                }
                ServerEvent::ClientsChanged(viewers) => self.events.push_back(BodyEvent::Viewers(viewers)),
                ServerEvent::Closing { conn, code } => self.events.push_back(BodyEvent::Closing { conn: conn.0, code }),
            }
        }
        had_events
    }

    pub(super) fn handle_closed(&mut self, core: &Core, conn: ConnId) {
        self.follow.handle_closed(conn, core.now());
        self.positions.remove(&conn);
    }

    pub(super) fn poll_frames(&mut self, core: &mut Core, conn: ConnId, frames: &mut Vec<u8>, enough: usize) -> bool {
        let now = core.now();
        while frames.len() < enough {
            let Some(transmit) = self.follow.poll_transmit(conn, now) else { return false };
            let (file, state) = (self.transcript.file(), self.transcript.state());
            let position = self.positions.entry(conn).or_default();
            match transcript::put(frames, transmit, file, state, position, enough) {
                Ok(Put::Message) => {}
                Ok(Put::Events { next }) => self.follow.handle_sent(conn, next),
                // The connection is closed. When the client reconnects, it is tried again.
                Ok(Put::Last) | Err(_) => return true,
            }
        }
        false
    }

    pub(super) fn update_interest(&mut self, core: &Core) {
        let paused = self.is_stuck();
        if let Some(program) = &mut self.program {
            program.update_interest(core, paused);
        }
    }

    pub(super) fn poll_timeout(&self, core: &Core) -> Option<Instant> {
        let runs = self.runs.poll_timeout().map(|at| core.instant(at));
        let approvals = self.approvals.poll_timeout().map(|at| core.instant(at));
        let follow = self.follow.poll_timeout().map(|at| core.instant(at));
        let sweep = self.sweep.as_ref().filter(|_| !self.is_stuck()).map(|sweep| sweep.next);
        let tools = self.aborted_tools.as_ref().filter(|_| !self.is_reaped()).and_then(AbortedTools::next);
        // The rest of many blobs waits only for the others' turn.
        let retry = self.retry_at.or_else(|| self.is_stuck().then(Instant::now));
        let times =
            [runs, approvals, follow, sweep, tools, retry, self.checkpoint_due, self.error_notices.poll_timeout()];
        times.into_iter().flatten().min()
    }

    pub(super) fn handle_time(&mut self, core: &mut Core, now: Instant) {
        self.follow.handle_timeout(core.now());
        self.runs.handle_timeout(core.now());
        self.approvals.handle_timeout(core.now());
        self.check_tools(now);
        if self.retry_at.is_some_and(|at| now >= at) {
            self.retry_at = None;
        }
        if let Some(notice) = self.error_notices.take_suppressed(now) {
            self.append_later(notice);
        }
        self.work(core);
        if self.checkpoint_due.is_some_and(|at| now >= at) {
            self.write_checkpoint();
        }
    }

    /// Reports to the run machine, once, that the program has closed its standard input or output. It is of no more use.
    fn check_pipes(&mut self, core: &Core) {
        let Some(program) = &mut self.program else { return };
        if program.exit.is_none() && program.has_closed_pipes() && !std::mem::replace(&mut program.is_reported, true) {
            self.runs.handle_closed(core.now());
        }
    }

    // ---- work ----

    /// Whether the journal cannot be written, or not fast enough. Then nothing is read from the agent: it waits, and nothing
    /// is lost.
    fn is_stuck(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Does what there is to do: what the run machine decides, and what follows from the adapter's news. If that is many
    /// blobs, the loop comes back for the rest.
    fn work(&mut self, core: &mut Core) {
        self.work_within(core, MAX_BLOBS_AT_ONCE);
    }

    /// Does everything that there is to do, at once.
    fn work_all(&mut self, core: &mut Core) {
        self.work_within(core, usize::MAX);
    }

    fn work_within(&mut self, core: &mut Core, max_blobs: usize) {
        let mut blobs = 0;
        loop {
            self.handle_adapter(core);
            self.collect_steps();
            if std::mem::take(&mut self.is_terminated) {
                self.terminate(core);
            }
            let Some(step) = self.steps.pop_front() else {
                if self.handle_ended_tools(core) || self.handle_exited_program(core) {
                    continue;
                }
                break;
            };
            let has_blob = matches!(step, Step::AppendWithBlob(..));
            if self.retry_at.is_some() || (has_blob && blobs >= max_blobs) {
                self.steps.push_front(step);
                break;
            }
            blobs += usize::from(has_blob);
            if let Err(error) = self.take_step(core, &step) {
                self.steps.push_front(step);
                self.retry_at = Some(Instant::now() + RETRY);
                self.write_error = Some((files::code(&error), error.to_string()));
                self.degrade(core, &error);
                break;
            }
        }
        self.sync(core);
        if self.transcript.end().seq != self.published {
            self.checkpoint_due.get_or_insert(Instant::now() + CHECKPOINT_AFTER);
            self.publish(core);
        }
    }

    /// Takes the adapter's lines and news.
    fn handle_adapter(&mut self, core: &mut Core) {
        self.handle_news(core);
        self.queue_unmerged();
    }

    /// Queues the events that the adapter gave, with few events for much text.
    fn queue_unmerged(&mut self) {
        let events = std::mem::take(&mut self.unmerged);
        merge_deltas(events).into_iter().for_each(|event| self.append_later(event));
    }

    /// Takes the adapter's lines and news after one line of the agent. Its text is not queued yet.
    fn handle_news(&mut self, core: &mut Core) {
        while let Some(line) = self.adapter.as_mut().and_then(|adapter| adapter.poll_write()) {
            if let Some(program) = &mut self.program {
                program.write_line(core, line);
            }
            self.check_pipes(core);
        }
        let now = core.now();
        while let Some(news) = self.adapter.as_mut().and_then(|adapter| adapter.poll_event()) {
            if let AdapterEvent::Event(event) = news {
                if let AgentEvent::Conversation { id } = &event {
                    if self.transcript.fold().conversation.as_ref() == Some(id) {
                        continue; // it was continued
                    }
                    self.runs.handle_conversation(id);
                }
                self.unmerged.push(event);
                continue;
            }
            // What the agent said before comes first.
            self.queue_unmerged();
            match news {
                AdapterEvent::LongOutput { event, blob } => self.steps.push_back(Step::AppendWithBlob(event, blob)),
                AdapterEvent::Ready => self.runs.handle_ready(now),
                AdapterEvent::Unusable(error) => self.handle_unusable(core, &error, true),
                AdapterEvent::Ended { run, end } => self.handle_run_end(core, run, end),
                AdapterEvent::OwnTurn => {
                    self.end_aborted_run(core);
                    let own = self.runs.handle_own_turn();
                    self.begin_own_turn(own);
                }
                AdapterEvent::UnknownConversation => self.handle_unknown_conversation(core),
                AdapterEvent::Requested { request, approval } => {
                    self.handle_approval(core, request, *approval);
                }
                AdapterEvent::Noise(line) => {
                    let notice = self.error_notices.handle_line(&line, Instant::now());
                    notice.into_iter().for_each(|notice| self.append_later(notice));
                }
                AdapterEvent::Withdrawn(request) => self.approvals.handle_withdrawn(request),
                AdapterEvent::Event(_) => {}
            }
            self.collect_steps();
        }
    }

    /// The agent asks for an approval.
    fn handle_approval(&mut self, core: &Core, request: RequestKey, approval: Approval) {
        let limits = core.meta.agent.as_ref().map(|agent| agent.limits).unwrap_or_default();
        let wait = limits.approval_deadline.map(|seconds| Duration::from_secs(seconds.min(MAX_TTL)));
        let expires_at = wait.map(|wait| timestamp_of(SystemTime::now() + wait));
        let approval = Approval { at: timestamp(), expires_at, ..approval };
        self.approvals.handle_request(request, approval, wait.map(|wait| core.now() + wait));
        // It comes too late: nothing that its run asks for may happen any more.
        if self.is_ending || self.runs.is_cancelling() {
            self.approvals.handle_ending();
        }
    }

    /// Takes what the approvals and then the runs have decided.
    fn collect_steps(&mut self) {
        while let Some(output) = self.approvals.poll_output() {
            self.steps.push_back(match output {
                ApprovalOutput::Append(event) => Step::Run(Output::Append(event)),
                ApprovalOutput::Answer { request, answer } => Step::Answer(request, answer),
            });
        }
        while let Some(output) = self.runs.poll_output() {
            self.push_output(output);
        }
    }

    /// Queues what the run machine decided. A program is ended at once: that needs no record, and must not wait for a full
    /// disk.
    fn push_output(&mut self, output: Output) {
        match output {
            Output::Terminate => self.is_terminated = true,
            Output::Kill => self.kill(),
            output => self.steps.push_back(Step::Run(output)),
        }
    }

    fn append_later(&mut self, event: AgentEvent) {
        self.steps.push_back(Step::Run(Output::Append(event)));
    }

    /// Tells people why the agent cannot be used, and ends the runs that wait for it.
    fn handle_unusable(&mut self, core: &Core, error: &RunError, program_runs: bool) {
        let text = format!("{}; the next prompt tries again", error.message);
        self.append_later(AgentEvent::Notice { level: Level::Error, text });
        self.runs.handle_unusable(error, program_runs, core.now());
    }

    /// Tells the adapter which run the turn is that the agent has begun by itself, if it is one.
    fn begin_own_turn(&mut self, own: Option<RunId>) {
        if let (Some(run), Some(adapter)) = (own, &mut self.adapter) {
            self.run_began = process_tree::now_in_ticks();
            adapter.handle_own_turn(run);
        }
    }

    /// Takes one step. On error, nothing was done.
    fn take_step(&mut self, core: &mut Core, step: &Step) -> io::Result<()> {
        match step {
            Step::Run(Output::Append(event)) => _ = self.append(core, event)?,
            Step::AppendWithBlob(event, blob) => self.append_with_blob(event, blob)?,
            Step::Run(Output::Start) if self.program.is_none() => self.start_program(core),
            Step::Run(Output::Start | Output::Terminate | Output::Kill) => {}
            Step::Run(Output::Send { run, prompt }) => {
                self.run_began = process_tree::now_in_ticks();
                let attachments = self.read_attachments(core, prompt);
                self.with_adapter(core, |adapter| adapter.prompt(*run, prompt, &attachments));
            }
            Step::Run(Output::Cancel) => self.with_adapter(core, |adapter| adapter.cancel()),
            Step::Answer(request, answer) => self.with_adapter(core, |adapter| adapter.answer(*request, answer)),
            Step::Steer(text) => self.with_adapter(core, |adapter| adapter.steer(text)),
            Step::Set(settings) => self.with_adapter(core, |adapter| adapter.set(settings)),
        }
        Ok(())
    }

    /// Tells the adapter something, once what was recorded before it survives a power cut.
    fn with_adapter(&mut self, core: &mut Core, tell: impl FnOnce(&mut dyn Adapter)) {
        self.sync(core);
        if let Some(adapter) = &mut self.adapter {
            tell(&mut **adapter);
        }
    }

    /// Appends an event and returns its number.
    fn append(&mut self, core: &mut Core, event: &AgentEvent) -> io::Result<u64> {
        let epoch = match event {
            AgentEvent::Started { epoch, .. } | AgentEvent::Repaired { epoch } => Some(epoch.clone()),
            _ => None,
        };
        let seq = self.transcript.append(event.clone())?;
        if event.is_synced() {
            self.unsynced = true;
            // A list shows the runs.
            self.checkpoint_due = Some(Instant::now());
        }
        if let Some(epoch) = epoch {
            core.info.epoch = epoch.clone();
            self.follow.handle_epoch(EpochStart { epoch, seq });
        }
        Ok(seq)
    }

    /// Writes a blob, and appends its event. The first time that there is no room for one, a notice says so.
    fn append_with_blob(&mut self, event: &AgentEvent, blob: &BlobText) -> io::Result<()> {
        let is_kept = self.transcript.append_with_blob(event.clone(), &blob.text, blob.is_cut)?;
        if !is_kept && !std::mem::replace(&mut self.blobs_are_full, true) {
            let limit = blobs::MAX_BLOBS >> 20;
            let text = format!("of long tool output, only the beginning and the end are kept now (limit {limit} MiB)");
            self.append_later(AgentEvent::Notice { level: Level::Warning, text });
        }
        Ok(())
    }

    /// Makes what was appended survive a power cut, if it has to.
    fn sync(&mut self, core: &mut Core) {
        if std::mem::take(&mut self.unsynced)
            && let Err(error) = self.transcript.sync()
        {
            // What is recorded is done: after a refusal the client would repeat it, and get `duplicate`.
            self.degrade(core, &error);
        }
    }

    /// Shows viewers what was appended. The description comes first, because `attached` says that it is true at the end.
    fn publish(&mut self, core: &mut Core) {
        self.update_info(core);
        let shown = (core.info.agent.clone(), core.info.title.clone());
        core.info_changed |= self.shown != shown;
        self.shown = shown;
        self.follow.handle_info(core.info.clone());
        self.published = self.transcript.end().seq;
        self.follow.handle_end(self.published);
    }

    pub(super) fn update_info(&mut self, core: &mut Core) {
        let fold = self.transcript.fold();
        let name = core.meta.agent.as_ref().map_or("", |agent| agent.agent.as_str());
        core.info.agent = Some(agent_info(name, fold));
        core.info.title.clone_from(&fold.title);
        core.info.offset = fold.next_seq;
        core.info.active = Some(fold.last_at.clone()).filter(|at| !at.is_empty());
    }

    /// Marks the session as degraded, once.
    fn degrade(&mut self, core: &mut Core, error: &io::Error) {
        if std::mem::replace(&mut core.info.degraded, true) {
            return;
        }
        core.info_changed = true;
        self.append_later(AgentEvent::Degraded { error: error.to_string() });
    }

    fn write_checkpoint(&mut self) {
        self.checkpoint_due = None;
        if self.transcript.has_news() {
            // An error is harmless: then readers read more of the journal.
            let _ = self.transcript.checkpoint();
        }
    }
}
