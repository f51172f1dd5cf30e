//! Long output of Codex's tools.

use super::*;
use crate::agent::output::MAX_OUTPUT;

/// The only event, and the text of its blob.
fn long_output(codex: &mut Codex) -> (Value, Option<String>) {
    let mut found = news(codex);
    assert_eq!(found.len(), 1);
    match found.pop() {
        Some(AdapterEvent::LongOutput { event, blob }) => (json!(event), Some(blob.text)),
        Some(AdapterEvent::Event(event)) => (json!(event), None),
        other => panic!("{other:?}"),
    }
}

fn command(output: &str) -> Value {
    json!({"type": "commandExecution", "id": "c", "command": "x", "aggregatedOutput": output, "exitCode": 3,
        "status": "failed"})
}

#[test]
fn output_of_a_command_past_32_kib_has_a_blob() {
    let mut codex = prompted();
    for len in [MAX_OUTPUT, MAX_OUTPUT + 1, 5 << 20] {
        let text = "a\n".repeat(len)[..len].to_owned();
        item(&mut codex, "item/completed", command(&text));
        let (event, blob) = long_output(&mut codex);
        let is_long = len > MAX_OUTPUT;
        assert!(blob == is_long.then(|| text.clone()), "{len}");
        assert_eq!(event["truncated"] == true, is_long);
        assert_eq!(event["content"][0]["content"]["text"] == text, !is_long);
        assert_eq!(event["content"][1]["content"]["text"], "exit code 3");
    }
}

#[test]
fn what_a_tool_of_mcp_returns_past_32_kib_has_a_blob() {
    let mut codex = prompted();
    for len in [MAX_OUTPUT, MAX_OUTPUT + 1, 5 << 20] {
        let text = "a\n".repeat(len)[..len].to_owned();
        let call = json!({"type": "mcpToolCall", "id": "m", "server": "files", "tool": "read", "status": "completed"});
        let blocks = json!([{"type": "text", "text": text}]);
        let ends =
            [("result", json!({"content": blocks})), ("error", json!({"message": text})), ("error", json!(text))];
        for (key, value) in ends {
            let mut call = call.clone();
            call[key] = value;
            item(&mut codex, "item/completed", call);
            let (event, blob) = long_output(&mut codex);
            let is_long = len > MAX_OUTPUT;
            assert!(blob == is_long.then(|| text.clone()), "{key} {len}");
            assert_eq!(event["truncated"] == true, is_long, "{key} {len}");
            assert_eq!(event["name"], "files.read");
            assert_eq!(event["content"][0]["content"]["text"] == text, !is_long);
        }
        let dynamic = json!({"type": "dynamicToolCall", "id": "d", "tool": "t", "contentItems":
            [{"type": "inputText", "text": text}], "arguments": {}});
        item(&mut codex, "item/completed", dynamic);
        assert!(long_output(&mut codex).1 == Some(text).filter(|_| len > MAX_OUTPUT), "{len}");
    }
}

#[test]
fn r52_a_long_item_without_a_text_loses_its_details() {
    let mut codex = prompted();
    let huge = "x".repeat(MAX_CONTENT);
    for (key, value) in
        [("result", json!(7)), ("result", json!({"content": 7})), ("error", json!([7])), ("server", json!({}))]
    {
        let mut call = json!({"type": "mcpToolCall", "id": "m", "arguments": huge});
        call[key] = value;
        item(&mut codex, "item/completed", call);
        let (event, blob) = long_output(&mut codex);
        assert_eq!((&event["content"], &event["truncated"], blob), (&Value::Null, &json!(true), None), "{key}");
    }
}

/// Codex does not complete the commands of a turn that was interrupted.
#[test]
fn output_that_was_only_streamed_has_a_blob_at_its_end() {
    for is_completed in [true, false] {
        let mut codex = prompted();
        item(&mut codex, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x"}));
        news(&mut codex);
        let line = "a line of output\n";
        for _ in 0..10_000 {
            notify(&mut codex, "item/commandExecution/outputDelta", json!({"itemId": "c", "delta": line}));
        }
        assert!(news(&mut codex).iter().all(|news| matches!(news, AdapterEvent::Event(_))));
        if is_completed {
            let end = json!({"type": "commandExecution", "id": "c", "command": "x", "aggregatedOutput": null});
            item(&mut codex, "item/completed", end);
        } else {
            notify(&mut codex, "turn/completed", json!({"turn": {"id": "u", "status": "interrupted"}}));
        }
        let blobs = news(&mut codex).into_iter().filter_map(|news| match news {
            AdapterEvent::LongOutput { blob, .. } => Some((blob.text == line.repeat(10_000), blob.is_cut)),
            _ => None,
        });
        assert_eq!(blobs.collect::<Vec<_>>(), [(true, false)]);
    }
}

/// Codex keeps 1 MiB of a command's output and drops the middle, but it streams everything.
#[test]
fn output_of_which_codex_drops_the_middle_is_what_was_streamed() {
    let mut codex = prompted();
    item(&mut codex, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x"}));
    let all: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    for part in all.as_bytes().chunks(8192) {
        let delta = str::from_utf8(part).unwrap();
        notify(&mut codex, "item/commandExecution/outputDelta", json!({"itemId": "c", "delta": delta}));
    }
    news(&mut codex);
    let kept = format!("{}{}", &all[..512 << 10], &all[all.len() - (512 << 10)..]);
    item(&mut codex, "item/completed", command(&kept));
    let (event, blob) = long_output(&mut codex);
    assert!(blob == Some(all) && event["truncated"] == true);
    let shown = event["content"][0]["content"]["text"].as_str().unwrap();
    assert!(shown.starts_with("line 0\n") && shown.ends_with("line 199999\n"));
}

/// Half of a character becomes a replacement character, which is longer.
#[test]
fn characters_that_were_streamed_in_halves_are_whole_at_the_end() {
    let mut codex = prompted();
    item(&mut codex, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x"}));
    for _ in 0..2 {
        notify(&mut codex, "item/commandExecution/outputDelta", json!({"itemId": "c", "delta": "\u{fffd}"}));
    }
    news(&mut codex);
    item(&mut codex, "item/completed", command("\u{e9}"));
    assert_eq!(long_output(&mut codex).0["content"][0]["content"]["text"], "\u{e9}");
}
