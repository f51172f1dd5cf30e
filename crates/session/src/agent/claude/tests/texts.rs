//! What becomes of texts, tools and usage.

use super::*;

#[test]
fn a_text_is_recorded_once() {
    let (mut claude, _) = prompted();
    let start = json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 5}}});
    receive(&mut claude, json!({"type": "stream_event", "event": start}));
    text(&mut claude, "one ");
    let whole = |id: &str, text: &str, parent: Value| {
        let message = json!({"id": id, "content": [{"type": "text", "text": text}]});
        json!({"type": "assistant", "message": message, "parent_tool_use_id": parent})
    };
    receive(&mut claude, whole("m1", "one two", Value::Null));
    receive(&mut claude, whole("m2", "synthetic", Value::Null));
    receive(&mut claude, whole("m1", "of a sub-agent", json!("toolu_1")));
    let texts: Vec<(Value, Value)> =
        recorded(&mut claude).into_iter().map(|event| (event["delta"].clone(), event["parent"].clone())).collect();
    let parts = [("one two", Value::Null), ("synthetic", Value::Null), ("of a sub-agent", json!("toolu_1"))];
    assert_eq!(texts, parts.map(|(text, parent)| (json!(text), parent)));
}

#[test]
fn a_text_is_neither_lost_nor_doubled_if_the_whole_one_differs() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["", "one two"], &["one two"]),
        (&["one"], &["one two"]),
        (&["something else"], &["one two", "something else"]),
        (&["something else", "one two, three"], &["one two", "something else", ", three"]),
        (&["one two", "one two"], &["one two", "one two"]),
        (&["one twö"], &["one two", "one twö"]),
    ];
    for (wholes, expected) in cases {
        let (mut claude, _) = prompted();
        receive(
            &mut claude,
            json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}}),
        );
        text(&mut claude, "one two");
        for whole in wholes {
            let message = json!({"id": "m", "content": [{"type": "text", "text": whole}]});
            receive(&mut claude, json!({"type": "assistant", "message": message}));
        }
        let texts: Vec<Value> = recorded(&mut claude).into_iter().map(|event| event["delta"].clone()).collect();
        assert_eq!(texts, expected, "{wholes:?}");
    }
}

#[test]
fn odd_counts_of_tokens_do_not_double_a_text() {
    let usages =
        [json!({"input_tokens": null, "output_tokens": "x"}), json!({"input_tokens": -1}), json!(null), json!([1])];
    for usage in usages {
        let (mut claude, _) = prompted();
        let start = json!({"type": "message_start", "message": {"id": "m1", "model": null, "usage": usage}});
        receive(&mut claude, json!({"type": "stream_event", "event": start}));
        text(&mut claude, "one");
        let message = json!({"id": "m1", "content": [{"type": "text", "text": "one"}]});
        receive(&mut claude, json!({"type": "assistant", "message": message}));
        let texts: Vec<Value> = recorded(&mut claude).into_iter().map(|event| event["delta"].clone()).collect();
        assert_eq!(texts, ["one"], "{usage}");
    }
}

#[test]
fn a_command_that_answers_only_in_its_result_is_shown() {
    let (mut claude, message) = prompted();
    receive(&mut claude, result(Some(&message), json!({"result": "Compacted"})));
    assert_eq!(recorded(&mut claude)[0]["delta"], "Compacted");
    let (mut claude, message) = prompted();
    text(&mut claude, "said");
    receive(&mut claude, result(Some(&message), json!({"result": "said"})));
    assert_eq!(recorded(&mut claude).len(), 1);
}

#[test]
fn usage_is_that_of_the_turn() {
    let (mut claude, message) = prompted();
    receive(&mut claude, result(Some(&message), json!({"total_cost_usd": 0.5, "usage": {"input_tokens": 7}})));
    let usage = recorded(&mut claude).pop().unwrap();
    assert_eq!((&usage["cost"], &usage["tokens"]["input"]), (&json!(0.5), &json!(7)));
    let message = prompt(&mut claude, OWN);
    receive(&mut claude, result(Some(&message), json!({"total_cost_usd": 0.75, "usage": {"input_tokens": 2}})));
    assert_eq!(recorded(&mut claude).pop().unwrap()["cost"], 0.25);
    assert_eq!(usage["run"], "r3");
    // What another turn used is not of the run that waits behind it.
    let message = prompt(&mut claude, OWN);
    receive(&mut claude, result(None, json!({"total_cost_usd": 0.8, "usage": {"input_tokens": 2}})));
    let usage = recorded(&mut claude).into_iter().find(|event| event["type"] == "usage").unwrap();
    assert_eq!(usage["run"], Value::Null);
    receive(&mut claude, result(Some(&message), json!({"total_cost_usd": 0.9, "usage": {"input_tokens": 2}})));
    assert_eq!(recorded(&mut claude).pop().unwrap()["run"], "r9", "also if the agent did not say when it began");
    // A resumed conversation has a total that others spent.
    let message = prompt(&mut claude, OWN);
    let since = json!({"m": {"costUSD": 0.1, "inputTokens": 3}, "n": {"inputTokens": 4}});
    let more = json!({"total_cost_usd": 9.0, "model_usage_since_last_result": since});
    receive(&mut claude, result(Some(&message), more));
    let usage = recorded(&mut claude).pop().unwrap();
    assert_eq!((&usage["cost"], &usage["tokens"]["input"]), (&json!(0.1), &json!(7)));
}

#[test]
fn a_todo_list_is_what_succeeded_calls_made_of_it() {
    let (mut claude, _) = prompted();
    let mut call = |id: &str, name: &str, input: Value, result: Value, is_error: bool| {
        let content = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
        receive(&mut claude, json!({"type": "assistant", "message": {"id": "m", "content": content}}));
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": "ok", "is_error": is_error}]);
        receive(&mut claude, json!({"type": "user", "message": {"content": content}, "tool_use_result": result}));
        recorded(&mut claude).into_iter().rfind(|event| event["type"] == "plan").map(|event| event["entries"].clone())
    };
    let todos = json!({"todos": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "odd"}]});
    assert_eq!(call("1", "TodoWrite", todos.clone(), json!("Error"), true), None);
    let entry = |content: &str, status: &str| json!({"content": content, "status": status});
    let entries = json!([entry("a", "in_progress"), entry("b", "pending")]);
    assert_eq!(call("2", "TodoWrite", todos, json!({}), false), Some(entries));
    let many: Vec<Value> = (0..500).map(|n| json!({"content": "\"".repeat(n), "status": "pending"})).collect();
    let entries = call("3", "TodoWrite", json!({"todos": many}), json!({}), false).unwrap();
    assert!(entries.to_string().len() <= MAX_DETAIL, "{}", entries.to_string().len());
    call("4", "TodoWrite", json!({"todos": []}), json!({}), false);
    call("5", "TaskCreate", json!({"subject": "x"}), json!({"task": {"id": "7"}}), false);
    let entries = call("6", "TaskUpdate", json!({"taskId": "7", "status": "in_progress"}), json!({}), false);
    assert_eq!(entries, Some(json!([entry("x", "in_progress")])));
    let entries = call("7", "TaskUpdate", json!({"taskId": "7", "status": "deleted"}), json!({}), false);
    assert_eq!(entries, Some(json!([])));
}
