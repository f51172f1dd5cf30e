//! Long results of Claude Code's tools.

use super::*;
use crate::agent::output::MAX_OUTPUT;

fn receive_result(claude: &mut Claude, content: &Value, is_error: bool) {
    let block = json!({"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": is_error});
    // Claude Code sends it twice.
    let message = json!({"type": "user", "message": {"content": [block]}, "tool_use_result": {"stdout": content}});
    receive(claude, message);
}

/// The only event, and the text of its blob.
fn long_output(claude: &mut Claude) -> (Value, Option<String>) {
    let mut found = events(claude);
    assert_eq!(found.len(), 1);
    match found.pop() {
        Some(AdapterEvent::LongOutput { event, blob }) => (json!(event), Some(blob.text)),
        Some(AdapterEvent::Event(event)) => (json!(event), None),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_past_32_kib_has_a_blob() {
    let (mut claude, _) = prompted();
    for len in [MAX_OUTPUT, MAX_OUTPUT + 1] {
        let text = "\"\n".repeat(len)[..len].to_owned();
        for content in [json!(text), json!([{"type": "text", "text": text}])] {
            receive_result(&mut claude, &content, false);
            let (event, blob) = long_output(&mut claude);
            let is_long = len > MAX_OUTPUT;
            assert_eq!(blob, is_long.then(|| text.clone()));
            assert_eq!(event["truncated"] == true, is_long);
            assert_eq!(event["content"][0]["content"]["text"] == text, !is_long);
        }
    }
    let error = format!("<tool_use_error>{}</tool_use_error>", "x".repeat(MAX_OUTPUT + 1));
    receive_result(&mut claude, &json!(error), true);
    assert_eq!(long_output(&mut claude).1.unwrap(), "x".repeat(MAX_OUTPUT + 1));
}

#[test]
fn r52_several_mib_in_one_line_become_a_blob() {
    let (mut claude, _) = prompted();
    let text = "caf\u{e9} \u{1}\n".repeat((5 << 20) / 11);
    let image = json!({"type": "image", "source": {"data": "x".repeat(1000)}});
    let content = json!([{"type": "text", "text": text}, image, {"type": "text", "text": "end"}]);
    let block = json!({"type": "tool_result", "tool_use_id": "t", "content": content});
    let message = json!({"type": "user", "message": {"content": [block]}});
    assert!((5 << 20..crate::agent::MAX_LINE).contains(&message.to_string().len()));
    receive(&mut claude, message);
    let (event, blob) = long_output(&mut claude);
    assert_eq!(blob.unwrap(), format!("{text}\n[image]\nend"));
    assert_eq!((&event["status"], &event["truncated"]), (&json!("completed"), &json!(true)));
    assert!(event.to_string().len() < 6 * MAX_OUTPUT);
}

/// A message may have several results, and each has a blob of its own.
#[test]
fn each_result_of_a_message_has_its_own_blob() {
    let (mut claude, _) = prompted();
    let block = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": id.repeat(MAX_OUTPUT)});
    receive(&mut claude, json!({"type": "user", "message": {"content": [block("ab"), block("cd")]}}));
    let found = events(&mut claude);
    let blobs = found.iter().map(|news| match news {
        AdapterEvent::LongOutput { event: AgentEvent::ToolUpdate(call), blob } => (call.call.as_str(), &blob.text[..2]),
        other => panic!("{other:?}"),
    });
    assert_eq!(blobs.collect::<Vec<_>>(), [("ab", "ab"), ("cd", "cd")]);
}

/// The diff of a call says more than the words of its result.
#[test]
fn a_result_that_is_not_shown_has_no_blob() {
    let (mut claude, _) = prompted();
    let input = json!({"file_path": "/f", "content": "text"});
    let call = json!({"type": "tool_use", "id": "t", "name": "Write", "input": input});
    receive(&mut claude, json!({"type": "assistant", "message": {"id": "m", "content": [call]}}));
    events(&mut claude);
    receive_result(&mut claude, &json!("x".repeat(MAX_OUTPUT + 1)), false);
    let (event, blob) = long_output(&mut claude);
    assert_eq!((&event["content"], &event["truncated"], blob), (&Value::Null, &Value::Null, None));
}
