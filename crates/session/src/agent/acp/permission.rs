//! Permission requests of ACP agents, as approvals.

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::{
    Answer, Approval, ApprovalId, ApprovalKind, ApprovalOption, Detail, OptionKind, Question,
};
use bowline_proto::agent::event::RunId;
use serde_json::{Map, Value, json};

use super::cursor::{self, OfferedAnswers};
use super::elicitation::{Elicitation, Schema};
use super::messages::{Permission, PermissionOption, Tool};
use crate::agent::details::{Cut, quoted_argument, unified_diff};
use crate::agent::rpc::Id;

/// The kind of a tool call that asks for the approval of a plan.
const PLAN: &str = "switch_mode";
/// The longest id of an option, in bytes; an option with a longer one is left out.
const MAX_ID: usize = 256;
/// The most options of a request; more are left out.
const MAX_OPTIONS: usize = 32;

/// A request of the agent that waits for an answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) id: Id,
    form: Form,
}

/// How the request is answered.
#[derive(Debug)]
enum Form {
    /// With an option. This one refuses, unless the user chose another one.
    Permission {
        reject: Option<String>,
    },
    Elicitation(Schema),
    CursorQuestion(OfferedAnswers),
    CursorPlan,
}

impl OpenRequest {
    pub(super) fn permission(id: Id, permission: &Permission) -> OpenRequest {
        // Never one that changes more than this request.
        let reject = permission.options.iter().find(|option| option.kind == "reject_once");
        let reject = reject.map(|option| option.option_id.clone());
        OpenRequest { id, form: Form::Permission { reject } }
    }

    pub(super) fn elicitation(id: Id, schema: Schema) -> OpenRequest {
        OpenRequest { id, form: Form::Elicitation(schema) }
    }

    pub(super) fn cursor_question(id: Id, offered: OfferedAnswers) -> OpenRequest {
        OpenRequest { id, form: Form::CursorQuestion(offered) }
    }

    pub(super) fn cursor_plan(id: Id) -> OpenRequest {
        OpenRequest { id, form: Form::CursorPlan }
    }

    /// The result that the agent gets.
    pub(super) fn result(&self, answer: &Answer) -> Value {
        match (&self.form, answer) {
            (Form::Permission { .. }, Answer::Chosen(option) | Answer::Denied { option: Some(option), .. }) => {
                selected(option)
            }
            (Form::Permission { reject: Some(option) }, Answer::Denied { .. }) => selected(option),
            (Form::Permission { .. }, _) => json!({"outcome": {"outcome": "cancelled"}}),
            (Form::Elicitation(schema), Answer::Answers(answers)) => {
                json!({"action": "accept", "content": schema.content(answers)})
            }
            (Form::Elicitation(_), Answer::Denied { .. }) => json!({"action": "decline"}),
            (Form::Elicitation(_), _) => json!({"action": "cancel"}),
            (Form::CursorQuestion(offered), Answer::Answers(answers)) => offered.result(answers),
            (Form::CursorQuestion(_), Answer::Denied { .. }) => cursor::outcome("skipped"),
            (Form::CursorPlan, Answer::Chosen(option) | Answer::Denied { option: Some(option), .. }) => {
                cursor::outcome(option)
            }
            (Form::CursorPlan, Answer::Denied { .. }) => cursor::outcome("rejected"),
            (Form::CursorQuestion(_) | Form::CursorPlan, _) => cursor::outcome("cancelled"),
        }
    }
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// The approval of a permission request. Its id and time are set when it is recorded. `changes` are those that the agent
/// announced earlier, as a diff.
pub(super) fn approval(run: Option<RunId>, permission: &Permission, changes: Option<&str>) -> Approval {
    let Permission { options, tool_call } = permission;
    let mut cut = Cut::default();
    let input = tool_call.raw_input.as_ref().and_then(Value::as_object);
    let plan = input.and_then(|input| input.get("plan")).and_then(Value::as_str);
    let kind = match tool_call.kind.as_deref() {
        Some(PLAN) => ApprovalKind::Plan,
        _ => ApprovalKind::Permission,
    };
    let own = input.and_then(|input| input.get("diff")).and_then(Value::as_str);
    let diff = content_diff(tool_call.content.as_ref());
    let detail = Detail {
        command: input.and_then(command).map(|text| cut.long(&text)),
        cwd: input.and_then(|input| input.get("cwd")).and_then(Value::as_str).map(|text| cut.long(text)),
        diff: diff.as_deref().or(changes).or(own).map(|text| cut.long(text)),
        text: plan.map(ToOwned::to_owned).or_else(|| content_text(tool_call)).map(|text| cut.long(&text)),
    };
    let title = tool_call.title.as_deref().map(|title| cut.line(title)).unwrap_or_default();
    let tool = tool_call.name.as_deref().or(tool_call.kind.as_deref()).unwrap_or("tool");
    // An option whose id cannot be kept cannot be chosen.
    let usable: Vec<_> = options.iter().filter(|option| option.option_id.len() <= MAX_ID).take(MAX_OPTIONS).collect();
    Approval {
        id: ApprovalId::default(),
        run,
        kind,
        tool: cut.line(tool),
        call: Some(cut.line(&tool_call.tool_call_id)),
        title,
        detail,
        options: usable.iter().map(|option| approval_option(option, &mut cut)).collect(),
        truncated: cut.was_cut || usable.len() < options.len(),
        questions: None,
        at: String::new(),
        expires_at: None,
    }
}

/// The approval of a question.
pub(super) fn question(run: Option<RunId>, elicitation: &Elicitation) -> Approval {
    let mut cut = Cut::default();
    let (questions, left_out): (Vec<Question>, bool) = elicitation.requested_schema.questions();
    Approval {
        id: ApprovalId::default(),
        run,
        kind: ApprovalKind::Question,
        tool: "question".to_owned(),
        call: elicitation.tool_call_id.as_deref().map(|call| cut.line(call)),
        title: cut.line(&elicitation.message),
        detail: Detail::default(),
        truncated: cut.was_cut || left_out,
        options: Vec::new(),
        questions: Some(questions),
        at: String::new(),
        expires_at: None,
    }
}

fn approval_option(option: &PermissionOption, cut: &mut Cut) -> ApprovalOption {
    let kind = match option.kind.as_str() {
        "allow_once" => OptionKind::AllowOnce,
        "allow_always" => OptionKind::AllowAlways,
        "reject_once" => OptionKind::RejectOnce,
        "reject_always" => OptionKind::RejectAlways,
        _ => OptionKind::Unknown,
    };
    let label = cut.line(&option.name);
    let effect = match kind {
        OptionKind::AllowAlways => Some(format!("the agent does not ask again; it calls this: {label}")),
        OptionKind::RejectAlways => Some(format!("the agent does not try again; it calls this: {label}")),
        OptionKind::AllowOnce | OptionKind::RejectOnce | OptionKind::Unknown => None,
    };
    ApprovalOption { id: option.option_id.clone(), kind, label, effect }
}

/// The command line in a tool's input: a text, or a list of arguments.
fn command(input: &Map<String, Value>) -> Option<String> {
    match input.get("command")? {
        Value::String(command) => Some(command.clone()),
        Value::Array(arguments) if !arguments.is_empty() => {
            let quoted = |argument: &Value| argument.as_str().map_or_else(|| argument.to_string(), quoted_argument);
            Some(arguments.iter().map(quoted).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// Leaves out the options that the table of agents does not let a client choose: those that skip approvals, and of a plan
/// also those that switch to a mode which a client may not choose. They would be a way around the table. What the id of an
/// option means is only known if it is that of a mode.
pub(super) fn retain_allowed(permission: &mut Permission, policy: &ModePolicy, is_mode: impl Fn(&str) -> bool) {
    let is_plan = permission.tool_call.kind.as_deref() == Some(PLAN);
    permission.options.retain(|option| {
        let id = option.option_id.as_str();
        let named = id.strip_prefix("exit-plan-clear-").or_else(|| id.strip_prefix("exit-plan-"));
        let mode = named.or(Some(id).filter(|id| is_mode(id)));
        // To reject a plan is to stay in the mode.
        let switches = is_plan && !option.kind.starts_with("reject");
        policy.allows_value(named.unwrap_or(id)) && !(switches && mode.is_some_and(|mode| !policy.allows(mode)))
    });
}

/// The text in a tool's content.
fn content_text(tool: &Tool) -> Option<String> {
    let items = tool.content.as_ref().and_then(Value::as_array)?;
    let texts: Vec<&str> = items.iter().filter_map(|item| item["content"]["text"].as_str()).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

/// The changes in a tool's content, as a unified diff.
pub(super) fn content_diff(content: Option<&Value>) -> Option<String> {
    let items = content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |change: &Value, key: &str| change[key].as_str().unwrap_or_default().to_owned();
    let unified = |change| unified_diff(&text(change, "path"), &text(change, "oldText"), &text(change, "newText"));
    let diffs: Vec<String> = items.iter().filter(|item| item["type"] == "diff").map(unified).collect();
    Some(diffs.join("")).filter(|text| !text.is_empty())
}
