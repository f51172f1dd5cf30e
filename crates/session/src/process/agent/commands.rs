//! Commands: each is recorded as its event, then acted on, once.

use bowline_host::agents::ModePolicy;
use bowline_host::files;
use bowline_host::transcript::command_digest;
use bowline_proto::agent::approval::{Answered, ApprovalId, BadAnswer, Decision};
use bowline_proto::agent::command::{AgentCommand, MAX_COMMAND, check_model};
use bowline_proto::agent::config::{OptionValue, Settings};
use bowline_proto::agent::event::{AgentEvent, CommandSource, RunId};
use bowline_proto::agent::run::{Prompt, Refused};
use bowline_proto::config::COMMAND_ID;
use bowline_proto::control::{Reply, Request};
use bowline_proto::follow::FollowMessage;
use bowline_proto::problem::Code;
use serde::Deserialize;
use serde_json::Value;

use super::super::core::Core;
use super::super::requests::error;
use super::{Agent, Step, attachments};

/// The longest mode, id or value of an option, in bytes.
const MAX_VALUE: usize = 128;

/// Why a command is refused.
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) message: String,
    /// How the approval was answered, if that is why.
    answered: Option<Answered>,
}

impl Refusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), answered: None }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        let code = match refused {
            Refused::QueueFull => Code::TooMany,
            Refused::NotRunning => Code::NotRunning,
        };
        Refusal::new(code, refused.to_string())
    }
}

/// A command that is recorded.
pub(super) struct Recorded {
    seq: u64,
    run: Option<RunId>,
    duplicate: bool,
}

/// An id that no approval or run can have is that of an unknown one, not a mistake in the form of the command.
fn check_ids(command: &Value) -> Result<(), Refusal> {
    let (approval, run) = (command["approval"].as_str(), command["run"].as_str());
    match command["type"].as_str() {
        Some("approve" | "deny" | "answer") if approval.is_some_and(|id| id.parse::<ApprovalId>().is_err()) => {
            Err(Refusal::new(Code::NotFound, "this session has no such approval"))
        }
        Some("abort" | "steer") if run.is_some_and(|id| id.parse::<RunId>().is_err()) => {
            Err(Refused::NotRunning.into())
        }
        _ => Ok(()),
    }
}

impl Agent {
    pub(in super::super) fn handle_request(&mut self, core: &mut Core, request: Request) -> Reply {
        match request {
            Request::Command { id, command, by } => {
                match self.try_command(core, &id, &command, by.as_deref().unwrap_or("gateway")) {
                    Ok(Recorded { seq, run, duplicate }) => Reply::Accepted { id, seq, run, duplicate },
                    Err(Refusal { code, message, answered }) => Reply::Error { code, message, answered },
                }
            }
            Request::Screen { .. } | Request::Log { .. } => {
                error(Code::BadRequest, "an agent session has no screen and no log; read its events instead")
            }
            Request::Status { .. } | Request::End { .. } | Request::Set { .. } | Request::Unknown => {
                error(Code::BadRequest, "an agent session does not support that request")
            }
        }
    }

    /// Takes a command of a viewer.
    pub(super) fn command(&mut self, core: &mut Core, id: String, command: &Value, by: &str) -> FollowMessage {
        match self.try_command(core, &id, command, by) {
            Ok(Recorded { seq, run, duplicate }) => {
                FollowMessage::Accepted { id, seq, run: run.map(|run| run.to_string()), duplicate }
            }
            Err(Refusal { code, message, answered }) => FollowMessage::Rejected { id, code, message, answered },
        }
    }

    /// The order of the checks is that of the protocol: a known id is a duplicate, whatever the state.
    pub(super) fn try_command(
        &mut self,
        core: &mut Core,
        id: &str,
        command: &Value,
        by: &str,
    ) -> Result<Recorded, Refusal> {
        if id.is_empty() || id.len() > COMMAND_ID {
            return Err(Refusal::new(Code::BadRequest, format!("a command id must have 1 to {COMMAND_ID} bytes")));
        }
        let len = command.to_string().len();
        if len > MAX_COMMAND {
            let message = format!("the command has {len} bytes; send at most {MAX_COMMAND}");
            return Err(Refusal::new(Code::TooLarge, message));
        }
        let digest = command_digest(command);
        if let Some(known) = self.transcript.fold().accepted(id) {
            return match known.digest == digest {
                true => Ok(Recorded { seq: known.seq, run: known.run, duplicate: true }),
                false => Err(Refusal::new(Code::IdReused, "another command already used this id")),
            };
        }
        if self.is_ending || core.info.exit.is_some() {
            return Err(Refusal::new(Code::SessionGone, "the session has ended"));
        }
        check_ids(command)?;
        let command = AgentCommand::deserialize(command)
            .map_err(|why| Refusal::new(Code::BadRequest, format!("not a command of an agent session: {why}")))?;
        // What happened before comes first: an answer that comes too late is refused, even if this process was stopped
        // when the deadline passed.
        self.approvals.handle_timeout(core.now());
        self.work_all(core);
        if self.is_stuck() {
            let (code, why) = self.write_error.clone().unwrap_or((Code::Unreachable, String::new()));
            return Err(Refusal::new(code, format!("the session's journal cannot be written: {why}")));
        }
        let source = CommandSource { command: id.to_owned(), digest, by: by.to_owned() };
        match command {
            AgentCommand::Prompt { text, attachments } => self.accept_prompt(core, source, text, attachments),
            AgentCommand::Approve { approval, option } => {
                self.decide(core, source, approval, Decision::Approve { option })
            }
            AgentCommand::Deny { approval, option, reason } => {
                self.decide(core, source, approval, Decision::Deny { option, reason })
            }
            AgentCommand::Answer { approval, answers } => {
                self.decide(core, source, approval, Decision::Answer { answers })
            }
            AgentCommand::Abort { run, queue } => {
                self.runs.check_abort(run)?;
                let seq = self.record_command(core, AgentEvent::AbortRequested { run, source, queue })?;
                let is_in_agent = self.runs.current() == Some(run);
                self.runs.handle_abort(run, queue, core.now());
                // The agent is told to stop its run first, so that it does not go on because of an answer.
                while let Some(output) = self.runs.poll_output() {
                    self.push_output(output);
                }
                if is_in_agent {
                    self.approvals.handle_abort(run);
                }
                self.work(core);
                Ok(Recorded { seq, run: Some(run), duplicate: false })
            }
            AgentCommand::Steer { run, text } => self.steer(core, source, run, text),
            AgentCommand::Set(settings) => self.set(core, source, settings),
        }
    }

    /// Gives more instructions to the run in the agent.
    fn steer(&mut self, core: &mut Core, source: CommandSource, run: RunId, text: String) -> Result<Recorded, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::new(Code::BadRequest, "the text is empty"));
        }
        self.check_transcript(core)?;
        self.runs.check_steer(run)?;
        if !self.adapter.as_ref().is_some_and(|adapter| adapter.can_steer()) {
            let message = "this agent takes no instructions during a run; send a prompt, which waits for its end";
            return Err(Refusal::new(Code::NotRunning, message));
        }
        let seq = self.record_command(core, AgentEvent::Steered { run, source, text: text.clone() })?;
        self.steps.push_back(Step::Steer(text));
        self.work(core);
        Ok(Recorded { seq, run: Some(run), duplicate: false })
    }

    /// Changes how the agent works. If its program does not run, the next one gets the mode and the model.
    fn set(&mut self, core: &mut Core, source: CommandSource, settings: Settings) -> Result<Recorded, Refusal> {
        self.check_settings(core, &settings)?;
        let seq = self.record_command(core, AgentEvent::Set { settings: settings.clone(), source })?;
        self.steps.push_back(Step::Set(settings));
        self.work(core);
        Ok(Recorded { seq, run: None, duplicate: false })
    }

    fn check_settings(&self, core: &Core, settings: &Settings) -> Result<(), Refusal> {
        let Settings { mode, model, option } = settings;
        let bad = |why: &str| Err(Refusal::new(Code::BadRequest, why));
        let policy = core.meta.agent.as_ref().map(|agent| agent.mode_policy.clone()).unwrap_or_default();
        if mode.is_none() && model.is_none() && option.is_none() {
            return bad("there is nothing to set; give a mode, a model or an option");
        }
        if let Some(mode) = mode {
            let known = self.transcript.fold().config.as_ref().and_then(|config| config.modes.as_ref());
            if mode.len() > MAX_VALUE
                || !policy.allows(mode)
                || known.is_some_and(|modes| !modes.available.is_empty() && !modes.has(mode))
            {
                return Err(Refusal::new(Code::NotAllowedMode, format!("the mode {mode:?} cannot be chosen")));
            }
        }
        if let Some(Err(why)) = model.as_deref().map(check_model) {
            return bad(why);
        }
        option.as_ref().map_or(Ok(()), |option| self.check_option(&policy, option))
    }

    /// An option has to be one that the agent offers. Its mode is not among them: that is set as the mode.
    fn check_option(&self, policy: &ModePolicy, option: &OptionValue) -> Result<(), Refusal> {
        let OptionValue { id, value } = option;
        if self.adapter.is_none() {
            let message = "the agent does not run, and only a mode and a model can be set for its next start";
            return Err(Refusal::new(Code::NotRunning, message));
        }
        if !policy.allows_value(value) || !policy.allows_value(id) {
            return Err(Refusal::new(Code::NotAllowedMode, format!("{value:?} cannot be chosen for {id:?}")));
        }
        let options =
            self.transcript.fold().config.as_ref().map(|config| config.options.as_slice()).unwrap_or_default();
        let Some(known) = options.iter().find(|known| known.id == *id) else {
            return Err(Refusal::new(Code::BadRequest, format!("the agent has no option {id:?}")));
        };
        if !known.choices.available.is_empty() && !known.choices.has(value) {
            return Err(Refusal::new(Code::BadRequest, format!("the option {id:?} has no value {value:?}")));
        }
        Ok(())
    }

    /// Records a client's decision about an approval, and tells the agent.
    fn decide(
        &mut self,
        core: &mut Core,
        source: CommandSource,
        approval: ApprovalId,
        decision: Decision,
    ) -> Result<Recorded, Refusal> {
        let (outcome, option) = match self.approvals.check(approval, &decision) {
            Ok(checked) => checked,
            Err(BadAnswer::NotPossible(why)) => return Err(Refusal::new(Code::BadRequest, why)),
            Err(BadAnswer::NotOpen) => {
                return Err(match self.transcript.fold().answered(approval) {
                    Some(answered) => Refusal {
                        answered: Some(answered.clone()),
                        ..Refusal::new(Code::AlreadyAnswered, "this approval was answered already")
                    },
                    None => Refusal::new(Code::NotFound, format!("this session has no approval {approval}")),
                });
            }
        };
        let reason = match &decision {
            Decision::Deny { reason, .. } => reason.clone(),
            Decision::Approve { .. } | Decision::Answer { .. } => None,
        };
        let source = Some(source);
        let event = AgentEvent::ApprovalResolved { approval, outcome, option, reason, source };
        let run = self.transcript.fold().approvals.iter().find(|open| open.id == approval).and_then(|open| open.run);
        let seq = self.record_command(core, event)?;
        self.approvals.handle_decided(approval, decision);
        self.work(core);
        Ok(Recorded { seq, run, duplicate: false })
    }

    fn accept_prompt(
        &mut self,
        core: &mut Core,
        source: CommandSource,
        text: String,
        attachments: Vec<String>,
    ) -> Result<Recorded, Refusal> {
        let attachments = attachments::check(&core.dir, attachments)?;
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(Refusal::new(Code::BadRequest, "the prompt is empty"));
        }
        self.check_transcript(core)?;
        let run = self.runs.check_prompt()?;
        let prompt = Prompt { text: text.clone(), attachments: attachments.clone() };
        let seq = self.record_command(core, AgentEvent::Prompt { run, source, text, attachments })?;
        self.runs.handle_prompt(prompt, core.now());
        self.work(core);
        Ok(Recorded { seq, run: Some(run), duplicate: false })
    }

    fn check_transcript(&self, core: &Core) -> Result<(), Refusal> {
        let most = core.meta.agent.as_ref().map(|agent| agent.limits).unwrap_or_default().transcript_size;
        if self.transcript.end().byte <= most {
            return Ok(());
        }
        let message = format!(
            "the transcript has more than {} MiB; start a new session, or raise `transcript_size` in the configuration \
             and restart this one",
            most >> 20
        );
        Err(Refusal::new(Code::NoSpace, message))
    }

    /// Appends the event of a command. It is synced, with what follows from it, before the command is answered.
    fn record_command(&mut self, core: &mut Core, event: AgentEvent) -> Result<u64, Refusal> {
        let refuse = |error| Refusal::new(files::code(&error), format!("cannot record the command: {error}"));
        self.append(core, &event).map_err(refuse)
    }
}
