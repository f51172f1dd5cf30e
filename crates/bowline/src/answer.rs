//! `bowline approve` and `bowline deny`: answer what an agent waits for.

use std::fmt::Write as _;
use std::process::ExitCode;

use bowline_proto::agent::approval::{
    Answers, Approval, ApprovalId, ApprovalKind, ApprovalOption, OptionKind, Outcome, Question,
};
use bowline_proto::agent::command::AgentCommand;
use bowline_proto::problem;
use serde_json::json;

use crate::conversation::command;
use crate::failure::{self, Code, Failure};
use crate::host::{Host, Session};
use crate::print::one_line;
use crate::{agent_command, approvals, args};

const LIST_APPROVALS: &str = "`bowline approvals` lists what waits for an answer";

pub(crate) fn approve(verb: &args::Approve, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let target = Target::find(host, &verb.approval)?;
    let approval = target.id;
    let (command, chosen) = match &target.approval {
        Some(open) if open.kind == ApprovalKind::Question => {
            (AgentCommand::Answer { approval, answers: target.answers(open, &verb.answers)? }, None)
        }
        Some(_) if !verb.answers.is_empty() => {
            let message = format!("{} is not a question, so it takes no --answer", target.label());
            return Err(Failure::new(Code::Usage, message, "use --option to choose an option").into());
        }
        Some(open) => {
            let option = target.option(open, verb.option.as_deref())?;
            (AgentCommand::Approve { approval, option: Some(option.id.clone()) }, Some(option.label.clone()))
        }
        // It is closed, or was opened just now: the session knows.
        None => (AgentCommand::Approve { approval, option: verb.option.clone() }, None),
    };
    target.send(&command, "allowed", chosen.as_deref(), verb.json)
}

pub(crate) fn deny(verb: &args::Deny, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let target = Target::find(host, &verb.approval)?;
    let chosen = match (&target.approval, verb.option.as_deref()) {
        (Some(open), Some(wanted)) => Some(target.rejecting_option(open, wanted)?.label.clone()),
        // Without an approval, the session knows.
        (None, _) | (_, None) => None,
    };
    let (option, reason) = (verb.option.clone(), verb.reason.clone());
    let command = AgentCommand::Deny { approval: target.id, option, reason: reason.clone() };
    let words: Vec<String> = chosen.into_iter().chain(reason).filter(|words| !words.is_empty()).collect();
    let detail = Some(words.join("; ")).filter(|detail| !detail.is_empty());
    target.send(&command, "denied", detail.as_deref(), verb.json)
}

/// The approval that is answered.
struct Target<'a> {
    host: &'a dyn Host,
    session: Session,
    id: ApprovalId,
    /// `None` if it is not open, as far as is known.
    approval: Option<Approval>,
}

impl<'a> Target<'a> {
    /// Finds `SESSION/a7`, or the only open approval called `a7`.
    fn find(host: &'a dyn Host, key: &str) -> anyhow::Result<Target<'a>> {
        let (session, id) = key.rsplit_once('/').map_or((None, key), |(session, id)| (Some(session), id));
        let id: ApprovalId = id.parse().map_err(|_| {
            let message = format!("{key:?} is not the id of an approval, such as dev/a7 or a7");
            Failure::new(Code::Usage, message, LIST_APPROVALS)
        })?;
        let session = match session {
            // By its whole name or id: a script that answers `job-1/a0` must not answer for `job-10`.
            Some(session) => host.find_or_suggest(session)?,
            None => only_session(host, id)?,
        };
        let open = session.info.agent.as_ref().map(|agent| agent.approvals.as_slice()).unwrap_or_default();
        let approval = open.iter().find(|open| open.id == id).cloned();
        Ok(Target { host, session, id, approval })
    }

    fn label(&self) -> String {
        format!("{}/{}", self.session.label(), self.id)
    }

    /// The option that allows it, by its id. Without one, there must be exactly one that allows it once.
    fn option<'b>(&self, approval: &'b Approval, wanted: Option<&str>) -> anyhow::Result<&'b ApprovalOption> {
        // An approval of an unknown kind can only be denied.
        let is_known = approval.kind != ApprovalKind::Unknown;
        let allows = |option: &&ApprovalOption| {
            is_known && matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways)
        };
        let allowing: Vec<&ApprovalOption> = approval.options.iter().filter(allows).collect();
        let once: Vec<_> = allowing.iter().filter(|option| option.kind == OptionKind::AllowOnce).collect();
        let message = match (wanted, once.as_slice()) {
            (Some(wanted), _) => match allowing.iter().find(|option| option.id == wanted) {
                Some(option) => return Ok(option),
                None => format!("{} has no option {wanted:?} that allows it", self.label()),
            },
            (None, [_]) if approval.truncated => {
                format!("{} asks something that was too long, and was cut, so an option must be named", self.label())
            }
            (None, [only]) => return Ok(only),
            (None, []) => format!("{} has no option that allows it only once", self.label()),
            (None, _) => format!("{} has several options that allow it once", self.label()),
        };
        if allowing.is_empty() {
            let message = format!("{} can only be denied", self.label());
            let hint = format!("{} denies it", command(self.host, "deny", &self.label()));
            return Err(Failure::new(Code::Usage, message, hint).into());
        }
        let list = allowing.iter().map(|option| describe_option(option)).collect::<String>();
        Err(Failure::new(Code::Usage, message + &list, "choose one with --option ID").into())
    }

    /// The option that denies it, by its id.
    fn rejecting_option<'b>(&self, approval: &'b Approval, wanted: &str) -> anyhow::Result<&'b ApprovalOption> {
        let rejects =
            |option: &&ApprovalOption| matches!(option.kind, OptionKind::RejectOnce | OptionKind::RejectAlways);
        let rejecting: Vec<&ApprovalOption> = approval.options.iter().filter(rejects).collect();
        if let Some(option) = rejecting.iter().find(|option| option.id == wanted) {
            return Ok(option);
        }
        let message = format!("{} has no option {wanted:?} that denies it", self.label());
        if rejecting.is_empty() {
            let hint = format!("{} denies it", command(self.host, "deny", &self.label()));
            return Err(Failure::new(Code::Usage, message, hint).into());
        }
        let list = rejecting.iter().map(|option| describe_option(option)).collect::<String>();
        Err(Failure::new(Code::Usage, message + &list, "choose one with --option ID, or leave --option out").into())
    }

    /// The answers, by the questions' ids. An error lists the questions.
    fn answers(&self, approval: &Approval, given: &[(String, String)]) -> anyhow::Result<Answers> {
        let questions = approval.questions.as_deref().unwrap_or_default();
        let by_number = |key: &str| questions.get(key.parse::<usize>().ok()?.checked_sub(1)?);
        let mut answers = Answers::new();
        for (key, text) in given {
            let question = questions.iter().find(|question| question.id == *key).or_else(|| by_number(key));
            let Some(question) = question else {
                return Err(self.question_failure(format!("{} has no question {key:?}", self.label()), questions));
            };
            answers.entry(question.id.clone()).or_default().push(text.clone());
        }
        if answers.is_empty() {
            return Err(self.question_failure(format!("{} is a question", self.label()), questions));
        }
        Ok(answers)
    }

    fn question_failure(&self, message: String, questions: &[Question]) -> anyhow::Error {
        let list: String =
            questions.iter().enumerate().map(|(n, question)| describe_question(n + 1, question)).collect();
        let hint = format!("{} answers the first one", command(self.host, "approve --answer 1=TEXT", &self.label()));
        Failure::new(Code::Usage, message + &list, hint).into()
    }

    /// Sends the answer, and prints what became of it.
    fn send(
        &self,
        command: &AgentCommand,
        outcome: &str,
        detail: Option<&str>,
        json: bool,
    ) -> anyhow::Result<ExitCode> {
        let accepted = agent_command::send(self.host, &self.session, json!(command), agent_command::WITHIN);
        let accepted = accepted.map_err(|error| self.explain(error))?;
        if json {
            println!("{}", serde_json::to_string(&accepted)?);
            return Ok(ExitCode::SUCCESS);
        }
        let what = self.approval.as_ref().map(|approval| format!(": {}", approvals::describe(approval)));
        let detail = detail.map(|detail| format!(" ({})", one_line(detail)));
        println!("{outcome} {}{}{}", self.label(), what.unwrap_or_default(), detail.unwrap_or_default());
        Ok(ExitCode::SUCCESS)
    }

    fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let label = self.label();
        if let Some(answered) = failure::answered(&error) {
            let by = answered.by.as_ref().map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
            let message = match answered.outcome {
                Outcome::Allowed => format!("{label} was already answered: allowed{by}"),
                Outcome::Denied => format!("{label} was already answered: denied{by}"),
                Outcome::Withdrawn => format!("{label} is closed: the agent took it back"),
                Outcome::Aborted => format!("{label} is closed: its run was aborted, or the session ended"),
                Outcome::Lost => format!("{label} is closed: the agent ended, or went on without an answer"),
                Outcome::Expired => format!("{label} is closed: it was not answered in time"),
                Outcome::Unknown => format!("{label} is closed"),
            };
            return Failure::new(Code::Other, message, LIST_APPROVALS).into();
        }
        let message = match failure::problem_code(&error) {
            Some(problem::Code::NotFound) => format!("{} has no approval {}", self.session.label(), self.id),
            Some(problem::Code::SessionGone) => format!("{} has ended, so nothing waits there", self.session.label()),
            _ => return error,
        };
        Failure::new(Code::NotFound, message, LIST_APPROVALS).into()
    }
}

/// The only session with an open approval of this id.
fn only_session(host: &dyn Host, id: ApprovalId) -> anyhow::Result<Session> {
    let waiting = host.approvals()?.approvals;
    let with_id: Vec<_> = waiting.iter().filter(|waiting| waiting.approval.id == id).collect();
    match with_id.as_slice() {
        [] => Err(Failure::new(Code::NotFound, format!("no session has an open approval {id}"), LIST_APPROVALS).into()),
        [only] => host.find_exact(only.session.as_str()),
        several => {
            let sessions = host.list()?;
            let ids = several.iter().map(|waiting| approvals::full_id(&sessions, &waiting.session, id));
            let message =
                format!("several sessions have an open approval {id}: {}", ids.collect::<Vec<_>>().join(", "));
            Err(Failure::new(Code::Usage, message, "give the whole id, with the session").into())
        }
    }
}

/// One more line of an error about options.
fn describe_option(option: &ApprovalOption) -> String {
    let effect = option.effect.as_ref().map(|effect| format!("; {}", one_line(effect))).unwrap_or_default();
    format!("\n{}: {}{effect}", one_line(&option.id), one_line(&option.label))
}

/// More lines of an error about questions.
fn describe_question(number: usize, question: &Question) -> String {
    let id = one_line(&question.id);
    let mut text = format!("\n{number}. {} (--answer {id}=TEXT)", one_line(&question.text));
    for option in &question.options {
        let description = option.description.as_ref().map(|text| format!(": {}", one_line(text))).unwrap_or_default();
        let _ = write!(text, "\n   {}{description}", one_line(&option.label));
    }
    text
}
