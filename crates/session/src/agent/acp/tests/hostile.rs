//! ACP agents that send too much, or nonsense.

use super::*;

#[test]
fn r52_hostile_lines_are_recorded_and_change_nothing() {
    let mut acp = prompted();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_update =
        format!(r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"plan","entries":{deep}}}}}}}"#);
    let wide = format!(r#"{{"method":"session/update","params":{{"update":{{"x":[{}0]}}}}}}"#, "0,".repeat(2 << 20));
    let lines: [&[u8]; 10] = [
        b"not json",
        b"{}",
        b"[]",
        b"null",
        b"{\"id\":[1,2]}",
        b"{\"id\":99,\"result\":{}}",
        b"\xff\xfe",
        deep.as_bytes(),
        deep_update.as_bytes(),
        wide.as_bytes(),
    ];
    for line in lines {
        acp.handle_line(line);
        let found = events(&mut acp);
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        match found.as_slice() {
            [AdapterEvent::Event(event)] => assert!(json!(event).to_string().len() < 2 * MAX_DETAIL, "{shown}"),
            [AdapterEvent::Noise(line)] => assert!(line.len() <= MAX_NOISE, "{shown}"),
            other => panic!("{shown}: {other:?}"),
        }
    }
    assert!(written(&mut acp).is_empty());
    update(&mut acp, json!({"sessionUpdate": "hologram", "beams": 2}));
    update(&mut acp, json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}}));
    update(&mut acp, json!({"sessionUpdate": "tool_call", "title": "without an id"}));
    assert!(recorded(&mut acp).iter().all(|event| event["type"] == "raw" && event["source"] == "acp"));
}

#[test]
fn r33_long_words_of_the_agent_are_cut() {
    let mut acp = prompted();
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "x".repeat(600_000)}}));
    let Some(AdapterEvent::Ended { end, .. }) = events(&mut acp).pop() else { panic!("no end") };
    assert_eq!(end.stop_reason.unwrap().len(), MAX_SHORT);
    let mut acp = adapter(None, None);
    receive(&mut acp, initialized(true));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "x".repeat(600_000)}}));
    assert!(matches!(events(&mut acp).pop(), Some(AdapterEvent::Unusable(_))));
}

#[test]
fn r52_what_is_remembered_is_bounded() {
    let mut acp = prompted();
    for n in 0..300 {
        let change = json!([{"type": "diff", "path": "/f", "oldText": "", "newText": "x\n".repeat(10_000)}]);
        update(&mut acp, json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{n}"), "content": change}));
        update(
            &mut acp,
            json!({"sessionUpdate": "tool_call", "toolCallId": format!("{n}{}", "x".repeat(10_000)),
            "_meta": {"terminal_output_delta": {"data": "x"}}}),
        );
        acp.steer("more");
        events(&mut acp);
        written(&mut acp);
    }
    assert!(acp.pending.len() <= MAX_PENDING);
    assert!(acp.pending.values().any(|request| *request == Request::Prompt(RUN)), "its run needs an end");
    let kept = format!("{:?}", acp.tools).len();
    assert!(kept < 4 << 20, "{kept} bytes");
    let entries = vec![json!({"content": "x".repeat(1000)}); 300];
    update(&mut acp, json!({"sessionUpdate": "plan", "entries": entries}));
    let plan = &recorded(&mut acp)[0];
    assert_eq!(
        (plan["entries"].as_array().unwrap().len(), &plan["truncated"]),
        (300, &json!(true)),
        "a list stays one"
    );
}

/// A parsed value takes up to 100 times as much memory.
#[test]
fn r52_a_long_error_is_not_parsed() {
    let long = format!(r#"{{"error":{{"message":"short"}},"x":[{}0]}}"#, "0,".repeat(100_000));
    let mut acp = prompted();
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": long}}));
    let Some(AdapterEvent::Ended { end, .. }) = events(&mut acp).pop() else { panic!("no end") };
    assert!(end.error.unwrap().message.starts_with("{\"error\""));
}

/// Some JSON parsers accept at most 128 levels, and a client's message has a few more around the event.
#[test]
fn r52_deep_details_become_text() {
    for depth in [60, 70, 120] {
        let mut acp = prompted();
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let update = format!(r#"{{"jsonrpc":"2.0","method":"other","params":{deep}}}"#);
        acp.handle_line(update.as_bytes());
        let found = recorded(&mut acp);
        assert_eq!((&found[0]["message"]["method"], found[0]["truncated"] == true), (&json!("other"), depth > 60));
        let (mut value, mut levels) = (&found[0]["message"], 0);
        while let Some(inner) = value.get("params").or_else(|| value.get(0)) {
            (value, levels) = (inner, levels + 1);
        }
        assert_eq!((levels, value.is_string()), (64.min(depth + 1), depth > 60), "{depth}");
    }
}

#[test]
fn r52_large_details_are_left_out_and_texts_are_not() {
    let mut acp = prompted();
    let wide = format!("[{}0]", "0,".repeat(600 << 10));
    let line = format!(
        r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"tool_call","toolCallId":"t","title":"big","rawInput":{wide}}}}}}}"#
    );
    acp.handle_line(line.as_bytes());
    let found = recorded(&mut acp);
    assert_eq!(
        (&found[0]["call"], &found[0]["title"], &found[0]["truncated"]),
        (&json!("t"), &json!("big"), &json!(true))
    );
    let long = "y".repeat(1 << 20);
    update(&mut acp, json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": long}}));
    let texts: usize = recorded(&mut acp).iter().map(|event| event["delta"].as_str().unwrap().len()).sum();
    assert_eq!(texts, 1 << 20);
}

#[test]
fn r52_large_details_are_cut() {
    let mut acp = prompted();
    let content =
        json!([{"type": "content", "content": {"type": "text", "text": "y"}, "path": "z".repeat(MAX_DETAIL)}]);
    update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": content}));
    let found = recorded(&mut acp);
    assert_eq!(found[0]["truncated"], true);
    assert_eq!(found[0]["content"][0]["content"]["text"], "y", "it keeps its shape");
    assert_eq!(found[0]["content"][0]["path"].as_str().unwrap().len(), MAX_DETAIL / 2);
}

/// An edit of a file of 40 KB is not too large.
#[test]
fn r32_a_diff_of_a_whole_file_is_kept() {
    let mut acp = prompted();
    let diff =
        json!([{"type": "diff", "path": "/f", "oldText": "x\n".repeat(20_000), "newText": "y\n".repeat(20_000)}]);
    let input = json!({"file_path": "/f", "content": "y\n".repeat(20_000)});
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "rawInput": input, "content": diff});
    update(&mut acp, call);
    let found = recorded(&mut acp);
    assert_eq!((&found[0]["content"], &found[0]["input"]), (&diff, &input));
    assert!(found[0].get("truncated").is_none());
}

/// The agent announces a call twice, and says less the second time.
#[test]
fn r32_a_new_tool_call_has_every_field_and_a_known_one_keeps_its_own() {
    let mut acp = prompted();
    let call = |fields: serde_json::Value| {
        let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": "t"});
        call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        call
    };
    update(&mut acp, call(json!({"kind": "execute", "title": "ls", "status": "in_progress"})));
    update(&mut acp, call(json!({"rawInput": {"command": "ls"}})));
    let found = recorded(&mut acp);
    assert_eq!((&found[0]["name"], &found[0]["title"]), (&json!("execute"), &json!("ls")));
    for field in ["name", "kind", "title", "status"] {
        assert!(found[1].get(field).is_none(), "{field}: {}", found[1]);
    }
    let mut acp = prompted();
    update(&mut acp, call(json!({})));
    let found = recorded(&mut acp);
    let fields = ["name", "kind", "title", "status"].map(|field| found[0][field].as_str().unwrap().to_owned());
    assert_eq!(fields, ["other", "other", "other", "pending"]);
}

#[test]
fn r52_output_in_pieces_is_shown_when_it_has_doubled_and_cut_in_the_middle() {
    let mut acp = prompted_as("codex-acp");
    let mut events = 0;
    for n in 0..10_000 {
        let delta = json!({"terminal_output_delta": {"data": format!("line {n}\n")}});
        update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": delta}));
        events += recorded(&mut acp).len();
    }
    assert!(events < 20, "{events} events");
    let exit = json!({"terminal_exit": {"exit_code": 0}});
    let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "_meta": exit});
    update(&mut acp, end);
    let last = recorded(&mut acp).pop().unwrap();
    let text = last["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("line 0\n") && text.ends_with("line 9999\n") && text.contains("bytes left out"), "{text}");
    assert!(text.len() < 2 * MAX_DETAIL && last["truncated"] == true);
    for n in 0..1000 {
        let delta = json!({"terminal_output_delta": {"data": "x"}});
        let id = format!("t{n}");
        update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": delta}));
    }
    assert!(format!("{:?}", acp.tools).len() < 1 << 20, "only some calls are kept");
}
