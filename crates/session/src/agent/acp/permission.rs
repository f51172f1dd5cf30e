//! Permission requests of ACP agents, as approvals.

use bowline_proto::agent::approval::{
    Answer, Approval, ApprovalId, ApprovalKind, ApprovalOption, Detail, OptionKind, Question,
};
use bowline_proto::agent::event::RunId;
use serde_json::{Map, Value, json};

use super::elicitation::{Elicitation, Schema};
use super::messages::{Id, Permission, PermissionOption, Tool};
use crate::agent::shown_text;

/// The most bytes of each part of a detail; more is cut.
const MAX_DETAIL: usize = 8 << 10;
/// The most bytes of a title or a label.
const MAX_LINE: usize = 1 << 10;
/// The longest id of an option, in bytes; an option with a longer one is left out.
const MAX_ID: usize = 256;
/// The most options of a request; more are left out.
const MAX_OPTIONS: usize = 32;
/// Lines around a change that a diff shows.
const CONTEXT: usize = 3;

/// A request of the agent that waits for an answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) id: Id,
    form: Form,
}

/// How the request is answered.
#[derive(Debug)]
enum Form {
    /// With an option. This one refuses.
    Permission {
        reject: Option<String>,
    },
    Elicitation(Schema),
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

    /// The result that the agent gets.
    pub(super) fn result(&self, answer: &Answer) -> Value {
        match (&self.form, answer) {
            (Form::Permission { .. }, Answer::Chosen(option)) => selected(option),
            (Form::Permission { reject: Some(option) }, Answer::Denied { .. }) => selected(option),
            (Form::Permission { .. }, _) => json!({"outcome": {"outcome": "cancelled"}}),
            (Form::Elicitation(schema), Answer::Answers(answers)) => {
                json!({"action": "accept", "content": schema.content(answers)})
            }
            (Form::Elicitation(_), Answer::Denied { .. }) => json!({"action": "decline"}),
            (Form::Elicitation(_), _) => json!({"action": "cancel"}),
        }
    }
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// The approval of a permission request. Its id and time are set when it is recorded.
pub(super) fn approval(run: Option<RunId>, permission: &Permission) -> Approval {
    let Permission { options, tool_call } = permission;
    let mut cut = Cut::default();
    let input = tool_call.raw_input.as_ref().and_then(Value::as_object);
    let plan = input.and_then(|input| input.get("plan")).and_then(Value::as_str);
    let kind = match tool_call.kind.as_deref() {
        Some("switch_mode") => ApprovalKind::Plan,
        _ => ApprovalKind::Permission,
    };
    let detail = Detail {
        command: input.and_then(command).map(|text| cut.long(&text)),
        cwd: input.and_then(|input| input.get("cwd")).and_then(Value::as_str).map(|text| cut.long(text)),
        diff: diff(tool_call, input).map(|text| cut.long(&text)),
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
        OptionKind::AllowAlways => Some(format!("the agent does not ask again, as far as its own words say: {label}")),
        OptionKind::RejectAlways => Some(format!("the agent does not try again, as far as its own words say: {label}")),
        OptionKind::AllowOnce | OptionKind::RejectOnce | OptionKind::Unknown => None,
    };
    ApprovalOption { id: option.option_id.clone(), kind, label, effect }
}

/// The command line in a tool's input: a text, or a list of arguments.
fn command(input: &Map<String, Value>) -> Option<String> {
    match input.get("command")? {
        Value::String(command) => Some(command.clone()),
        Value::Array(arguments) if !arguments.is_empty() => {
            Some(arguments.iter().map(argument).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// An argument as a shell would take it, so that it is clear where it ends.
fn argument(argument: &Value) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    match argument {
        Value::String(text) if !text.is_empty() && text.bytes().all(is_plain) => text.clone(),
        Value::String(text) => format!("'{}'", text.replace('\'', "'\\''")),
        other => other.to_string(),
    }
}

/// The text in a tool's content.
fn content_text(tool: &Tool) -> Option<String> {
    let items = tool.content.as_ref().and_then(Value::as_array)?;
    let texts: Vec<&str> = items.iter().filter_map(|item| item["content"]["text"].as_str()).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

/// The changes in a tool's content or input, as a unified diff.
fn diff(tool: &Tool, input: Option<&Map<String, Value>>) -> Option<String> {
    let items = tool.content.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let diffs: Vec<String> = items.iter().filter(|item| item["type"] == "diff").map(unified).collect();
    let own = || input.and_then(|input| input.get("diff")).and_then(Value::as_str).map(ToOwned::to_owned);
    Some(diffs.join("")).filter(|text| !text.is_empty()).or_else(own)
}

/// One change as a unified diff with a single hunk: what the texts have in common at both ends is left out.
fn unified(change: &Value) -> String {
    let path = change["path"].as_str().unwrap_or_default();
    let lines = |key: &str| change[key].as_str().unwrap_or_default().lines().collect::<Vec<_>>();
    let (old, new) = (lines("oldText"), lines("newText"));
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let before = head - head.min(CONTEXT);
    let after = tail.min(CONTEXT);
    let (removed, added) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let context = |lines: &[&str]| lines.iter().map(|line| format!(" {line}\n")).collect::<String>();
    let marked = |mark: char, lines: &[&str]| lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let counts = |changed: usize| head - before + changed + after;
    format!(
        "--- {path}\n+++ {path}\n@@ -{start},{} +{start},{} @@\n{}{}{}{}",
        counts(removed.len()),
        counts(added.len()),
        context(&old[before..head]),
        marked('-', removed),
        marked('+', added),
        context(&old[old.len() - tail..old.len() - tail + after]),
        start = before + 1,
    )
}

/// Cuts long texts, and remembers whether it did.
#[derive(Default)]
struct Cut {
    was_cut: bool,
}

impl Cut {
    /// A text of several lines, whose control characters stay visible as escapes: the user decides by what it says.
    fn long(&mut self, text: &str) -> String {
        self.shown(text, MAX_DETAIL)
    }

    /// The same on one line.
    fn line(&mut self, text: &str) -> String {
        self.shown(&text.replace(['\n', '\t'], " "), MAX_LINE)
    }

    fn shown(&mut self, text: &str, max: usize) -> String {
        let (shown, was_cut) = shown_text(text, max);
        self.was_cut |= was_cut;
        shown
    }
}
