//! The state of a conversation, derived from its events alone.
//!
//! The session process, lists and clients all fold the same events, so they agree. A fold is small: it is part of the
//! checkpoint that lists read.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::approval::{Answered, Approval, ApprovalId, Outcome, resolved};
use super::config::{Choices, Config, Settings};
use super::event::{AgentEvent, Complete, Delta, RunId, ToolCall};
use super::state::{ConversationState, OpenRun, OpenTool, Step};
use super::usage::Used;
use crate::follow::EpochStart;
use crate::ids::Epoch;
use crate::journal::Record;
use crate::session::{Activity, ExitStatus};

/// How many commands are kept to recognise repeats; older ones are dropped.
pub const MAX_COMMANDS: usize = 4096;
/// How many answered approvals are kept, to tell a late client how; older ones are unknown.
const MAX_ANSWERED: usize = 4096;
/// How many epochs are kept; a cursor of an older one is answered with `snapshot`.
const MAX_EPOCHS: usize = 64;
/// How many tool calls are kept that have not ended; the oldest is dropped.
const MAX_TOOLS: usize = 64;
/// The longest id of a tool call that is kept, in bytes; agents have far shorter ones.
const MAX_CALL: usize = 256;
/// How many characters of a tool's title are kept.
const MAX_TITLE: usize = 200;

/// The state of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fold {
    /// The latest epochs, oldest first. The last one is current.
    pub epochs: VecDeque<EpochStart>,
    /// The id and the version of the latest session process.
    pub process: Option<(u32, String)>,
    /// Set once the session was ended.
    pub exit: Option<ExitStatus>,
    /// The journal could not be written in this life.
    pub degraded: bool,
    pub title: String,
    pub conversation: Option<String>,
    /// The current epoch began with a repair.
    is_repaired: bool,
    /// A run was started in that conversation. Agents do not store one without.
    has_started_run: bool,
    /// The agent reported the end of a run in that conversation.
    has_ended_run: bool,
    /// The first id that no run has.
    pub next_run: RunId,
    /// Runs without a `complete`, oldest first.
    pub open: Vec<OpenRun>,
    /// The first id that no approval has.
    pub next_approval: ApprovalId,
    /// Approvals that wait for an answer, oldest first.
    pub approvals: Vec<Approval>,
    /// The latest approvals that have their outcome, oldest first.
    answered: VecDeque<(ApprovalId, Answered)>,
    /// Tool calls of the run in the agent that have not ended, oldest first.
    tools: VecDeque<OpenTool>,
    /// What can be set in the agent, as it last said.
    pub config: Option<Config>,
    /// The mode and the model that were chosen since the session was created, so that the next process of the agent gets
    /// them, too.
    pub settings: Settings,
    /// What the agent has used, added up.
    pub usage: Option<Used>,
    /// What the agent did last in this run.
    last_step: Option<Step>,
    /// Accepted commands, oldest first.
    pub commands: VecDeque<Accepted>,
    /// The number of the next event.
    pub next_seq: u64,
    /// The time of the last event.
    pub last_at: String,
}

/// A command that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    pub id: String,
    pub digest: String,
    /// The number of the event that records it.
    pub seq: u64,
    /// The run that it started or was about.
    pub run: Option<RunId>,
}

impl From<ConversationState> for Fold {
    /// The fold of a client that begins with a page of history. It knows neither earlier epochs nor commands.
    fn from(state: ConversationState) -> Fold {
        let ConversationState {
            title,
            conversation,
            // These two follow from the other fields.
            activity: _,
            queued: _,
            runs,
            tools,
            step,
            approvals,
            usage,
            config,
            exit,
            degraded,
        } = state;
        Fold {
            title,
            conversation,
            open: runs,
            tools: tools.into(),
            last_step: step,
            approvals,
            usage,
            config,
            exit,
            degraded,
            ..Fold::default()
        }
    }
}

impl Fold {
    /// Adds one more event.
    pub fn fold(&mut self, record: &Record<AgentEvent>) {
        self.next_seq = record.seq + 1;
        self.last_at.clone_from(&record.at);
        if let Some(source) = record.event.command() {
            let run = match &record.event {
                AgentEvent::Prompt { run, .. }
                | AgentEvent::AbortRequested { run, .. }
                | AgentEvent::Steered { run, .. } => Some(*run),
                AgentEvent::ApprovalResolved { approval, .. } => {
                    self.approvals.iter().find(|open| open.id == *approval).and_then(|open| open.run)
                }
                _ => None,
            };
            let (id, digest) = (source.command.clone(), source.digest.clone());
            self.commands.push_back(Accepted { id, digest, seq: record.seq, run });
            if self.commands.len() > MAX_COMMANDS {
                self.commands.pop_front();
            }
        }
        match &record.event {
            AgentEvent::Started { epoch, pid, version } => {
                self.begin_epoch(epoch, record.seq);
                self.is_repaired = false;
                self.process = Some((*pid, version.clone()));
                (self.exit, self.degraded) = (None, false);
            }
            AgentEvent::Repaired { epoch } => {
                self.begin_epoch(epoch, record.seq);
                self.is_repaired = true;
            }
            AgentEvent::Prompt { run, .. } => self.begin_run(*run, &record.at, false),
            AgentEvent::RunStarted { run, .. } => {
                self.begin_run(*run, &record.at, true);
                self.has_started_run = true;
                self.tools.clear();
                self.last_step = None;
            }
            AgentEvent::ApprovalRequested { approval } => {
                self.next_approval = self.next_approval.max(ApprovalId(approval.id.0.saturating_add(1)));
                self.approvals.push(approval.clone());
            }
            AgentEvent::ApprovalResolved { approval, outcome, source, .. } => {
                self.approvals.retain(|open| open.id != *approval);
                let by = source.as_ref().map(|source| source.by.clone());
                self.answered.push_back((*approval, Answered { outcome: *outcome, by }));
                if self.answered.len() > MAX_ANSWERED {
                    self.answered.pop_front();
                }
            }
            AgentEvent::AbortRequested { run, queue, .. } => {
                // Later by position: a run that the agent began by itself comes before prompts with lower numbers.
                let at = self.open.iter().position(|open| open.run == *run).unwrap_or(self.open.len());
                let meant = if *queue { usize::MAX } else { 1 };
                self.open.iter_mut().skip(at).take(meant).for_each(|open| open.aborted = true);
            }
            AgentEvent::Text(delta) => self.step(delta, Step::Writing),
            AgentEvent::Thinking(delta) => self.step(delta, Step::Thinking),
            AgentEvent::ToolCall(call) | AgentEvent::ToolUpdate(call) => self.tool(call),
            AgentEvent::Complete(Complete { run, started, success, stop_reason, .. }) => {
                self.has_ended_run |= *started && (*success || stop_reason.is_some());
                self.open.retain(|open| open.run != *run);
                for approval in self.approvals.iter_mut().filter(|approval| approval.run == Some(*run)) {
                    approval.run = None; // the agent still waits for the answer
                }
                if self.current().is_none() {
                    self.tools.clear();
                    self.last_step = None;
                }
            }
            AgentEvent::Conversation { id } => {
                self.conversation = Some(id.clone());
                (self.has_started_run, self.has_ended_run) = (false, false);
            }
            AgentEvent::Set { settings, .. } => {
                let Settings { mode, model, option: _ } = settings;
                self.settings.mode = mode.clone().or(self.settings.mode.take());
                self.settings.model = model.clone().or(self.settings.model.take());
            }
            AgentEvent::Usage(usage) => self.usage.get_or_insert_default().add(&usage.used),
            AgentEvent::Config(config) => {
                // The agent's word counts: it may have refused what a client set, or have left a mode by itself. What it
                // chose at its start is not kept: it may choose better the next time.
                let before = self.config.replace(config.clone());
                let current = |choices: &Option<Choices>| choices.as_ref().and_then(|choices| choices.current.clone());
                let mode_before = before.and_then(|config| current(&config.modes));
                if let Some(mode) = current(&config.modes)
                    && (self.settings.mode.is_some() || mode_before.is_some_and(|before| before != mode))
                {
                    self.settings.mode = Some(mode);
                }
                if let (Some(model), Some(_)) = (current(&config.models), &self.settings.model) {
                    self.settings.model = Some(model);
                }
            }
            AgentEvent::Title { title } => self.title.clone_from(title),
            AgentEvent::Degraded { .. } => self.degraded = true,
            AgentEvent::Exit { code, signal } => {
                self.exit = Some(ExitStatus { code: *code, signal: signal.clone() });
            }
            AgentEvent::Plan { .. }
            | AgentEvent::Steered { .. }
            | AgentEvent::Notice { .. }
            | AgentEvent::Raw { .. }
            | AgentEvent::Unknown => {}
        }
    }

    /// The current epoch.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epochs.back().map(|start| &start.epoch)
    }

    /// What the agent does now; `None` while no run is open.
    pub fn activity(&self) -> Option<Activity> {
        let open = self.open.first()?;
        let text = match (self.tools.back(), self.last_step) {
            _ if open.aborted => "Stopping",
            _ if !open.started => "Waiting for the agent",
            (Some(tool), _) if !tool.title.is_empty() => &tool.title,
            (Some(_), _) => "Using a tool",
            _ if self.approvals.iter().any(|approval| approval.run == Some(open.run)) => "Waiting for an approval",
            (None, Some(Step::Thinking)) => "Thinking",
            (None, Some(Step::Writing)) => "Writing",
            (None, Some(Step::Unknown) | None) => "Working",
        };
        Some(Activity {
            run: open.run,
            text: text.to_owned(),
            can_interrupt: !open.aborted,
            started_at: open.at.clone(),
        })
    }

    /// What clients need of it.
    pub fn state(&self) -> ConversationState {
        ConversationState {
            title: self.title.clone(),
            conversation: self.conversation.clone(),
            activity: self.activity(),
            queued: self.queued(),
            runs: self.open.clone(),
            tools: self.tools.iter().cloned().collect(),
            step: self.last_step,
            approvals: self.approvals.clone(),
            usage: self.usage.clone(),
            config: self.config.clone(),
            exit: self.exit.clone(),
            degraded: self.degraded,
        }
    }

    /// The part of the fold that a list shows. It stays small, however long the conversation is.
    pub fn listed(&self) -> Fold {
        let current = |choices: &Option<Choices>| {
            choices.as_ref().map(|choices| Choices { current: choices.current.clone(), ..Choices::default() })
        };
        let config = self.config.as_ref().map(|config| Config {
            modes: current(&config.modes),
            models: current(&config.models),
            ..Config::default()
        });
        Fold {
            epochs: self.epochs.back().cloned().into_iter().collect(),
            process: self.process.clone(),
            exit: self.exit.clone(),
            degraded: self.degraded,
            title: self.title.clone(),
            conversation: self.conversation.clone(),
            open: self.open.clone(),
            approvals: self.approvals.clone(),
            tools: self.tools.back().cloned().into_iter().collect(),
            config,
            usage: self.usage.clone(),
            last_step: self.last_step,
            next_seq: self.next_seq,
            last_at: self.last_at.clone(),
            ..Fold::default()
        }
    }

    /// Whether the journal was repaired since the last session process.
    pub fn is_repaired(&self) -> bool {
        self.is_repaired
    }

    /// The conversation that a new process of the agent can continue.
    pub fn resumable(&self) -> Option<&str> {
        self.conversation.as_deref().filter(|_| self.has_started_run)
    }

    /// Whether the agent reported the end of a run in this conversation, so that it certainly knows it.
    pub fn has_ended_run(&self) -> bool {
        self.has_ended_run
    }

    /// How many prompts wait behind the oldest open run.
    pub fn queued(&self) -> u32 {
        self.open.len().saturating_sub(1) as u32
    }

    /// The accepted command with this id.
    pub fn accepted(&self, id: &str) -> Option<&Accepted> {
        self.commands.iter().rfind(|accepted| accepted.id == id)
    }

    /// How this approval was answered; `None` if it is open or unknown.
    pub fn answered(&self, id: ApprovalId) -> Option<&Answered> {
        self.answered.iter().rfind(|(answered, _)| *answered == id).map(|(_, answered)| answered)
    }

    /// The events that close every open approval and end every open run, for a session whose process died.
    pub fn interruptions(&self) -> Vec<AgentEvent> {
        let lost = self.approvals.iter().map(|approval| resolved(approval.id, Outcome::Lost));
        let interrupted = self.open.iter().map(|open| Complete {
            run: open.run,
            started: open.started,
            interrupted: true,
            conversation: self.conversation.clone(),
            ..Complete::default()
        });
        lost.chain(interrupted.map(AgentEvent::Complete)).collect()
    }

    fn begin_epoch(&mut self, epoch: &Epoch, seq: u64) {
        self.epochs.push_back(EpochStart { epoch: epoch.clone(), seq });
        if self.epochs.len() > MAX_EPOCHS {
            self.epochs.pop_front();
        }
    }

    fn begin_run(&mut self, run: RunId, at: &str, started: bool) {
        self.next_run = self.next_run.max(RunId(run.0.saturating_add(1)));
        match self.open.iter_mut().find(|open| open.run == run) {
            Some(open) => open.started |= started,
            None => {
                let open = OpenRun { run, at: at.to_owned(), started, aborted: false };
                // A run that the agent begins by itself comes before the prompts that wait.
                let at = if started { 0 } else { self.open.len() };
                self.open.insert(at, open);
            }
        }
    }

    /// The run that is in the agent.
    fn current(&self) -> Option<RunId> {
        self.open.first().filter(|open| open.started).map(|open| open.run)
    }

    fn step(&mut self, delta: &Delta, step: Step) {
        // A sub-agent's text is part of its tool call.
        if delta.run.is_some() && delta.run == self.current() && delta.parent.is_none() {
            self.last_step = Some(step);
        }
    }

    fn tool(&mut self, call: &ToolCall) {
        if call.run.is_none() || call.run != self.current() || call.call.len() > MAX_CALL {
            return;
        }
        let known = self.tools.iter().position(|tool| tool.call == call.call);
        let has_ended = call.status.as_deref().is_some_and(|status| !matches!(status, "pending" | "in_progress"));
        let title = call.title.as_ref().map(|title| title.chars().take(MAX_TITLE).collect::<String>());
        match known {
            Some(at) if has_ended => _ = self.tools.remove(at),
            Some(at) => {
                if let (Some(title), Some(tool)) = (title, self.tools.get_mut(at)) {
                    tool.title = title;
                }
            }
            None if has_ended => {}
            None => {
                self.tools.push_back(OpenTool { call: call.call.clone(), title: title.unwrap_or_default() });
                if self.tools.len() > MAX_TOOLS {
                    self.tools.pop_front();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
