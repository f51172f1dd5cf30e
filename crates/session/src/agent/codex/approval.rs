//! What Codex asks before it acts, as approvals, and the answers that it gets.

use bowline_proto::agent::approval::{Answer, Approval, ApprovalId, ApprovalKind, ApprovalOption, Detail, OptionKind};
use bowline_proto::agent::event::RunId;
use serde_json::{Value, json};

use super::request_messages::{CommandApproval, Elicitation, FileApproval, NetworkContext, PermissionsApproval};
use super::tools::unwrap_shell;
use crate::agent::details::{Cut, quoted_argument};
use crate::agent::rpc::Id;

/// The decisions of a request that are offered; more are left out.
const MAX_OPTIONS: usize = 16;
/// The most bytes of a rule or of permissions, as JSON. What is longer could not be shown whole, so it cannot be chosen.
const MAX_RULE: usize = 4 << 10;

/// A request of the agent that waits for an answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) id: Id,
    /// The result for each option, by the option's id.
    results: Vec<(String, Value)>,
    denied: Value,
    cancelled: Value,
    /// Answers are given by question.
    pub(super) is_question: bool,
}

impl OpenRequest {
    /// The result that the agent gets. Only what the agent itself offered is ever sent.
    pub(super) fn result(&self, answer: &Answer) -> Value {
        match answer {
            Answer::Chosen(option) | Answer::Denied { option: Some(option), .. } => {
                let chosen = self.results.iter().find(|(id, _)| id == option).map(|(_, result)| result);
                chosen.unwrap_or(&self.denied).clone()
            }
            Answer::Answers(answers) if self.is_question => {
                let answer = |(id, answers): (&String, &Vec<String>)| (id.clone(), json!({"answers": answers}));
                json!({"answers": answers.iter().map(answer).collect::<serde_json::Map<_, _>>()})
            }
            Answer::Denied { option: None, .. } | Answer::Answers(_) => self.denied.clone(),
            Answer::Cancelled => self.cancelled.clone(),
        }
    }

    /// A request for answers to questions. Without one, the model hears that there is none.
    pub(super) fn questions(id: Id) -> OpenRequest {
        let nothing = json!({"answers": {}});
        OpenRequest { id, results: Vec::new(), denied: nothing.clone(), cancelled: nothing, is_question: true }
    }
}

/// A decision that can be chosen.
struct DecisionOption {
    id: String,
    kind: OptionKind,
    label: &'static str,
    effect: Option<String>,
    result: Value,
}

impl DecisionOption {
    fn new(id: &str, kind: OptionKind, label: &'static str, result: Value) -> DecisionOption {
        DecisionOption { id: id.to_owned(), kind, label, effect: None, result }
    }

    fn with_effect(self, effect: String) -> DecisionOption {
        DecisionOption { effect: Some(effect), ..self }
    }
}

/// What an approval is about, besides its options.
struct Subject<'a> {
    tool: &'a str,
    call: &'a str,
    title: String,
    detail: Detail,
}

fn approval(run: Option<RunId>, subject: Subject<'_>, choices: &[DecisionOption], cut: &mut Cut) -> Approval {
    let option = |choice: &DecisionOption, cut: &mut Cut| ApprovalOption {
        id: choice.id.clone(),
        kind: choice.kind,
        label: choice.label.to_owned(),
        effect: choice.effect.as_deref().map(|effect| cut.long(effect)),
    };
    Approval {
        id: ApprovalId::default(),
        run,
        kind: ApprovalKind::Permission,
        tool: cut.line(subject.tool),
        call: Some(cut.line(subject.call)),
        title: cut.line(&subject.title),
        detail: subject.detail,
        options: choices.iter().map(|choice| option(choice, cut)).collect(),
        truncated: cut.was_cut,
        questions: None,
        at: String::new(),
        expires_at: None,
    }
}

fn open(id: Id, choices: Vec<DecisionOption>, denied: Value, cancelled: Value) -> OpenRequest {
    let results = choices.into_iter().map(|choice| (choice.id, choice.result)).collect();
    OpenRequest { id, results, denied, cancelled, is_question: false }
}

fn decision(decision: &Value) -> Value {
    json!({"decision": decision})
}

/// A command that wants to run, or that wants the network. Nothing for more permissions than can be shown.
pub(super) fn command(run: Option<RunId>, id: Id, request: &CommandApproval) -> Result<(OpenRequest, Approval), Id> {
    let permissions = request.additional_permissions.as_ref().filter(|permissions| !permissions.is_null());
    let permissions = permissions.map(Value::to_string);
    if permissions.as_ref().is_some_and(|permissions| permissions.len() > MAX_RULE) {
        return Err(id);
    }
    let mut cut = Cut::default();
    let network = request.network_approval_context.as_ref();
    let offered = request.available_decisions.clone().unwrap_or_else(|| vec![json!("accept"), json!("decline")]);
    let mut choices: Vec<DecisionOption> = Vec::new();
    for (number, offered) in offered.iter().take(MAX_OPTIONS).enumerate() {
        match command_option(number, offered, network) {
            Some(choice) if choices.iter().all(|other| other.id != choice.id) => choices.push(choice),
            Some(_) => {}
            None => cut.was_cut = true,
        }
    }
    let command = request.command.as_deref();
    let title = match (network, command, request.kind.as_deref()) {
        (Some(network), ..) => format!("Network access to {} ({})", network.host, network.protocol),
        (None, Some(command), Some("writeStdin")) => format!("Input for {}", unwrap_shell(command)),
        (None, Some(command), _) => unwrap_shell(command),
        (None, None, _) => "A command that Codex did not name".to_owned(),
    };
    // The reason comes last: it is the model's, and if it is long, it must not hide what is asked.
    let permissions = permissions.map(|permissions| format!("More permissions: {permissions}"));
    let text: Vec<&str> = [permissions.as_deref(), request.reason.as_deref()].into_iter().flatten().collect();
    let detail = Detail {
        command: command.map(|command| cut.long(command)),
        cwd: request.cwd.as_deref().map(|cwd| cut.long(cwd)),
        text: Some(text.join("\n")).filter(|text| !text.is_empty()).map(|text| cut.long(&text)),
        diff: None,
    };
    let subject = Subject { tool: "commandExecution", call: &request.item_id, title, detail };
    let approval = approval(run, subject, &choices, &mut cut);
    // Codex does not always offer to decline, but accepts it: the turn goes on, as after a denial in other agents.
    Ok((open(id, choices, decision(&json!("decline")), decision(&json!("cancel"))), approval))
}

/// A decision that Codex offers for a command; nothing for one that is unknown or cannot be shown whole.
fn command_option(number: usize, offered: &Value, network: Option<&NetworkContext>) -> Option<DecisionOption> {
    let result = decision(offered);
    if let Some(word) = offered.as_str() {
        return Some(match word {
            "accept" => DecisionOption::new("accept", OptionKind::AllowOnce, "Allow once", result),
            "acceptForSession" => {
                DecisionOption::new("accept-session", OptionKind::AllowAlways, "Allow in this session", result)
                    .with_effect(match network {
                        Some(network) => {
                            format!("Codex does not ask again for the host {} until it is restarted", network.host)
                        }
                        None => "Codex does not ask again for this command until it is restarted".to_owned(),
                    })
            }
            "decline" => DecisionOption::new("decline", OptionKind::RejectOnce, "Deny", result),
            "cancel" => DecisionOption::new("cancel", OptionKind::RejectOnce, "Deny and stop", result),
            _ => return None,
        });
    }
    if offered.to_string().len() > MAX_RULE {
        return None;
    }
    let rule = &offered["acceptWithExecpolicyAmendment"]["execpolicy_amendment"];
    if let Some(words) = rule.as_array() {
        let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(quoted_argument)).collect();
        let words = words.filter(|words| !words.is_empty())?.join(" ");
        let effect = format!("Codex keeps a rule, and does not ask again for commands that begin with: {words}");
        let id = format!("accept-rule-{number}");
        return Some(
            DecisionOption::new(&id, OptionKind::AllowAlways, "Allow with a rule", result).with_effect(effect),
        );
    }
    let rule = &offered["applyNetworkPolicyAmendment"]["network_policy_amendment"];
    let host = rule["host"].as_str()?;
    let (id, effect) = (format!("network-rule-{number}"), "Codex keeps a rule for the network, and");
    match rule["action"].as_str()? {
        "allow" => {
            let choice = DecisionOption::new(&id, OptionKind::AllowAlways, "Always allow this host", result);
            Some(choice.with_effect(format!("{effect} does not ask again for {host}")))
        }
        "deny" => {
            let choice = DecisionOption::new(&id, OptionKind::RejectAlways, "Always block this host", result);
            Some(choice.with_effect(format!("{effect} always refuses {host}")))
        }
        _ => None,
    }
}

/// Changes of files. They are in the item, which came before; `changes` is their diff and a title.
pub(super) fn file_change(
    run: Option<RunId>,
    id: Id,
    request: &FileApproval,
    changes: Option<(&str, &str)>,
) -> (OpenRequest, Approval) {
    let mut cut = Cut::default();
    let effect = match &request.grant_root {
        Some(root) => format!("Codex may change everything in {root} until it is restarted"),
        None => "Codex does not ask again for changes of these files until it is restarted".to_owned(),
    };
    let word = |word: &str| decision(&json!(word));
    let choices = vec![
        DecisionOption::new("accept", OptionKind::AllowOnce, "Allow once", word("accept")),
        DecisionOption::new(
            "accept-session",
            OptionKind::AllowAlways,
            "Allow in this session",
            word("acceptForSession"),
        )
        .with_effect(effect),
        DecisionOption::new("decline", OptionKind::RejectOnce, "Deny", word("decline")),
        DecisionOption::new("cancel", OptionKind::RejectOnce, "Deny and stop", word("cancel")),
    ];
    let unknown = changes.is_none().then_some("Codex did not say what it changes");
    let text: Vec<&str> = [unknown, request.reason.as_deref()].into_iter().flatten().collect();
    let detail = Detail {
        diff: changes.map(|(diff, _)| cut.long(diff)),
        text: Some(text.join("\n")).filter(|text| !text.is_empty()).map(|text| cut.long(&text)),
        ..Detail::default()
    };
    let title = changes.map_or_else(|| "Change files".to_owned(), |(_, title)| title.to_owned());
    let subject = Subject { tool: "fileChange", call: &request.item_id, title, detail };
    let mut approval = approval(run, subject, &choices, &mut cut);
    approval.truncated |= unknown.is_some();
    (open(id, choices, word("decline"), word("cancel")), approval)
}

/// More permissions for a turn or for the session. Nothing for permissions that are too long to be shown.
pub(super) fn permissions(
    run: Option<RunId>,
    id: Id,
    request: &PermissionsApproval,
) -> Result<(OpenRequest, Approval), Id> {
    let asked = request.permissions.to_string();
    if asked.len() > MAX_RULE {
        return Err(id);
    }
    let mut cut = Cut::default();
    let grant = |scope: &str| json!({"permissions": request.permissions, "scope": scope});
    let choices = vec![
        DecisionOption::new("turn", OptionKind::AllowOnce, "Allow for this turn", grant("turn")),
        DecisionOption::new("session", OptionKind::AllowAlways, "Allow in this session", grant("session"))
            .with_effect(format!("Codex keeps these permissions until it is restarted: {asked}")),
        DecisionOption::new("decline", OptionKind::RejectOnce, "Deny", json!({"permissions": {}})),
    ];
    let reason = request.reason.as_deref().map(|reason| format!("\n{reason}")).unwrap_or_default();
    let detail = Detail {
        cwd: request.cwd.as_deref().map(|cwd| cut.long(cwd)),
        text: Some(cut.long(&format!("Permissions: {asked}{reason}"))),
        ..Detail::default()
    };
    let title = "More permissions".to_owned();
    let subject = Subject { tool: "permissions", call: &request.item_id, title, detail };
    let approval = approval(run, subject, &choices, &mut cut);
    let nothing = json!({"permissions": {}});
    Ok((open(id, choices, nothing.clone(), nothing), approval))
}

/// A question of an MCP server that is answered with yes or no; Codex asks in this way before it calls a tool. Nothing
/// for a form that has to be filled in, or a page that has to be opened. The request does not name its tool call.
pub(super) fn elicitation(
    run: Option<RunId>,
    id: Id,
    request: &Elicitation,
    call: Option<&str>,
) -> Result<(OpenRequest, Approval), Id> {
    let fields = request.requested_schema["properties"].as_object();
    if request.mode != "form" || fields.is_some_and(|fields| !fields.is_empty()) {
        return Err(id);
    }
    let mut cut = Cut::default();
    let accept = |meta: Value| json!({"action": "accept", "content": {}, "_meta": meta});
    let server = request.server_name.as_deref().unwrap_or("an MCP server");
    let mut choices = vec![DecisionOption::new("accept", OptionKind::AllowOnce, "Allow once", accept(Value::Null))];
    let persists = |word: &str| {
        let offered = &request.meta["persist"];
        offered == word || offered.as_array().is_some_and(|offered| offered.iter().any(|offered| offered == word))
    };
    for (word, label, effect) in [
        ("session", "Allow in this session", "until it is restarted"),
        ("always", "Always allow", "and keeps a rule for that"),
    ] {
        if persists(word) {
            let choice = DecisionOption::new(word, OptionKind::AllowAlways, label, accept(json!({"persist": word})));
            choices.push(choice.with_effect(format!("Codex does not ask again for this tool of {server}, {effect}")));
        }
    }
    let (decline, cancel) = (json!({"action": "decline"}), json!({"action": "cancel"}));
    choices.push(DecisionOption::new("decline", OptionKind::RejectOnce, "Deny", decline.clone()));
    let arguments = &request.meta["tool_params"];
    let text = if arguments.is_null() { None } else { Some(cut.long(&arguments.to_string())) };
    let subject = Subject {
        tool: server,
        call: "",
        title: request.message.clone(),
        detail: Detail { text, ..Detail::default() },
    };
    let mut approval = approval(run, subject, &choices, &mut cut);
    approval.call = call.map(ToOwned::to_owned);
    Ok((open(id, choices, decline, cancel), approval))
}
