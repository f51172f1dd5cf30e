//! Approvals: what an agent asks of its owner, and the machine that gives each exactly one outcome.
//!
//! As with runs, the driver records an answer as its event first and reports it here; what follows comes out of
//! [`Approvals::poll_output`], in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{AgentEvent, Level, RunId};
use crate::session::truncate_text;

/// Approvals of a session that may wait at the same time. Another request is denied at once.
pub const MAX_OPEN: usize = 64;

/// Bytes of all open approvals together, as JSON. One that would exceed it is cut and, if that is not enough, denied.
const MAX_SIZE: usize = 384 << 10;
/// The longest text of an approval that was cut for lack of room.
const SMALL_TEXT: usize = 64;

/// An approval's id, unique in its session. Written as `a7`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApprovalId(pub u64);

/// A text is not the id of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an approval's id is a and a number, such as a7")]
pub struct BadApprovalId;

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}", self.0)
    }
}

impl FromStr for ApprovalId {
    type Err = BadApprovalId;
    fn from_str(text: &str) -> Result<ApprovalId, BadApprovalId> {
        let id = text.strip_prefix('a').and_then(|number| number.parse().ok()).map(ApprovalId);
        // Only one spelling: no sign and no leading zeros.
        id.filter(|id| id.to_string() == text).ok_or(BadApprovalId)
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = BadApprovalId;
    fn try_from(text: String) -> Result<ApprovalId, BadApprovalId> {
        text.parse()
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> String {
        id.to_string()
    }
}

/// What an agent asks.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Approval {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: ApprovalId,
    /// The run that waits for it; null if that run has ended and the agent still waits.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub run: Option<RunId>,
    pub kind: ApprovalKind,
    /// The tool, in the agent's words.
    pub tool: String,
    /// The tool call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub call: Option<String>,
    /// One line, in the agent's words.
    pub title: String,
    #[serde(default)]
    pub detail: Detail,
    /// Something of this was too long, and was cut.
    #[serde(default)]
    pub truncated: bool,
    /// The possible answers to a permission or a plan.
    #[serde(default)]
    pub options: Vec<ApprovalOption>,
    /// Only for a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub questions: Option<Vec<Question>>,
    /// When it was requested, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// When it is denied unless it is answered, RFC 3339 UTC; absent if it waits forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: Option<String>,
}

impl Approval {
    /// Cuts texts that are longer than `max` bytes, and says so.
    pub(crate) fn truncate(&mut self, max: usize) {
        let Approval { tool, title, detail, options, questions, .. } = self;
        let Detail { command, cwd, diff, text } = detail;
        let details = [command, cwd, diff, text].into_iter().flatten();
        let options = options.iter_mut().flat_map(|option| [Some(&mut option.label), option.effect.as_mut()]).flatten();
        let questions = questions.iter_mut().flatten().flat_map(|question| {
            // Not the labels: a client sends one as the answer.
            let descriptions = question.options.iter_mut().filter_map(|option| option.description.as_mut());
            std::iter::once(&mut question.text).chain(descriptions)
        });
        let mut cut = false;
        for text in [tool, title].into_iter().chain(details).chain(options).chain(questions) {
            cut |= truncate_text(text, max);
        }
        self.truncated |= cut;
    }
}

/// What kind of answer is wanted.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalKind {
    Permission,
    Question,
    Plan,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// What the tool is going to do.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Detail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cwd: Option<String>,
    /// A unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub diff: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub text: Option<String>,
}

/// A possible answer.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ApprovalOption {
    /// The agent's id for it. Several options may have the same kind, so this is what is chosen.
    pub id: String,
    pub kind: OptionKind,
    pub label: String,
    /// What choosing it changes beyond this one request, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub effect: Option<String>,
}

/// What an option means.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// A value added by a newer version, or by the agent. It cannot be chosen.
    #[serde(other)]
    Unknown,
}

/// A question of the agent.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Question {
    pub id: String,
    pub text: String,
    #[serde(default)]
    pub options: Vec<QuestionOption>,
    /// Several options may be chosen.
    #[serde(default)]
    pub multi: bool,
    /// Any text is an answer.
    #[serde(default)]
    pub free: bool,
}

/// An answer that the agent offers.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct QuestionOption {
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
}

/// How an approval ended.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Allowed,
    Denied,
    /// The agent took its request back.
    Withdrawn,
    /// Its run was aborted, or the session was ended.
    Aborted,
    /// The agent's program or the session process ended, or the agent went on without an answer.
    Lost,
    /// Its deadline passed; the agent was told that it is denied.
    Expired,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// An approval that was answered already: how, and by which client.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Answered {
    pub outcome: Outcome,
    /// Absent if no client answered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub by: Option<String>,
}

/// The answers to questions, by the question's id.
pub type Answers = BTreeMap<String, Vec<String>>;

/// What a client decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Approve { option: Option<String> },
    Deny { option: Option<String>, reason: Option<String> },
    Answer { answers: Answers },
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The option with this id, which allows it, was chosen.
    Chosen(String),
    Denied {
        /// The id of the option that was chosen, which rejects it; without one, the adapter has to deny it for this once.
        option: Option<String>,
        reason: Option<String>,
    },
    Answers(Answers),
    /// Its run was aborted.
    Cancelled,
}

/// Why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    #[error("this approval is not open")]
    NotOpen,
    #[error("{0}")]
    NotPossible(String),
}

/// The adapter's name for a request of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub u64);

/// What the driver does next.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are events")]
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalOutput {
    Append(AgentEvent),
    /// Tell the agent.
    Answer {
        request: RequestKey,
        answer: Answer,
    },
}

/// The open approvals of one agent program.
#[derive(Clone, Debug, PartialEq)]
pub struct Approvals {
    next: ApprovalId,
    open: Vec<OpenApproval>,
    outputs: VecDeque<ApprovalOutput>,
}

#[derive(Clone, Debug, PartialEq)]
struct OpenApproval {
    request: RequestKey,
    approval: Approval,
    /// When it expires; `None` if it waits forever.
    deadline: Option<Duration>,
}

impl Approvals {
    /// None is open. `next` is the first unused id.
    pub fn new(next: ApprovalId) -> Approvals {
        Approvals { next, open: Vec::new(), outputs: VecDeque::new() }
    }

    /// The agent asks. The id of `approval` is set here. It is denied when the time is `deadline`, if there is one.
    pub fn handle_request(&mut self, request: RequestKey, mut approval: Approval, deadline: Option<Duration>) {
        if self.open.len() >= MAX_OPEN {
            return self.deny(request, &format!("{MAX_OPEN} approvals wait already"), &approval.title);
        }
        // All of them are in the session's description, which must fit into one message.
        let size = |approval: &Approval| serde_json::to_vec(approval).map_or(0, |json| json.len());
        let taken: usize = self.open.iter().map(|open| size(&open.approval)).sum();
        if taken + size(&approval) > MAX_SIZE {
            approval.truncate(SMALL_TEXT);
        }
        if taken + size(&approval) > MAX_SIZE {
            return self.deny(request, "the approvals that wait already are too large", &approval.title);
        }
        approval.id = self.next;
        self.next.0 += 1;
        self.append(AgentEvent::ApprovalRequested { approval: approval.clone() });
        self.open.push(OpenApproval { request, approval, deadline });
    }

    /// Checks a client's decision. Returns what is recorded: the outcome and the option.
    pub fn check(&self, id: ApprovalId, decision: &Decision) -> Result<(Outcome, Option<String>), BadAnswer> {
        let open = self.open.iter().find(|open| open.approval.id == id).ok_or(BadAnswer::NotOpen)?;
        let approval = &open.approval;
        match decision {
            Decision::Approve { option } => Ok((Outcome::Allowed, Some(allowed_option(approval, option.as_deref())?))),
            Decision::Deny { option, .. } => {
                let option = option.as_deref().map(|option| rejecting_option(approval, option));
                Ok((Outcome::Denied, option.transpose()?))
            }
            Decision::Answer { answers } => check_answers(approval, answers).map(|()| (Outcome::Allowed, None)),
        }
    }

    /// A decision was checked and recorded.
    pub fn handle_decided(&mut self, id: ApprovalId, decision: Decision) {
        let Some(at) = self.open.iter().position(|open| open.approval.id == id) else { return };
        let OpenApproval { request, approval, .. } = self.open.remove(at);
        let answer = match decision {
            Decision::Approve { option } => match allowed_option(&approval, option.as_deref()) {
                Ok(option) => Answer::Chosen(option),
                Err(_) => Answer::Denied { option: None, reason: None },
            },
            Decision::Deny { option, reason } => Answer::Denied { option, reason },
            Decision::Answer { answers } => Answer::Answers(answers),
        };
        self.answer(request, answer);
    }

    /// The agent took a request back.
    pub fn handle_withdrawn(&mut self, request: RequestKey) {
        self.close(Outcome::Withdrawn, None, |open| open.request == request);
    }

    /// The run in the agent is being aborted. The agent is told to end its background work, too, so that requests without a
    /// run are aborted as well.
    pub fn handle_abort(&mut self, run: RunId) {
        let is_meant = |open: &OpenApproval| open.approval.run.is_none_or(|of| of == run);
        self.close(Outcome::Aborted, Some(&Answer::Cancelled), is_meant);
    }

    /// The session is being ended.
    pub fn handle_ending(&mut self) {
        self.close(Outcome::Aborted, Some(&Answer::Cancelled), |_| true);
    }

    /// The run has ended, and its `complete` follows. Approvals whose answer the agent still `awaits` stay open, without
    /// a run.
    pub fn handle_run_end(&mut self, run: RunId, awaits: impl Fn(RequestKey) -> bool) {
        // Every request gets an answer, even if the agent went on without.
        let is_over = |open: &OpenApproval| open.approval.run == Some(run) && !awaits(open.request);
        self.close(Outcome::Lost, Some(&Answer::Cancelled), is_over);
        for open in self.open.iter_mut().filter(|open| open.approval.run == Some(run)) {
            open.approval.run = None;
        }
    }

    /// The agent's program has exited.
    pub fn handle_exit(&mut self) {
        self.close(Outcome::Lost, None, |_| true);
    }

    /// Time has passed. Denies the approvals whose deadline is over.
    pub fn handle_timeout(&mut self, now: Duration) {
        let reason = "it was not answered in time".to_owned();
        let is_over = |open: &OpenApproval| open.deadline.is_some_and(|deadline| now >= deadline);
        self.close(Outcome::Expired, Some(&Answer::Denied { option: None, reason: Some(reason) }), is_over);
    }

    /// When to call [`Approvals::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.open.iter().filter_map(|open| open.deadline).min()
    }

    /// What to do next, oldest first.
    pub fn poll_output(&mut self) -> Option<ApprovalOutput> {
        self.outputs.pop_front()
    }

    fn close(&mut self, outcome: Outcome, answer: Option<&Answer>, is_meant: impl Fn(&OpenApproval) -> bool) {
        let closed: Vec<OpenApproval> = self.open.extract_if(.., |open| is_meant(open)).collect();
        for OpenApproval { request, approval, .. } in closed {
            self.append(resolved(approval.id, outcome));
            if let Some(answer) = answer {
                self.answer(request, answer.clone());
            }
        }
    }

    /// Denies a request that cannot wait.
    fn deny(&mut self, request: RequestKey, why: &str, title: &str) {
        let title: String = title.chars().take(200).collect();
        let text = format!("a request of the agent was denied, because {why}: {title}");
        self.append(AgentEvent::Notice { level: Level::Warning, text });
        self.answer(request, Answer::Denied { option: None, reason: Some(why.to_owned()) });
    }

    fn append(&mut self, event: AgentEvent) {
        self.outputs.push_back(ApprovalOutput::Append(event));
    }

    fn answer(&mut self, request: RequestKey, answer: Answer) {
        self.outputs.push_back(ApprovalOutput::Answer { request, answer });
    }
}

/// The end of an approval that no client answered.
pub(super) fn resolved(approval: ApprovalId, outcome: Outcome) -> AgentEvent {
    AgentEvent::ApprovalResolved { approval, outcome, option: None, reason: None, source: None }
}

/// The option that an `approve` means: the given one, or else the only one that allows this once.
fn allowed_option(approval: &Approval, option: Option<&str>) -> Result<String, BadAnswer> {
    let impossible = |why: String| Err(BadAnswer::NotPossible(why));
    if approval.kind == ApprovalKind::Unknown {
        return impossible("this version does not know what is asked, so it can only be denied".to_owned());
    }
    if approval.kind == ApprovalKind::Question {
        return impossible("this is a question; answer it with `answer`, or deny it".to_owned());
    }
    let allows = |option: &&ApprovalOption| matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways);
    let allowing: Vec<&ApprovalOption> = approval.options.iter().filter(allows).collect();
    if allowing.is_empty() {
        return impossible("no option allows this; it can only be denied".to_owned());
    }
    if let Some(id) = option {
        return match allowing.iter().find(|option| option.id == id) {
            Some(option) => Ok(option.id.clone()),
            None => impossible(format!("{id:?} is not an option that allows this; choose one of: {}", ids(&allowing))),
        };
    }
    let once: Vec<&ApprovalOption> =
        allowing.iter().copied().filter(|option| option.kind == OptionKind::AllowOnce).collect();
    match once.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => impossible(format!("no option allows this once; choose one of: {}", ids(&allowing))),
        _ => impossible(format!("several options allow this; choose one of: {}", ids(&once))),
    }
}

/// The option that a `deny` names.
fn rejecting_option(approval: &Approval, option: &str) -> Result<String, BadAnswer> {
    let rejects = |option: &&ApprovalOption| matches!(option.kind, OptionKind::RejectOnce | OptionKind::RejectAlways);
    let rejecting: Vec<&ApprovalOption> = approval.options.iter().filter(rejects).collect();
    if rejecting.iter().any(|rejecting| rejecting.id == option) {
        return Ok(option.to_owned());
    }
    let instead = match rejecting.is_empty() {
        true => "deny it without an option".to_owned(),
        false => format!("choose one of: {}", ids(&rejecting)),
    };
    Err(BadAnswer::NotPossible(format!("{option:?} is not an option that denies this; {instead}")))
}

/// The ids of these options, for an error.
fn ids(options: &[&ApprovalOption]) -> String {
    options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>().join(", ")
}

fn check_answers(approval: &Approval, answers: &Answers) -> Result<(), BadAnswer> {
    let impossible = |why: String| Err(BadAnswer::NotPossible(why));
    let questions = approval.questions.as_deref().unwrap_or_default();
    if approval.kind != ApprovalKind::Question || questions.is_empty() {
        return impossible("this approval asks no questions; approve or deny it".to_owned());
    }
    if answers.values().all(|answer| answer.is_empty()) {
        return impossible("there is no answer; answer a question, or deny".to_owned());
    }
    for (id, answer) in answers {
        let Some(question) = questions.iter().find(|question| question.id == *id) else {
            return impossible(format!("there is no question {id:?}"));
        };
        if answer.len() > 1 && !question.multi {
            return impossible(format!("the question {id:?} takes one answer"));
        }
        let is_offered = |text: &String| question.options.iter().any(|option| option.label == *text);
        if let Some(other) = answer.iter().find(|text| !question.free && !is_offered(text)) {
            return impossible(format!("{other:?} is not an answer to the question {id:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
