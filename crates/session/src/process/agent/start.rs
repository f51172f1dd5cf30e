//! Starts an agent session, its journal first, and the agent's program, then and whenever it is needed again.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Instant;

use bowline_host::files::{is_damage, set_aside};
use bowline_host::home::SessionDir;
use bowline_host::leftovers;
use bowline_host::meta::{AgentMeta, Meta};
use bowline_host::registry::agent_info;
use bowline_host::repair;
use bowline_host::transcript::{Opened, Transcript};
use bowline_proto::agent::approval::Approvals;
use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::agent::event::{AgentEvent, Level, RunError};
use bowline_proto::agent::fold::Fold;
use bowline_proto::agent::run::Runs;
use bowline_proto::follow::{FollowConfig, Server};
use bowline_proto::session::SessionInfo;
use rustix::fs::Mode;
use serde_json::json;

use super::super::StartError;
use super::super::core::Core;
use super::super::viewers::max_viewers;
use super::Agent;
use super::pipes::ErrorNotices;
use super::program::Program;
use crate::agent::{self, Adapter, AdapterConfig};

/// An agent session whose journal is open, but whose program is not started yet.
pub(in super::super) struct PreparedAgent<'a> {
    agent: &'a AgentMeta,
    transcript: Transcript,
}

impl<'a> PreparedAgent<'a> {
    /// Opens the session's journal, or creates it, and ends what an earlier session process left open.
    pub(in super::super) fn new(
        dir: &SessionDir,
        agent: &'a AgentMeta,
        files: &dyn Fn(io::Error) -> StartError,
    ) -> Result<PreparedAgent<'a>, StartError> {
        let opened = match Transcript::open(dir) {
            Err(error) if is_damage(&error) => set_aside(&dir.events()).and_then(|()| Transcript::open(dir)),
            opened => opened,
        };
        let Opened { mut transcript, was_cut } = opened.map_err(files)?;
        if let Ok(before) = Meta::read(&dir.meta()) {
            // An agent that outlived its session must never meet a second one in the same conversation.
            leftovers::end(dir).map_err(files)?;
            repair::end_open(&mut transcript, was_cut, &before).map_err(files)?;
        }
        Ok(PreparedAgent { agent, transcript })
    }

    /// Starts the agent's program once `wait` returns.
    pub(in super::super) fn spawn(
        &self,
        dir: &SessionDir,
        meta: &Meta,
        umask: Mode,
        wait: impl FnOnce() -> Result<(), StartError>,
    ) -> Result<(Program, Box<dyn Adapter>), StartError> {
        Program::check(meta, self.agent)?;
        wait()?;
        let config = adapter_config(meta, self.agent, self.transcript.fold());
        let arguments = agent::arguments(self.agent.protocol, &config);
        let program = Program::spawn(dir, meta, self.agent, &arguments, umask)?;
        Ok((program, agent::adapter(self.agent.protocol, config)))
    }

    /// Records the start, and completes `info`. On an error the program is dropped, which closes its pipes.
    pub(in super::super) fn start(
        mut self,
        program: Program,
        adapter: Box<dyn Adapter>,
        umask: Mode,
        info: &mut SessionInfo,
        files: &dyn Fn(io::Error) -> StartError,
    ) -> Result<Agent, StartError> {
        let (epoch, pid, version) = (info.epoch.clone(), std::process::id(), info.version.clone());
        let started = AgentEvent::Started { epoch, pid, version };
        self.transcript.append(started).and_then(|_| self.transcript.sync()).map_err(files)?;
        let fold = self.transcript.fold();
        info.agent = Some(agent_info(&self.agent.agent, fold));
        (info.title, info.offset) = (fold.title.clone(), fold.next_seq);
        let follow = FollowConfig { viewers: max_viewers(), ..FollowConfig::default() };
        let follow = Server::new(follow, info.clone(), fold.epochs.iter().cloned().collect(), fold.next_seq);
        let conversation = fold.conversation.clone();
        let (next_seq, next_run, next_approval) = (fold.next_seq, fold.next_run, fold.next_approval);
        Ok(Agent {
            follow,
            events: VecDeque::new(),
            runs: Runs::new(next_run, conversation),
            approvals: Approvals::new(next_approval),
            transcript: self.transcript,
            program: Some(program),
            adapter: Some(adapter),
            unmerged: Vec::new(),
            starts_anew: false,
            steps: VecDeque::new(),
            retry_at: None,
            write_error: None,
            published: next_seq,
            shown: (info.agent.clone(), info.title.clone()),
            unsynced: false,
            checkpoint_due: Some(Instant::now()),
            positions: BTreeMap::new(),
            error_notices: ErrorNotices::new(Instant::now()),
            umask,
            run_began: 0,
            aborted_tools: None,
            blobs_are_full: false,
            is_terminated: false,
            sweep: None,
            exit_status: None,
            is_ending: false,
        })
    }
}

impl Agent {
    /// Begins the conversation, with its first prompt if there is one.
    pub(in super::super) fn begin(
        &mut self,
        core: &mut Core,
        prompt: Option<&(FirstPrompt, String)>,
    ) -> Result<(), StartError> {
        // The program runs already.
        self.runs.handle_opened(core.now());
        self.work(core);
        if let Some((FirstPrompt { id, text }, by)) = prompt {
            let command = json!({"type": "prompt", "text": text});
            let refused = self.try_command(core, id, &command, by).err();
            if let Some(refusal) = refused {
                return Err(StartError::Prompt { code: refusal.code, message: refusal.message });
            }
        }
        Ok(())
    }

    /// Starts the agent's program again.
    pub(super) fn start_program(&mut self, core: &mut Core) {
        let Some(agent) = core.meta.agent.clone() else { return };
        let mut config = adapter_config(&core.meta, &agent, self.transcript.fold());
        if std::mem::take(&mut self.starts_anew) {
            config.conversation = None;
        }
        let arguments = agent::arguments(agent.protocol, &config);
        let started = Program::spawn(&core.dir, &core.meta, &agent, &arguments, self.umask);
        let started = started.map_err(|error| error.to_string());
        let registered = started.and_then(|program| match program.register(core) {
            Ok(()) => Ok(program),
            Err(error) => Err(error.to_string()),
        });
        match registered {
            Ok(program) => {
                self.program = Some(program);
                self.adapter = Some(agent::adapter(agent.protocol, config));
            }
            Err(message) => {
                let error = RunError::new("no_program", format!("the agent cannot be started: {message}"));
                self.handle_unusable(core, &error, false);
            }
        }
    }

    /// The program cannot continue the conversation. If nothing happened in it, another one is started.
    pub(super) fn handle_unknown_conversation(&mut self, core: &mut Core) {
        let agent = core.meta.agent.as_ref();
        if agent.is_some_and(|agent| may_start_anew(agent, self.transcript.fold())) {
            let text = "the agent does not know the conversation, so a new one is started".to_owned();
            self.append_later(AgentEvent::Notice { level: Level::Warning, text });
            self.starts_anew = true;
            return self.runs.handle_restart(core.now());
        }
        let error = RunError::new("unknown_conversation", "the agent does not know the conversation");
        self.handle_unusable(core, &error, true);
    }
}

/// What a new adapter needs: the conversation that the journal names, or else the one to resume.
fn adapter_config(meta: &Meta, agent: &AgentMeta, fold: &Fold) -> AdapterConfig {
    // Until a run was started in it, the conversation to resume is as good as the one that the journal names.
    let is_current = |id: &String| fold.conversation.as_ref().is_none_or(|current| current == id);
    let conversation = match fold.resumable() {
        Some(id) => Some(id.to_owned()),
        None => agent.resume.clone().filter(is_current),
    };
    let mut random = [0; 16];
    // Without random bytes, ids repeat only in another process of the agent.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    let mode_policy = agent.mode_policy.clone();
    AdapterConfig {
        cwd: meta.cwd.as_os().into(),
        conversation,
        may_start_anew: may_start_anew(agent, fold),
        mode: fold.settings.mode.clone().filter(|mode| mode_policy.allows(mode)).or_else(|| agent.mode.clone()),
        model: fold.settings.model.clone().or_else(|| agent.model.clone()),
        mode_policy,
        random,
        runs_as_root: rustix::process::geteuid().is_root(),
    }
}

/// Whether another conversation may be started if the agent does not know this one. One that the user named, or in which
/// the agent did something, must not be replaced without a word.
fn may_start_anew(agent: &AgentMeta, fold: &Fold) -> bool {
    fold.resumable().is_some_and(|id| !fold.has_ended_run() && agent.resume.as_deref() != Some(id))
}
