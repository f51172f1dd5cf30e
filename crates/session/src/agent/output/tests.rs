//! What is shown of an output, and what goes to its blob.

use super::*;
use crate::agent::details::MAX_DETAIL;

fn text(shown: &Shown) -> &str {
    shown.content["content"]["text"].as_str().unwrap()
}

fn block(text: &str) -> Value {
    item(text)
}

#[test]
fn long_output_keeps_its_beginning_and_its_end_and_its_blob_has_everything() {
    let mut output = Output::default();
    let mut all = String::new();
    for number in 0..20_000 {
        let line = format!("{number} \u{e9}\n");
        output.push(&line, MAX_BLOB);
        all.push_str(&line);
    }
    let streamed = output.show(true);
    let kept = text(&streamed);
    assert!(kept.starts_with("0 \u{e9}\n1 \u{e9}\n") && kept.ends_with("19999 \u{e9}\n"), "{kept}");
    let (head, rest) = kept.split_once("\n[").unwrap();
    let (number, tail) = rest.split_once(" bytes left out]\n").unwrap();
    assert!(all.starts_with(head) && all.ends_with(tail));
    assert_eq!(number.parse::<usize>().unwrap(), all.len() - head.len() - tail.len());
    let whole = shown(all.clone());
    assert_eq!(text(&whole), kept, "in one piece or in many");
    assert_eq!(streamed.blob, Some(BlobText { text: all, is_cut: false }));
    assert_eq!(whole.blob, streamed.blob);
    assert!(whole.was_cut && streamed.was_cut);
}

#[test]
fn output_of_32_kib_is_whole_and_one_byte_more_is_not() {
    for part in ["x", "\u{1}", "\"", "\u{e9}", "\u{1f600}", "a\u{1f600}", "a\u{0}\n"] {
        let mut longest = part.repeat(MAX_OUTPUT / part.len());
        longest.push_str(&"y".repeat(MAX_OUTPUT - longest.len()));
        let whole = shown(longest.clone());
        assert_eq!((text(&whole), whole.was_cut, &whole.blob), (longest.as_str(), false, &None), "{part:?}");
        let longer = format!("{longest}z");
        let cut = shown(longer.clone());
        assert!(cut.was_cut && text(&cut).ends_with('z') && text(&cut).len() <= MAX_OUTPUT + 40, "{part:?}");
        assert_eq!(cut.blob.unwrap().text, longer);
        let content = shown_content(json!([block(&longest)]));
        assert_eq!((content.content, content.was_cut), (json!([block(&longest)]), false), "{part:?}");
    }
    let mut output = Output::default();
    for part in ["one\n", "", "two\n"] {
        output.push(part, MAX_BLOB);
    }
    let whole = output.show(true);
    assert_eq!((text(&whole), whole.was_cut, &whole.blob), ("one\ntwo\n", false, &None));
}

#[test]
fn r52_output_of_any_kind_fits_and_is_shown_a_few_times() {
    for text in ["x", "\u{1}", "\"", "\u{1f600}", "a\u{0}\n"] {
        let cut = shown(text.repeat(200_000 / text.len()));
        // A control character takes six bytes as JSON.
        assert!(cut.was_cut && cut.content.to_string().len() < 6 * MAX_OUTPUT + 200, "{text:?}");
    }
    let mut output = Output::default();
    let due = (0..100_000).filter(|_| {
        output.push("a line of output\n", MAX_BLOB);
        output.take_due(false).is_some_and(|shown| {
            assert_eq!(shown.blob, None, "only the end has one");
            true
        })
    });
    assert!(due.count() < 20);
    assert!(output.take_due(true).is_some_and(|shown| shown.blob.unwrap().text.len() == 1_700_000));
    assert!(output.take_due(true).is_none());
    assert_eq!(output.whole.capacity(), 0, "its memory is freed");
    let mut kept = Output::default();
    kept.push(&"x".repeat(8 << 20), 0);
    assert!(kept.tail.capacity() <= MAX_OUTPUT && kept.whole.capacity() == 0);
}

/// The event that showed everything so far did not have the blob.
#[test]
fn the_end_has_the_blob_also_if_nothing_more_was_printed() {
    let mut output = Output::default();
    output.push(&"x".repeat(40_000), MAX_BLOB);
    assert!(output.take_due(false).is_some_and(|shown| shown.was_cut && shown.blob.is_none()));
    assert_eq!(output.take_due(true).unwrap().blob.unwrap().text.len(), 40_000);
    let mut short = Output::default();
    short.push("x", MAX_BLOB);
    assert!(short.take_due(false).is_some() && short.take_due(true).is_none());
    assert_eq!(short.whole.capacity(), 0, "its memory is freed");
}

/// One byte of the end may be free, because a character does not fit.
#[test]
fn the_end_has_no_bytes_from_before_a_long_piece() {
    let mut output = Output::default();
    let long = format!("{}x", "\u{e9}".repeat(10_000));
    for part in ["h".repeat(MAX_HEAD).as_str(), "abc", &long] {
        output.push(part, MAX_BLOB);
    }
    let kept = output.show(true);
    let (_, end) = text(&kept).split_once(" bytes left out]\n").unwrap();
    assert!(long.ends_with(end), "{end:.20}");
}

#[test]
fn r52_all_outputs_of_running_tools_together_are_bounded() {
    let mut outputs: Vec<Output> = Vec::new();
    for _ in 0..5 {
        let mut output = Output::default();
        for _ in 0..10 {
            let room = room(outputs.iter().chain([&output]));
            output.push(&"\u{e9}".repeat(300_001), room);
        }
        outputs.push(output);
    }
    let blobs: Vec<_> = outputs.iter_mut().map(|output| output.show(true).blob).collect();
    let lens: Vec<_> = blobs.iter().map(|blob| blob.as_ref().map(|blob| (blob.text.len(), blob.is_cut))).collect();
    let whole = 6_000_020;
    assert_eq!(lens, [Some((whole, false)), Some((whole, false)), Some((MAX_BLOB - 2 * whole, true)), None, None]);
}

#[test]
fn long_texts_of_a_list_become_one_and_the_rest_stays() {
    let (diff, long) = (json!({"type": "diff", "path": "/f", "oldText": "a", "newText": "b"}), "x".repeat(20_000));
    let list = json!([block(&long), diff, block("middle"), block(&long)]);
    let cut = shown_content(list);
    let all = format!("{long}\nmiddle\n{long}");
    assert_eq!(cut.content, json!([shown(all.clone()).content, diff]));
    assert_eq!((cut.was_cut, cut.blob.unwrap().text), (true, all));
    let noted = json!([{"type": "content", "content": {"type": "text", "text": "short", "annotations": {"a": 1}}}]);
    assert_eq!(shown_content(noted.clone()).content, noted);
}

#[test]
fn r52_hostile_content_is_bounded() {
    let huge = json!({"type": "diff", "newText": "x".repeat(MAX_DETAIL)});
    let cut = shown_content(json!([huge, block(&"y".repeat(MAX_OUTPUT + 1))]));
    assert_eq!((cut.content.as_array().unwrap().len(), cut.was_cut), (1, true), "the text stays");
    assert!(cut.blob.is_some());
    let cut = shown_content(json!([huge, block("short")]));
    assert!(cut.content[0]["type"] == "diff" && cut.content[1] == block("short") && cut.was_cut && cut.blob.is_none());
    let many = shown_content(Value::Array(vec![block("x"); 10_000]));
    let kept = many.content.as_array().unwrap();
    assert!(many.was_cut && kept.iter().all(|item| *item == block("x")), "whole blocks");
    let room = MAX_DETAIL - many.content.to_string().len();
    assert!(room < 3 * kept.len(), "{room} bytes of room for another of {}", kept.len());
    let nested = shown_content(json!({"a": 1, "list": [vec![1; 100_000], "x"], "z": 2})).content;
    assert_eq!((&nested["a"], nested["list"].as_array().unwrap().len(), nested.get("z")), (&json!(1), 1, None));
    assert!(nested.to_string().len() <= MAX_DETAIL);
    let noted = json!([{"type": "content", "content": {"type": "text", "text": "s", "_meta": "x".repeat(MAX_DETAIL)}}]);
    let noted = shown_content(noted);
    assert!(
        noted.was_cut && noted.content[0]["content"]["text"] == "s" && noted.content.to_string().len() <= MAX_DETAIL
    );
    for odd in [json!(null), json!("text"), json!({}), json!([]), json!([1, null, {"type": "content"}])] {
        assert_eq!(shown_content(odd.clone()).content, odd);
    }
    let odd = json!([{"type": "content", "content": "x"}, {"type": "content", "content": {"text": 7}}, "content"]);
    assert_eq!(shown_content(odd.clone()).content, odd);
}
