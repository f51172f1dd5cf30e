//! What Codex asks.

use super::*;

fn ask(codex: &mut Codex, method: &str, params: Value) -> (RequestKey, Approval) {
    receive(codex, json!({"id": 0, "method": method, "params": params}));
    let [asked] = requested(codex).try_into().unwrap();
    asked
}

fn answered(codex: &mut Codex, request: RequestKey, answer: &Answer) -> Value {
    codex.answer(request, answer);
    let [message] = written(codex).try_into().unwrap();
    assert_eq!(message["id"], 0);
    message["result"].clone()
}

#[test]
fn r34_the_options_of_a_command_are_those_that_codex_offers() {
    let rule = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["npm", "test"]}});
    let network = |action: &str| json!({"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "a.example", "action": action}}});
    let decisions =
        json!(["accept", "acceptForSession", rule, network("allow"), network("deny"), "decline", "cancel", "fancy"]);
    let params =
        json!({"itemId": "c", "command": "/bin/bash -lc 'npm test'", "cwd": "/p", "availableDecisions": decisions});
    let mut codex = prompted();
    let method = "item/commandExecution/requestApproval";
    let (request, approval) = ask(&mut codex, method, params.clone());
    let kinds: Vec<_> = approval.options.iter().map(|option| (option.id.as_str(), option.kind)).collect();
    use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    assert_eq!(
        kinds,
        [
            ("accept", AllowOnce),
            ("accept-session", AllowAlways),
            ("accept-rule-2", AllowAlways),
            ("network-rule-3", AllowAlways),
            ("network-rule-4", RejectAlways),
            ("decline", RejectOnce),
            ("cancel", RejectOnce)
        ]
    );
    let always = approval.options.iter().filter(|option| matches!(option.kind, AllowAlways | RejectAlways));
    assert!(always.clone().all(|option| option.effect.is_some()));
    assert!(approval.options[2].effect.as_ref().unwrap().ends_with("npm test"));
    assert_eq!((approval.title.as_str(), approval.run, approval.call.as_deref()), ("npm test", Some(RUN), Some("c")));
    assert!(approval.truncated, "a decision was left out");
    let chosen = answered(&mut codex, request, &Answer::Chosen("accept-rule-2".into()));
    assert_eq!(chosen["decision"], rule);
    let deny = Answer::Denied { option: None, reason: None };
    let deny_with = |option: &str| Answer::Denied { option: Some(option.to_owned()), reason: None };
    let (blocked, _) = ask(&mut codex, method, params.clone());
    let blocked = answered(&mut codex, blocked, &deny_with("network-rule-4"));
    assert_eq!(blocked["decision"], network("deny"));
    for (answer, expected) in [
        (deny.clone(), "decline"),
        (deny_with("decline"), "decline"),
        (deny_with("cancel"), "cancel"),
        (Answer::Cancelled, "cancel"),
        (Answer::Chosen("{\"acceptForSession\"}".into()), "decline"),
        (Answer::Chosen("accept-session".into()), "acceptForSession"),
    ] {
        let (request, _) = ask(&mut codex, method, params.clone());
        assert_eq!(answered(&mut codex, request, &answer)["decision"], expected);
    }
    let (request, _) = ask(&mut codex, method, json!({"itemId": "c", "availableDecisions": ["accept", "cancel"]}));
    assert_eq!(answered(&mut codex, request, &deny)["decision"], "decline", "also if it was not offered");
    codex.answer(request, &deny);
    assert!(written(&mut codex).is_empty(), "it was answered already");
}

#[test]
fn r34_a_file_approval_has_the_diff_of_its_item() {
    let mut codex = prompted();
    let changes = json!([{"path": "/project/a", "kind": {"type": "update", "move_path": "/project/b"}, "diff": "@@ -1 +1 @@\n-x\n+y\n"}]);
    item(
        &mut codex,
        "item/started",
        json!({"type": "fileChange", "id": "f", "changes": changes, "status": "inProgress"}),
    );
    let params = json!({"itemId": "f", "grantRoot": "/other"});
    let (_, approval) = ask(&mut codex, "item/fileChange/requestApproval", params.clone());
    assert_eq!(approval.detail.diff.as_deref(), Some("--- /project/a\n+++ /project/b\n@@ -1 +1 @@\n-x\n+y\n"));
    assert!(approval.options[1].effect.as_ref().unwrap().contains("/other"));
    assert!(!approval.truncated);
    item(
        &mut codex,
        "item/completed",
        json!({"type": "fileChange", "id": "f", "changes": changes, "status": "completed"}),
    );
    news(&mut codex);
    let (_, approval) = ask(&mut codex, "item/fileChange/requestApproval", params);
    assert!(approval.detail.diff.is_none() && approval.truncated, "what is not known must not look complete");
}

#[test]
fn r34_permissions_are_granted_as_they_were_asked() {
    let mut codex = prompted();
    let permissions = json!({"network": {"enabled": true}});
    let params = json!({"itemId": "c", "cwd": "/p", "permissions": permissions});
    let method = "item/permissions/requestApproval";
    let (request, approval) = ask(&mut codex, method, params.clone());
    assert!(approval.detail.text.unwrap().contains("network"));
    let granted = answered(&mut codex, request, &Answer::Chosen("session".into()));
    assert_eq!(granted, json!({"permissions": permissions, "scope": "session"}));
    let (request, _) = ask(&mut codex, method, params);
    assert_eq!(answered(&mut codex, request, &Answer::Cancelled), json!({"permissions": {}}));
    let large = json!({"fileSystem": {"write": ["x".repeat(10_000)]}});
    receive(&mut codex, json!({"id": 0, "method": method, "params": {"itemId": "c", "permissions": large}}));
    assert!(requested(&mut codex).is_empty());
    assert_eq!(written(&mut codex)[0]["result"], json!({"permissions": {}}));
}

#[test]
fn r34_questions_are_answered_by_their_ids() {
    let mut codex = prompted();
    let secret = json!({"id": "key", "header": "Key", "question": "Which key?", "isSecret": true, "options": null});
    let colour = json!({"id": "colour", "question": "Which?", "isOther": false, "options": [{"label": "Red"}, {"label": "B\u{202e}lue"}]});
    let (request, approval) =
        ask(&mut codex, "item/tool/requestUserInput", json!({"itemId": "q", "questions": [secret, colour]}));
    let questions = approval.questions.unwrap();
    assert!(questions[0].free && questions[0].text.contains("recorded"));
    assert!(!questions[1].free);
    assert_eq!(questions[1].options.len(), 1, "an answer whose label cannot be shown cannot be chosen");
    let answers = Answer::Answers([("colour".to_owned(), vec!["Red".to_owned()])].into());
    assert_eq!(answered(&mut codex, request, &answers), json!({"answers": {"colour": {"answers": ["Red"]}}}));
}

#[test]
fn r34_a_request_that_codex_resolves_is_withdrawn() {
    let mut codex = prompted();
    let (request, _) = ask(&mut codex, "item/fileChange/requestApproval", json!({"itemId": "f"}));
    notify(&mut codex, "serverRequest/resolved", json!({"requestId": 1}));
    assert!(news(&mut codex).is_empty());
    notify(&mut codex, "serverRequest/resolved", json!({"requestId": 0}));
    assert_eq!(news(&mut codex), [AdapterEvent::Withdrawn(request)]);
    codex.answer(request, &Answer::Cancelled);
    assert!(written(&mut codex).is_empty());
}

/// Codex may wait for the answer without end.
#[test]
fn r32_every_request_of_codex_is_answered() {
    let mut codex = prompted();
    for (id, method) in [
        (json!(0), "item/tool/call"),
        (json!("x"), "account/chatgptAuthTokens/refresh"),
        (json!(4), "execCommandApproval"),
        (json!(1), "applyPatchApproval"),
        (json!(2), "item/hologram/requestApproval"),
    ] {
        receive(&mut codex, json!({"id": id, "method": method, "params": {"path": "/etc/passwd"}}));
        let answer = &written(&mut codex)[0];
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32601)), "{method}");
    }
    for method in
        ["item/commandExecution/requestApproval", "item/tool/requestUserInput", "mcpServer/elicitation/request"]
    {
        receive(&mut codex, json!({"id": 3, "method": method, "params": 7}));
        assert_eq!(written(&mut codex)[0]["error"]["code"], -32602);
        let long = "x".repeat(MAX_CONTENT);
        receive(&mut codex, json!({"id": 3, "method": method, "params": {"itemId": "c", "command": long}}));
        assert_eq!(written(&mut codex)[0]["error"]["code"], -32602);
    }
    let form = json!({"mode": "form", "message": "?", "requestedSchema": {"properties": {"a": {"type": "string"}}}});
    receive(&mut codex, json!({"id": 3, "method": "mcpServer/elicitation/request", "params": form}));
    assert_eq!(written(&mut codex)[0]["result"], json!({"action": "decline"}));
    assert!(requested(&mut codex).is_empty());
}

/// The model writes the reason, and must not be able to hide the rest with it.
#[test]
fn r34_what_is_asked_comes_before_the_reason() {
    let mut codex = prompted();
    let reason = "because ".repeat(4000);
    let method = "item/commandExecution/requestApproval";
    let permissions = json!({"network": {"enabled": true}});
    let params = json!({"itemId": "c", "command": "x", "reason": reason, "additionalPermissions": permissions});
    let (_, approval) = ask(&mut codex, method, params);
    let text = approval.detail.text.unwrap();
    assert!(text.starts_with("More permissions: {\"network\"") && approval.truncated, "{text}");
    let params = json!({"itemId": "c", "reason": reason, "permissions": permissions});
    let (_, approval) = ask(&mut codex, "item/permissions/requestApproval", params);
    assert!(approval.detail.text.unwrap().starts_with("Permissions: {\"network\""));
    let (_, approval) = ask(&mut codex, "item/fileChange/requestApproval", json!({"itemId": "f", "reason": reason}));
    assert!(approval.detail.text.unwrap().starts_with("Codex did not say what"));
    let large = json!({"fileSystem": {"write": ["x".repeat(10_000)]}});
    receive(
        &mut codex,
        json!({"id": 0, "method": method, "params": {"itemId": "c", "command": "x", "additionalPermissions": large}}),
    );
    assert!(requested(&mut codex).is_empty(), "no user could judge it");
    assert_eq!(written(&mut codex)[0]["result"], json!({"decision": "decline"}));
}

#[test]
fn r34_effects_name_the_host_and_quote_the_words_of_a_rule() {
    let mut codex = prompted();
    let rule = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "commit -m", "it's"]}});
    let network = json!({"host": "a.example", "protocol": "https"});
    let params = json!({"itemId": "c", "command": "x", "networkApprovalContext": network,
        "availableDecisions": ["acceptForSession", rule]});
    let (_, approval) = ask(&mut codex, "item/commandExecution/requestApproval", params);
    let effect = |at: usize| approval.options[at].effect.clone().unwrap();
    assert!(effect(0).contains("a.example"), "{}", effect(0));
    assert!(effect(1).ends_with(r"git 'commit -m' 'it'\''s'"), "{}", effect(1));
}
