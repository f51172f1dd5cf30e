//! Approvals: they wait through anything, are answered once, and are seen from everywhere.

use serde_json::{Value, json};

use rustix::process::Signal;

use super::super::gateway::signal;
use super::stream::{Received, Socket, read_until};
use super::{assert_each_approval_has_one_outcome, assert_each_run_ends_once, until, world, world_with};

#[test]
fn r36_an_approval_is_shown_everywhere_and_answered_once() {
    let world = world();
    let id = world.agent();
    let run = world.prompt(&id, "a", &["ask t1 rm -r build", "say went on"]);
    let approval = world.approvals(&id, 1).remove(0);
    assert_eq!(
        (&approval["id"], &approval["run"], &approval["kind"]),
        (&json!("a0"), &json!(run), &json!("permission"))
    );
    assert_eq!((&approval["title"], &approval["call"]), (&json!("rm -r build"), &json!("t1")));
    let listed = world.call("GET", "/v1/approvals", &Value::Null).json();
    assert_eq!(listed, json!({"approvals": [{"session": id, "approval": approval}]}));
    let mut socket = Socket::open(&world, "/v1/events");
    assert_eq!(socket.until("board")["sessions"][0]["approvals"], json!([approval]));
    // A client never sends the tool's input, only which option; and only one that there is.
    for (command, status, code) in [
        (json!({"type": "approve", "option": "nonsense"}), 400, "bad_request"),
        (json!({"type": "approve", "option": "reject"}), 400, "bad_request"),
        (json!({"type": "deny", "option": "nonsense"}), 400, "bad_request"),
        (json!({"type": "deny", "option": "once"}), 400, "bad_request"),
        (json!({"type": "answer", "answers": {"q": ["x"]}}), 400, "bad_request"),
    ] {
        let refused = world.answer(&id, "x", command.clone(), &approval);
        assert_eq!((refused.status, refused.code()), (status, code), "{command}");
    }
    let unknown = world.command(&id, "x", &json!({"type": "approve", "approval": "a9"}));
    assert_eq!((unknown.status, unknown.code()), (404, "not_found"));
    let reader = world.new_token("reader", "read");
    let body = json!({"id": "x", "command": {"type": "approve", "approval": "a0"}});
    assert_eq!(world.call_as(&reader, "POST", &format!("/v1/sessions/{id}/commands"), &body).status, 403);
    let phone = world.new_token("phone", "write");
    let body = json!({"id": "yes", "command": {"type": "approve", "approval": "a0"}});
    let accepted = world.call_as(&phone, "POST", &format!("/v1/sessions/{id}/commands"), &body);
    assert_eq!((accepted.status, &accepted.json()["run"]), (202, &json!(run)), "{}", accepted.text());
    assert_eq!(world.complete(&id, &run)["success"], true);
    assert_eq!(world.said(&id, &run), "t1: once\nwent on", "without an option, only this once");
    let late = world.answer(&id, "no", json!({"type": "deny"}), &approval);
    assert_eq!((late.status, late.code()), (409, "already_answered"));
    assert_eq!(
        (&late.json()["outcome"], &late.json()["by"]),
        (&json!("allowed"), &json!("phone")),
        "and by which client"
    );
    assert_eq!(world.command(&id, "yes", &body["command"]).status, 200, "a repeat is a duplicate");
    assert!(world.approvals(&id, 0).is_empty());
    assert_eq!(world.call("GET", "/v1/approvals", &Value::Null).json(), json!({"approvals": []}));
    let resolved = &world.events_of(&id, "approval_resolved")[0];
    let expected = (&json!("allowed"), &json!("once"), &json!("phone"), &json!("yes"));
    assert_eq!((&resolved["outcome"], &resolved["option"], &resolved["by"], &resolved["command"]), expected);
}

#[test]
fn r36_each_answer_reaches_the_agent_as_it_was_meant() {
    let world = world();
    let id = world.agent();
    let mut n = 0;
    let mut ask = |line: &str, command: Value| {
        n += 1;
        let run = world.prompt(&id, &format!("p{n}"), &[line]);
        let approval = world.approvals(&id, 1).remove(0);
        let answer = world.answer(&id, &format!("d{n}"), command, &approval);
        assert_eq!(answer.status, 202, "{line}: {}", answer.text());
        world.complete(&id, &run);
        (approval, world.said(&id, &run).trim_end().to_owned())
    };
    assert_eq!(ask("ask t ls", json!({"type": "approve", "option": "always"})).1, "t: always");
    assert_eq!(ask("ask t ls", json!({"type": "deny", "reason": "not now"})).1, "t: reject");
    assert_eq!(ask("ask-bare g ls", json!({"type": "approve"})).1, "g: proceed_once", "as Gemini asks");
    let (plan, said) = ask("ask-plan p # The plan", json!({"type": "approve", "option": "exit-plan-default"}));
    assert_eq!(
        (&plan["kind"], &plan["detail"]["text"], said.as_str()),
        (&json!("plan"), &json!("# The plan"), "p: exit-plan-default")
    );
    let (question, said) =
        ask("question q Which colour?", json!({"type": "answer", "answers": {"question_0": ["Blue"]}}));
    assert_eq!(
        (&question["kind"], &question["questions"][0]["options"][1]["label"]),
        (&json!("question"), &json!("Blue"))
    );
    assert_eq!(said, r#"q: {"action":"accept","content":{"question_0":"Blue"}}"#);
    assert_eq!(ask("question q Which?", json!({"type": "deny"})).1, r#"q: {"action":"decline"}"#);
    let journal = world.journal(&id);
    assert_each_approval_has_one_outcome(&journal);
    assert_eq!(world.events_of(&id, "approval_resolved")[1]["reason"], "not now");
}

/// The agent offers two ways to reject: for this once, and for ever.
#[test]
fn r36_a_denial_with_an_option_tells_the_agent_that_option() {
    let world = world();
    let id = world.agent();
    let options = json!([
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"},
        {"optionId": "never", "name": "No, and never ask again", "kind": "reject_always"},
    ]);
    let request = json!({"toolCall": {"toolCallId": "t", "title": "rm"}, "options": options});
    let answers = [
        (json!({"type": "deny"}), "no", None),
        (json!({"type": "deny", "option": "no", "reason": "not now"}), "no", Some("no")),
        (json!({"type": "deny", "option": "never"}), "never", Some("never")),
    ];
    for (n, (command, told, recorded)) in answers.into_iter().enumerate() {
        let run = world.prompt(&id, &format!("p{n}"), &[&format!("request session/request_permission {request}")]);
        let approval = world.approvals(&id, 1).remove(0);
        for option in ["yes", "nonsense", ""] {
            let refused = world.answer(&id, "x", json!({"type": "deny", "option": option}), &approval);
            assert_eq!((refused.status, refused.code()), (400, "bad_request"), "{option}");
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.ends_with("choose one of: no, never"), "{detail}");
        }
        assert_eq!(world.answer(&id, &format!("d{n}"), command.clone(), &approval).status, 202);
        assert_eq!(world.answer(&id, &format!("d{n}"), command.clone(), &approval).status, 200, "a repeat");
        world.complete(&id, &run);
        let said = world.said(&id, &run);
        assert!(said.contains(&format!(r#""optionId":"{told}""#)), "{command}: {said}");
        let resolved = &world.events_of(&id, "approval_resolved")[n];
        let found = (&resolved["outcome"], resolved["option"].as_str(), &resolved["reason"]);
        assert_eq!(found, (&json!("denied"), recorded, &command["reason"]));
    }
}

/// The run and its approval wait while the gateway is killed; any client answers it afterwards.
#[test]
fn r36_an_approval_waits_while_the_gateway_is_killed() {
    let mut world = world();
    let id = world.agent();
    let run = world.prompt(&id, "a", &["ask t1 deploy"]);
    let approval = world.approvals(&id, 1).remove(0);
    world.kill_gateway();
    world.start_gateway();
    assert_eq!(world.approvals(&id, 1), std::slice::from_ref(&approval));
    assert_eq!(world.answer(&id, "yes", json!({"type": "approve"}), &approval).status, 202);
    assert_eq!(world.complete(&id, &run)["success"], true);
}

#[test]
fn r36_two_clients_answer_and_the_first_wins() {
    let world = world();
    let id = world.agent();
    for round in 0..5 {
        let run = world.prompt(&id, &format!("p{round}"), &["ask t1 push"]);
        let approval = world.approvals(&id, 1).remove(0)["id"].clone();
        let (world, id, approval) = (&world, &id, &approval);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let answers = ["approve", "deny", "approve", "deny"].into_iter().enumerate().map(|(n, kind)| {
                let command = json!({"type": kind, "approval": approval});
                scope.spawn(move || world.command(id, &format!("{round}-{n}"), &command).status)
            });
            answers.collect::<Vec<_>>().into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 3, "{statuses:?}");
        world.complete(id, &run);
    }
    assert_each_approval_has_one_outcome(&world.journal(&id));
}

#[test]
fn r36_an_approval_that_needs_no_answer_any_more_is_closed_with_the_reason() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let outcome = |approval: &str| {
        let find = || world.events_of(&id, "approval_resolved").into_iter().find(|event| event["approval"] == approval);
        until(&format!("{approval} is closed"), || find().is_some());
        find().unwrap()["outcome"].as_str().unwrap().to_owned()
    };
    let (asked, go) = (world.file("asked"), world.file("go"));
    let run =
        world.prompt(&id, "a", &["ask-nowait t1 ls", &format!("touch {asked}"), &format!("wait {go}"), "withdraw t1"]);
    world.approvals(&id, 1);
    std::fs::write(&go, "").unwrap();
    assert_eq!(outcome("a0"), "withdrawn");
    assert_eq!(world.complete(&id, &run)["success"], true);
    let run = world.prompt(&id, "b", &["ask t2,t3 ls"]);
    world.approvals(&id, 2);
    assert_eq!(world.command(&id, "x", &json!({"type": "abort", "run": run})).status, 202);
    assert_eq!([outcome("a1"), outcome("a2")], ["aborted", "aborted"]);
    assert_eq!(world.complete(&id, &run)["aborted"], true);
    world.run_prompt(&id, "c", &["ask-nowait t4 ls", "say done"]);
    assert_eq!(outcome("a3"), "lost", "the agent went on without an answer");
    let run = world.prompt(&id, "d", &["ask-nowait t5 ls", &format!("wait {}", world.file("die")), "exit 1"]);
    world.approvals(&id, 1);
    std::fs::write(world.file("die"), "").unwrap();
    assert_eq!(outcome("a4"), "lost");
    world.complete(&id, &run);
    world.prompt(&id, "e", &["ask t6 ls"]);
    world.approvals(&id, 1);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    assert_eq!(outcome("a5"), "aborted");
    let journal = world.journal(&id);
    assert_each_approval_has_one_outcome(&journal);
    assert_each_run_ends_once(&journal);
}

/// The session process is killed while an approval waits. The first that looks at the session ends what was open, and a
/// stream that was open all the time gets it.
#[test]
fn r33_a_dead_session_is_repaired_by_the_first_that_notices() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let mut socket = Socket::open(&world, &format!("/v1/events?watch={id}@{epoch}:0"));
    let mut received = Received::default();
    let pid = world.file("pid");
    let run = world.prompt(&id, "a", &["ignore-term", &format!("pid {pid}"), "ask t1 ls"]);
    let queued = world.prompt(&id, "b", &["say never"]);
    world.approvals(&id, 1);
    signal(world.session_pid(&id), Signal::KILL);
    read_until(
        || socket.next(),
        &mut received,
        "the queued run was interrupted",
        |event| event["type"] == "complete" && event["run"] == queued,
    );
    let (first, second) = (world.complete(&id, &run), world.complete(&id, &queued));
    assert_eq!((&first["interrupted"], &first["started"]), (&json!(true), &json!(true)));
    assert_eq!((&second["interrupted"], &second["started"]), (&json!(true), &json!(false)));
    assert_eq!(world.events_of(&id, "approval_resolved")[0]["outcome"], "lost");
    let described = world.describe(&id);
    assert_eq!(
        (&described["state"], &described["activity"], &described["approvals"]),
        (&json!("lost"), &Value::Null, &json!([]))
    );
    let agent: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    until("the agent that outlived its session was ended", || super::aborts::has_ended(agent));
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    assert_eq!(world.run_prompt(&id, "c", &["say back"])["success"], true);
    let journal = world.journal(&id);
    assert_each_approval_has_one_outcome(&journal);
    assert_each_run_ends_once(&journal);
    assert_eq!(received.of(&id), &journal[..received.of(&id).len()]);
}
