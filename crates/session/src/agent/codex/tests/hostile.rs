//! Lines that make no sense or are too large.

use super::*;

#[test]
fn r52_hostile_lines_are_recorded_and_change_nothing() {
    let mut codex = prompted();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_item =
        format!(r#"{{"method":"item/started","params":{{"item":{{"type":"x","id":"d","arguments":{deep}}}}}}}"#);
    let wide = format!(r#"{{"method":"turn/plan/updated","params":{{"plan":[{}0]}}}}"#, "{},".repeat(1 << 20));
    let wide_error =
        format!(r#"{{"method":"error","params":{{"error":{{"codexErrorInfo":[{}0]}}}}}}"#, "0,".repeat(1 << 20));
    let lines: [&[u8]; 13] = [
        b"not json",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{\"id\":[1,2]}",
        b"{\"id\":99,\"result\":{}}",
        b"{\"method\":\"item/started\"}",
        b"{\"method\":\"item/completed\",\"params\":{\"item\":{\"type\":\"plan\"}}}",
        deep.as_bytes(),
        deep_item.as_bytes(),
        wide.as_bytes(),
        wide_error.as_bytes(),
    ];
    for line in lines {
        codex.handle_line(line);
        let found = news(&mut codex);
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        match found.as_slice() {
            [AdapterEvent::Event(event)] => assert!(json!(event).to_string().len() < 2 * MAX_DETAIL, "{shown}"),
            [AdapterEvent::Noise(line)] => assert!(line.len() <= MAX_NOISE, "{shown}"),
            other => panic!("{shown}: {other:?}"),
        }
    }
    assert!(written(&mut codex).is_empty());
    notify(&mut codex, "hologram/started", json!({"beams": 2}));
    assert_eq!(recorded(&mut codex)[0]["source"], "codex");
    complete(&mut codex, "u", "completed");
    assert_eq!(ends(&mut codex).len(), 1);
}

#[test]
fn r52_large_details_are_left_out_and_texts_are_not() {
    let mut codex = prompted();
    let wide = format!("[{}0]", "0,".repeat(600 << 10));
    for kind in ["mcpToolCall", "fileChange", "hologram"] {
        let line = format!(
            r#"{{"method":"item/started","params":{{"item":{{"type":"{kind}","id":"d","changes":{wide},"status":"inProgress"}}}}}}"#
        );
        codex.handle_line(line.as_bytes());
        let found = &recorded(&mut codex)[0];
        assert_eq!((&found["call"], &found["truncated"]), (&json!("d"), &json!(true)), "{kind}");
    }
    let long = "y".repeat(1 << 20);
    notify(&mut codex, "item/agentMessage/delta", json!({"itemId": "i", "delta": long}));
    let texts: usize = recorded(&mut codex).iter().map(|event| event["delta"].as_str().unwrap().len()).sum();
    assert_eq!(texts, 1 << 20);
    let output = json!({"type": "commandExecution", "id": "c", "command": "x", "aggregatedOutput": long, "exitCode": 3, "status": "failed"});
    item(&mut codex, "item/completed", output);
    let found = &recorded(&mut codex)[0];
    assert!(found.to_string().len() < 2 * MAX_DETAIL && found["truncated"] == true);
    assert_eq!(found["content"][1]["content"]["text"], "exit code 3");
    let padding = "x".repeat(MAX_CONTENT);
    notify(&mut codex, "turn/completed", json!({"turn": {"id": "u", "status": "completed", "items": padding}}));
    assert_eq!(ends(&mut codex).len(), 1, "a long line ends the run, too");
}

#[test]
fn r52_what_is_remembered_is_bounded() {
    let mut codex = prompted();
    for number in 0..1000 {
        let id = format!("{number}{}", "x".repeat(5000));
        notify(&mut codex, "item/agentMessage/delta", json!({"itemId": id, "delta": "x"}));
        notify(&mut codex, "warning", json!({"message": id}));
        item(
            &mut codex,
            "item/started",
            json!({"type": "commandExecution", "id": format!("c{number}"), "command": "x"}),
        );
        let call = json!({"type": "collabAgentToolCall", "id": "c", "receiverThreadIds": [id]});
        item(&mut codex, "item/started", call);
        codex.steer("more");
    }
    news(&mut codex);
    let size = format!("{codex:?}").len();
    written(&mut codex);
    assert!(codex.pending.len() <= MAX_PENDING && codex.warnings.len() <= MAX_WARNINGS);
    let kept = format!("{:?}", (&codex.items, &codex.warnings)).len();
    assert!(kept < 256 << 10, "{kept} bytes of {size}");
}

#[test]
fn the_output_of_a_running_command_is_shown_now_and_then() {
    let mut codex = prompted();
    item(
        &mut codex,
        "item/started",
        json!({"type": "commandExecution", "id": "c", "command": "x", "status": "inProgress"}),
    );
    news(&mut codex);
    for _ in 0..10_000 {
        notify(&mut codex, "item/commandExecution/outputDelta", json!({"itemId": "c", "delta": "a line of output\n"}));
    }
    let found = recorded(&mut codex);
    let bytes: usize = found.iter().map(|event| event.to_string().len()).sum();
    assert!(found.len() < 20 && bytes < 300 << 10, "{} events of {bytes} bytes", found.len());
    assert_eq!(found[0]["content"][0]["content"]["text"], "a line of output\n");
    item(
        &mut codex,
        "item/completed",
        json!({"type": "commandExecution", "id": "c", "command": "x", "aggregatedOutput": null, "status": "completed"}),
    );
    let last = &recorded(&mut codex)[0];
    assert!(last["content"][0]["content"]["text"].as_str().unwrap().contains("left out"), "{last}");
}

#[test]
fn r52_only_the_first_parts_of_a_long_summary_are_read() {
    let mut codex = prompted();
    let parts = vec!["x"; 100_000];
    item(&mut codex, "item/completed", json!({"type": "reasoning", "id": "r", "summary": parts}));
    let bytes: usize = recorded(&mut codex).iter().map(|event| event["delta"].as_str().unwrap().len()).sum();
    assert!(bytes < 4096, "{bytes}");
}

/// Clients show a list.
#[test]
fn r52_a_long_plan_stays_a_list() {
    let mut codex = prompted();
    let plan = vec![json!({"step": "x".repeat(1000), "status": "pending"}); 200];
    notify(&mut codex, "turn/plan/updated", json!({"plan": plan}));
    let found = recorded(&mut codex);
    assert_eq!((found[0]["entries"].as_array().unwrap().len(), &found[0]["truncated"]), (128, &json!(true)));
}
