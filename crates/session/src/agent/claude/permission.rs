//! Permission requests of Claude Code, as approvals.

use std::path::Path;

use bowline_proto::agent::approval::{Answer, Approval, ApprovalId, ApprovalKind, ApprovalOption, Detail, OptionKind};
use bowline_proto::agent::event::RunId;
use serde_json::{Value, json};

use super::messages::Permission;
use super::question::Questions;
use super::settings::Known;
use super::suggestion;
use super::tools;
use crate::agent::details::{Cut, unified_diff};

/// The most suggestions of a request that become options; later ones are left out.
const MAX_SUGGESTIONS: usize = 16;
/// What the model hears if the user gave no reason.
const DENIED: &str = "The user denied this.";
/// What the model hears of a request whose run was aborted.
const ABORTED: &str = "The user aborted the run.";

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The agent's id for it.
    pub(super) id: String,
    /// The tool call that waits.
    pub(super) call: Option<String>,
    /// The tool call of the sub-agent that made the request.
    pub(super) parent: Option<String>,
    /// The request may outlive the turn in which it was made.
    pub(super) is_of_sub_agent: bool,
    /// The turn in which it was made goes on.
    is_turn_open: bool,
    /// The tool's input as JSON: a parsed value would take much more memory while it waits.
    input: String,
    form: Form,
}

/// How the request is answered.
#[derive(Debug)]
enum Form {
    /// With one of these options, or else with a denial.
    Permission(Vec<AllowOption>),
    Questions(Questions),
}

/// An option that allows the call.
#[derive(Debug)]
struct AllowOption {
    id: String,
    /// The change of permissions that it makes, as JSON.
    change: Option<String>,
}

impl OpenRequest {
    /// The turn in which it was made, or that of which the sub-agent is, has ended.
    pub(super) fn handle_turn_end(&mut self) {
        self.is_turn_open = false;
    }

    /// What the agent is told, and whether that allows the call.
    pub(super) fn response(&self, answer: &Answer) -> (Value, bool) {
        let input = || serde_json::from_str::<Value>(&self.input).unwrap_or_default();
        match (&self.form, answer) {
            (Form::Permission(options), Answer::Chosen(chosen)) => {
                let Some(option) = options.iter().find(|option| option.id == *chosen) else {
                    return (deny(DENIED), false);
                };
                let mut response = json!({"behavior": "allow", "updatedInput": input()});
                match option.change.as_deref().map(serde_json::from_str::<Value>) {
                    Some(Ok(change)) => response["updatedPermissions"] = json!([change]),
                    Some(Err(_)) => return (deny(DENIED), false),
                    None => {}
                }
                (response, true)
            }
            (Form::Questions(questions), Answer::Answers(answers)) => {
                let mut input = input();
                if let Some(input) = input.as_object_mut() {
                    input.insert("answers".to_owned(), questions.answers(answers));
                }
                (json!({"behavior": "allow", "updatedInput": input}), true)
            }
            (_, Answer::Denied { reason: Some(reason), .. }) if !reason.is_empty() => (deny(reason), false),
            (_, Answer::Cancelled) => {
                // The end of a sub-agent's call, or of a late one, must not end another turn.
                let mut response = deny(ABORTED);
                response["interrupt"] = json!(self.is_turn_open && !self.is_of_sub_agent);
                (response, false)
            }
            (_, Answer::Denied { .. } | Answer::Chosen(_) | Answer::Answers(_)) => (deny(DENIED), false),
        }
    }
}

fn deny(message: &str) -> Value {
    json!({"behavior": "deny", "message": message})
}

/// The approval of a request, and what is needed to answer it. The approval's id and time are set when it is recorded.
pub(super) fn open(
    id: String,
    permission: Permission,
    parent: Option<String>,
    run: Option<RunId>,
    cwd: &Path,
    known: &Known,
) -> (OpenRequest, Approval) {
    let Permission { tool_name, input, description, permission_suggestions, tool_use_id, agent_id } = permission;
    let mut cut = Cut::default();
    let questions = if tool_name == "AskUserQuestion" { Questions::read(&input) } else { None };
    let is_plan = tool_name == "ExitPlanMode";
    let (allowing, options) = match (is_plan, &questions) {
        (_, Some(_)) => (Vec::new(), Vec::new()),
        (true, None) => plan_options(known),
        (false, None) => options(permission_suggestions.0, known, &mut cut),
    };
    let kind = match (&questions, is_plan) {
        (Some(_), _) => ApprovalKind::Question,
        (None, true) => ApprovalKind::Plan,
        (None, false) => ApprovalKind::Permission,
    };
    let title = match description.filter(|text| tool_name == "Bash" && !text.trim().is_empty()) {
        Some(description) => description,
        None => tools::title(&tool_name, &input),
    };
    let approval = Approval {
        id: ApprovalId::default(),
        run,
        kind,
        tool: cut.line(&tool_name),
        call: tool_use_id.as_deref().map(|call| cut.line(call)),
        title: cut.line(&title),
        detail: if questions.is_some() { Detail::default() } else { detail(&tool_name, &input, &title, cwd, &mut cut) },
        options,
        truncated: cut.was_cut || questions.as_ref().is_some_and(|questions| questions.left_out),
        questions: questions.as_ref().map(Questions::shown),
        at: String::new(),
        expires_at: None,
    };
    let open = OpenRequest {
        id,
        call: tool_use_id,
        parent,
        is_of_sub_agent: agent_id.is_some(),
        is_turn_open: true,
        input: input.to_string(),
        form: questions.map_or(Form::Permission(allowing), Form::Questions),
    };
    (open, approval)
}

/// The options that allow the call, and all options as they are shown.
type Options = (Vec<AllowOption>, Vec<ApprovalOption>);

fn option(id: &str, kind: OptionKind, label: &str, effect: Option<String>) -> ApprovalOption {
    ApprovalOption { id: id.to_owned(), kind, label: label.to_owned(), effect }
}

/// Each suggestion is an option of its own: together they would write a rule and switch the mode.
fn options(suggestions: Vec<Value>, known: &Known, cut: &mut Cut) -> Options {
    let mut allowing = vec![AllowOption { id: "allow".to_owned(), change: None }];
    let mut options = vec![option("allow", OptionKind::AllowOnce, "Allow", None)];
    let usable = suggestions.iter().filter(|suggestion| suggestion::is_allowed(suggestion, known));
    for (number, suggestion) in usable.take(MAX_SUGGESTIONS).enumerate() {
        let Some((label, effect)) = suggestion::words(suggestion) else { continue };
        let id = format!("always{}", number + 1);
        options.push(option(&id, OptionKind::AllowAlways, &cut.line(&label), Some(cut.line(&effect))));
        allowing.push(AllowOption { id, change: Some(suggestion.to_string()) });
    }
    options.push(option("deny", OptionKind::RejectOnce, "Deny", None));
    (allowing, options)
}

/// Each option names the mode that follows: by itself, the agent returns to the one before the plan, which may do much
/// without approval. Modes that are refused are not offered, so that a plan may be impossible to approve.
fn plan_options(known: &Known) -> Options {
    let (mut allowing, mut options) = (Vec::new(), Vec::new());
    let effects = [
        (
            "allow",
            OptionKind::AllowOnce,
            "Approve the plan",
            "default",
            "switches to the mode default, which requests approval before each change",
        ),
        (
            "accept_edits",
            OptionKind::AllowAlways,
            "Approve the plan and accept edits",
            "acceptEdits",
            "switches to the mode acceptEdits for this session",
        ),
    ];
    for (id, kind, label, mode, effect) in effects {
        if known.allows_mode(mode) {
            let change = json!({"type": "setMode", "mode": mode, "destination": "session"});
            allowing.push(AllowOption { id: id.to_owned(), change: Some(change.to_string()) });
            options.push(option(id, kind, label, Some(effect.to_owned())));
        }
    }
    options.push(option("deny", OptionKind::RejectOnce, "Keep planning", None));
    (allowing, options)
}

/// Everything that the tool gets: a user decides by it. What is shown elsewhere, such as in the title, is not repeated.
fn detail(tool: &str, input: &Value, title: &str, cwd: &Path, cut: &mut Cut) -> Detail {
    let changes = tools::changes(tool, input);
    let command = input["command"].as_str().filter(|_| matches!(tool, "Bash" | "PowerShell"));
    let plan = input["plan"].as_str().filter(|_| tool == "ExitPlanMode");
    let mut shown = changes.as_ref().map(|changes| changes.shown.clone()).unwrap_or_default();
    shown.extend(command.map(|_| "command"));
    shown.extend(plan.map(|_| "plan"));
    if command.is_some() && input["description"] == title {
        shown.push("description");
    }
    if tool == "ExitPlanMode" {
        // The program's own file, which has the same plan.
        shown.push("planFilePath");
    }
    let rest = rest(input, &shown);
    let text = match (tool, plan.filter(|plan| !plan.trim().is_empty())) {
        ("ExitPlanMode", plan) => {
            let plan = plan.unwrap_or("The agent wrote no plan.");
            if rest.is_empty() { plan.to_owned() } else { format!("{plan}\n\n{rest}") }
        }
        _ => rest,
    };
    let diff = changes.map(|tools::Changes { path, texts, left_out, .. }| {
        cut.was_cut |= left_out;
        texts.iter().map(|(old, new)| unified_diff(path, old.unwrap_or_default(), new)).collect::<String>()
    });
    Detail {
        command: command.map(|command| cut.long(command)),
        cwd: command.map(|_| cut.long(&cwd.to_string_lossy())),
        diff: diff.map(|diff| cut.long(&diff)),
        text: Some(text).filter(|text| !text.is_empty()).map(|text| cut.long(&text)),
    }
}

/// The fields of an input that are not shown elsewhere, one per line.
fn rest(input: &Value, shown: &[&str]) -> String {
    let fields = match input {
        Value::Object(fields) => fields,
        Value::Null => return String::new(),
        other => return other.to_string(),
    };
    let is_shown = |(key, value): &(&String, &Value)| {
        // With a command or a diff, only what is set matters.
        let is_unset = !shown.is_empty() && matches!(value, Value::Null | Value::Bool(false));
        shown.contains(&key.as_str()) || is_unset
    };
    let line = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}: {text}"),
        other => format!("{key}: {other}"),
    };
    fields.iter().filter(|field| !is_shown(field)).map(line).collect::<Vec<_>>().join("\n")
}
