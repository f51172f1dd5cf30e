//! Settings that are refused, hostile lines, and bounds.

use super::*;

#[test]
fn a_setting_that_is_refused_shows_what_is_really_set() {
    let mut claude = ready(config());
    let set = |settings: Settings, claude: &mut Claude| claude.set(&settings);
    let mode = |mode: &str| Settings { mode: Some(mode.into()), ..Settings::default() };
    set(mode("bypassPermissions"), &mut claude);
    assert_eq!(written(&mut claude).len(), 0);
    let types = |claude: &mut Claude| recorded(claude).into_iter().map(|e| e["type"].clone()).collect::<Vec<_>>();
    assert_eq!(types(&mut claude), ["notice", "config"]);
    set(mode("plan"), &mut claude);
    refused(&mut claude, "bowline-2");
    assert_eq!(types(&mut claude), ["notice", "config"]);
    let option = |id: &str, value: &str| Settings {
        option: Some(OptionValue { id: id.into(), value: value.into() }),
        ..Settings::default()
    };
    for (id, value) in [("effort", "nonsense"), ("colour", "red")] {
        set(option(id, value), &mut claude);
        assert_eq!(types(&mut claude), ["notice", "config"]);
    }
    set(option("effort", "high"), &mut claude);
    responded(&mut claude, "bowline-3", json!({}));
    let config = recorded(&mut claude).pop().unwrap();
    assert_eq!((&config["type"], &config["options"][0]["current"]), (&json!("config"), &json!("high")));
    init(&mut claude);
    assert_eq!(types(&mut claude).len(), 0, "nothing has changed");
}

#[test]
fn r52_no_line_makes_the_adapter_fail() {
    let shapes = ["1", "null", "[]", "\"x\"", "{}", "true", "{\"a\":1}", "[[]]", "-1", "1e999", "\"\\u0000\""];
    let types = [
        "assistant",
        "user",
        "system",
        "result",
        "stream_event",
        "control_request",
        "control_response",
        "control_cancel_request",
        "command_lifecycle",
        "rate_limit_event",
        "keep_alive",
        "odd",
    ];
    let fields = [
        "message",
        "event",
        "request",
        "response",
        "request_id",
        "subtype",
        "tasks",
        "rate_limit_info",
        "user_message_uuids",
        "errors",
        "modelUsage",
        "usage",
        "result",
        "session_id",
        "patch",
        "parent_tool_use_id",
    ];
    let (mut claude, _) = prompted();
    for kind in types {
        for field in fields {
            for shape in shapes {
                claude.handle_line(format!("{{\"type\":\"{kind}\",\"{field}\":{shape}}}").as_bytes());
                claude.handle_line(
                    format!("{{\"{field}\":{shape},\"subtype\":\"init\",\"type\":\"{kind}\"}}").as_bytes(),
                );
            }
        }
    }
    for line in [&b""[..], b"\xff", b"{", b"not json", b"{\"type\":5}"] {
        claude.handle_line(line);
    }
    written(&mut claude);
    events(&mut claude);
}

#[test]
fn r52_a_long_line_is_used_without_its_details() {
    let (mut claude, _) = prompted();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let line = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Write\",\
         \"input\":{{\"d\":{deep},\"content\":\"{}\"}}}}]}}}}",
        "x".repeat(MAX_CONTENT)
    );
    claude.handle_line(line.as_bytes());
    let call = recorded(&mut claude).pop().unwrap();
    assert_eq!((&call["name"], &call["truncated"], &call["input"]), (&json!("Write"), &json!(true), &Value::Null));
    let content = json!([{"type": "tool_result", "tool_use_id": "t", "content": "y".repeat(MAX_CONTENT)}]);
    receive(&mut claude, json!({"type": "user", "message": {"content": content}}));
    let update = recorded(&mut claude).pop().unwrap();
    assert_eq!((&update["status"], &update["truncated"]), (&json!("completed"), &json!(true)));
    assert!(update.to_string().len() < 2 * MAX_DETAIL);
    // Of a list, the first entries.
    let blocks = vec![json!({"type": "text", "text": "z"}); 100_000];
    receive(&mut claude, json!({"type": "assistant", "message": {"id": "m", "content": blocks}}));
    assert_eq!(recorded(&mut claude).len(), 256);
}

#[test]
fn r52_what_the_adapter_remembers_is_bounded() {
    let (mut claude, _) = prompted();
    for n in 0..2000 {
        let started = json!({"type": "system", "subtype": "task_started", "task_id": format!("t{n}")});
        receive(&mut claude, started);
        claude.calls.add(&format!("c{n}"), true, None);
        let event = json!({"type": "content_block_delta", "index": n, "delta": {"text": "x"}});
        receive(&mut claude, json!({"type": "stream_event", "event": event}));
    }
    assert_eq!(claude.tasks.running().count(), 256);
    assert!(claude.calls.remove("c0").is_none() && claude.calls.remove("c1999").is_some());
    assert_eq!(recorded(&mut claude).len(), 256);
    for _ in 0..1000 {
        claude.set(&Settings { model: Some("opus".into()), ..Settings::default() });
    }
    assert_eq!(written(&mut claude).len(), 64);
}
