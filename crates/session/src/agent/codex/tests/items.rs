//! Texts, tools and usage.

use super::*;

#[test]
fn text_is_recorded_once_whether_it_was_streamed_or_not() {
    let mut codex = prompted();
    let delta = |codex: &mut Codex, id: &str, delta: &str| {
        notify(codex, "item/agentMessage/delta", json!({"itemId": id, "delta": delta}));
    };
    delta(&mut codex, "a", "stream");
    item(&mut codex, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "streamed"}));
    item(&mut codex, "item/completed", json!({"type": "agentMessage", "id": "a", "text": "streamed"}));
    item(&mut codex, "item/completed", json!({"type": "agentMessage", "id": "b", "text": "whole"}));
    item(&mut codex, "item/completed", json!({"type": "plan", "id": "p", "text": "# Plan"}));
    item(&mut codex, "item/completed", json!({"type": "reasoning", "id": "r", "summary": ["x", "y"], "content": []}));
    notify(&mut codex, "item/reasoning/textDelta", json!({"itemId": "s", "delta": "deep"}));
    item(&mut codex, "item/completed", json!({"type": "reasoning", "id": "s", "summary": [], "content": ["deep"]}));
    let texts: Vec<Value> =
        recorded(&mut codex).iter().map(|event| json!([event["type"], event["block"], event["delta"]])).collect();
    let expected = json!([
        ["text", "a", "streamed"],
        ["text", "b", "whole"],
        ["text", "p", "# Plan"],
        ["thinking", "r", "x\n\ny"],
        ["thinking", "s.text", "deep"]
    ]);
    assert_eq!(json!(texts), expected);
}

#[test]
fn the_parts_of_a_summary_are_paragraphs() {
    let mut codex = prompted();
    for (index, text) in [(0, "one"), (1, "two")] {
        notify(&mut codex, "item/reasoning/summaryPartAdded", json!({"itemId": "r", "summaryIndex": index}));
        notify(
            &mut codex,
            "item/reasoning/summaryTextDelta",
            json!({"itemId": "r", "delta": text, "summaryIndex": index}),
        );
    }
    item(&mut codex, "item/completed", json!({"type": "reasoning", "id": "r", "summary": ["one", "two"]}));
    assert_eq!(recorded(&mut codex)[0]["delta"], "one\n\ntwo");
}

#[test]
fn a_sub_agents_events_have_its_tool_call_as_parent() {
    let mut codex = prompted();
    let call = json!({"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "receiverThreadIds": ["s"], "status": "inProgress"});
    item(&mut codex, "item/started", call);
    notify(&mut codex, "item/agentMessage/delta", json!({"threadId": "s", "itemId": "i", "delta": "x"}));
    notify(&mut codex, "item/agentMessage/delta", json!({"threadId": "unknown", "itemId": "j", "delta": "x"}));
    let parents: Vec<Value> = recorded(&mut codex).iter().map(|event| event["parent"].clone()).collect();
    assert_eq!(parents, [json!(null), json!("c"), json!("unknown")]);
}

#[test]
fn a_plan_is_a_list_of_steps() {
    let mut codex = prompted();
    let plan = json!([{"step": "one", "status": "inProgress"}, {"step": "two", "status": "pending"}]);
    notify(&mut codex, "turn/plan/updated", json!({"turnId": "u", "plan": plan}));
    let entries = json!([{"content": "one", "status": "in_progress"}, {"content": "two", "status": "pending"}]);
    assert_eq!(recorded(&mut codex), [json!({"type": "plan", "run": "r3", "entries": entries})]);
}

#[test]
fn usage_is_a_difference_without_the_cache() {
    let mut codex = prompted();
    let usage = |codex: &mut Codex, input: u64| {
        let counts =
            json!({"totalTokens": input + 5, "inputTokens": input, "cachedInputTokens": input / 2, "outputTokens": 5});
        let usage = json!({"total": counts, "last": counts, "modelContextWindow": 1000});
        notify(codex, "thread/tokenUsage/updated", json!({"turnId": "u", "tokenUsage": usage}));
    };
    usage(&mut codex, 10);
    usage(&mut codex, 10);
    usage(&mut codex, 30);
    let found = recorded(&mut codex);
    assert_eq!(found.len(), 2, "nothing was used in between");
    assert_eq!(found[0]["tokens"], json!({"input": 5, "output": 5, "cache_read": 5, "cache_write": 0}));
    assert_eq!(found[1]["tokens"], json!({"input": 10, "output": 0, "cache_read": 10, "cache_write": 0}));
    assert_eq!(found[1]["context"], json!({"used": 35, "size": 1000}));
}
