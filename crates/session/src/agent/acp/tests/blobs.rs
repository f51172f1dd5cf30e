//! Long output of tools of ACP agents.

use super::*;
use crate::agent::output::MAX_OUTPUT;

/// The only event, and the text of its blob.
fn long_output(acp: &mut Acp) -> (Value, Option<String>) {
    let mut found = events(acp);
    assert_eq!(found.len(), 1);
    match found.pop() {
        Some(AdapterEvent::LongOutput { event, blob }) => (json!(event), Some(blob.text)),
        Some(AdapterEvent::Event(event)) => (json!(event), None),
        other => panic!("{other:?}"),
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn completed(content: &Value) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "content": content,
        "rawOutput": {"output": content}})
}

#[test]
fn output_past_32_kib_has_a_blob() {
    let mut acp = prompted();
    for len in [MAX_OUTPUT, MAX_OUTPUT + 1] {
        let text = format!("\u{e9}\n{}zz", "\t".repeat(len - 5));
        update(&mut acp, completed(&json!([text_block(&text)])));
        let (event, blob) = long_output(&mut acp);
        let is_long = len > MAX_OUTPUT;
        assert_eq!(blob, is_long.then(|| text.clone()));
        assert_eq!(event["truncated"] == true, is_long);
        let shown = event["content"][0]["content"]["text"].as_str().unwrap();
        assert_eq!(shown == text, !is_long);
        assert!(shown.starts_with("\u{e9}\n") && shown.ends_with("zz"));
    }
}

/// Such a line is too long to be parsed as any JSON.
#[test]
fn r52_several_mib_in_one_line_become_a_blob() {
    let mut acp = prompted();
    let text = "\u{1b}[1mline\u{1b}[0m \u{1f600}\n".repeat((2 << 20) / 20);
    let diff = json!({"type": "diff", "path": "/f", "newText": "x"});
    let meta = json!({"claudeCode": {"parentToolUseId": "parent"}});
    let mut message = completed(&json!([diff, text_block(&text)]));
    message["_meta"] = meta;
    assert!((5 << 20..crate::agent::MAX_LINE).contains(&message.to_string().len()));
    update(&mut acp, message);
    let (event, blob) = long_output(&mut acp);
    assert_eq!(
        (&event["call"], &event["status"], &event["truncated"]),
        (&json!("t"), &json!("completed"), &json!(true))
    );
    assert_eq!(event["parent"], "parent");
    assert_eq!(blob.unwrap(), format!("[diff]\n{text}"));
    assert!(event.to_string().len() < 6 * MAX_OUTPUT);
}

#[test]
fn r52_a_long_line_without_a_text_loses_its_details() {
    let mut acp = prompted();
    let huge = "x".repeat(MAX_CONTENT);
    for content in [json!(7), json!({"a": huge}), json!([7]), json!([{"type": "content", "content": 7}]), json!(null)] {
        let mut message = completed(&content);
        message["rawInput"] = json!(huge);
        update(&mut acp, message);
        let (event, blob) = long_output(&mut acp);
        assert_eq!((&event["content"], &event["truncated"], blob), (&Value::Null, &json!(true), None), "{content:.40}");
    }
}

#[test]
fn output_in_pieces_has_a_blob_at_its_end() {
    let mut acp = prompted_as("codex-acp");
    let mut all = String::new();
    let delta = |text: &str| json!({"terminal_output_delta": {"data": text}});
    for n in 0..10_000 {
        let line = format!("line {n}\n");
        update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": delta(&line)}));
        all.push_str(&line);
    }
    // One that is longer than any other message.
    let long = "y".repeat(1 << 20);
    update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": delta(&long)}));
    all.push_str(&long);
    assert!(events(&mut acp).iter().all(|news| matches!(news, AdapterEvent::Event(_))));
    let exit = json!({"terminal_exit": {"exit_code": 0}});
    update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": exit}));
    let (event, blob) = long_output(&mut acp);
    assert!(blob == Some(all) && event["truncated"] == true);
    update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}));
    let (event, blob) = long_output(&mut acp);
    assert_eq!((&event["content"], blob), (&Value::Null, None), "only once");
}

/// An agent may never report the end of a call whose run was aborted. Its output must not take the room of later calls.
#[test]
fn r52_the_end_of_a_run_shows_what_open_calls_printed_and_frees_it() {
    let mut acp = prompted_as("codex-acp");
    let long = "z".repeat(3 << 20);
    for (number, with_prompt) in [false, true, false, true, false, true].into_iter().enumerate() {
        let call = format!("t{number}");
        let meta = json!({"terminal_output_delta": {"data": long}});
        update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": meta}));
        events(&mut acp);
        if with_prompt {
            acp.prompt(RUN, &Prompt { text: "more".into(), attachments: vec![] }, &[]);
        } else {
            let id = acp.next_id - 1;
            receive(&mut acp, json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "cancelled"}}));
        }
        let blobs = events(&mut acp).into_iter().filter_map(|news| match news {
            AdapterEvent::LongOutput { event, blob } => {
                Some((json!(event)["call"].clone(), blob.text == long, blob.is_cut))
            }
            _ => None,
        });
        assert_eq!(blobs.collect::<Vec<_>>(), [(json!(call), true, false)]);
    }
}
