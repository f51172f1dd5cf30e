//! Changes messages: their values, their shape and their bytes.

use serde_json::{Map, Value, json};

use super::Source;

/// Changes one value somewhere in the message.
pub(super) fn mutate(message: &mut Value, source: &mut Source<'_>, others: &[Value]) {
    let at = source.below(count(message));
    let Some(place) = nth(message, &mut { at }) else { return };
    match source.byte() % 16 {
        0 => *place = Value::Null,
        1 => *place = json!([]),
        2 => *place = json!({}),
        3 => *place = json!(-1),
        4 => *place = json!(u64::MAX),
        5 => *place = json!(1e300),
        6 => *place = json!(source.text()),
        // Lengths around the bounds.
        7 => {
            let len = [1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 512 << 10][source.below(6)];
            let unit = ["x", "\u{e9}", "\u{1b}", "\"", "\n", "\u{1f600}"][source.below(6)];
            *place = json!(unit.repeat(len / unit.len() + source.below(3)));
        }
        8 => {
            let depth = source.below(110);
            *place = (0..depth).fold(json!(0), |inner, _| json!([inner]));
        }
        9 => remove_one(place, source),
        10 => repeat(place, source),
        11 => *place = json!(source.byte() < 128),
        // A part of another message.
        12 | 13 => {
            let mut other = others[source.below(others.len())].clone();
            let at = source.below(count(&other));
            if let Some(part) = nth(&mut other, &mut { at }) {
                *place = part.take();
            }
        }
        14 => {
            if let Value::Object(fields) = place {
                fields.insert(source.text(), json!({"a": [1, null]}));
            }
        }
        _ => {
            let known = ["completed", "failed", "cancelled", "in_progress", "success", "error", "allow_always"];
            *place = json!(known[source.below(known.len())]);
        }
    }
}

/// Changes the text of a message, so that it may not be JSON any more.
pub(super) fn mutate_bytes(line: &mut Vec<u8>, source: &mut Source<'_>) {
    let at = source.below(line.len());
    match source.byte() % 5 {
        0 => line.truncate(at),
        1 => line[at] ^= 1 << (source.byte() % 8),
        2 => line.splice(at..at, source.bytes().iter().copied()).for_each(drop),
        // Half of a character that JSON writes in two parts.
        3 => line.splice(at..at, *b"\\ud800").for_each(drop),
        // A key that is there twice.
        _ => line.splice(0..1, *br#"{"id":1,"type":"user","#).for_each(drop),
    }
}

/// Gives this copy of a message other ids than the others have.
pub(super) fn rename_ids(message: &mut Value, n: usize) {
    match message {
        Value::Object(fields) => {
            for (key, value) in fields {
                let lower = key.to_ascii_lowercase();
                let is_id = lower.ends_with("id") && !["sessionid", "threadid", "session_id"].contains(&lower.as_str());
                match value {
                    Value::String(text) if is_id => text.push_str(&format!("-{n}")),
                    Value::Number(number) if is_id => *value = json!(number.as_u64().unwrap_or_default() + n as u64),
                    value => rename_ids(value, n),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_ids(item, n)),
        _ => {}
    }
}

fn remove_one(place: &mut Value, source: &mut Source<'_>) {
    match place {
        Value::Object(fields) => {
            let key = fields.keys().nth(source.below(fields.len())).cloned();
            key.and_then(|key| fields.remove(&key));
        }
        Value::Array(items) if !items.is_empty() => _ = items.remove(source.below(items.len())),
        _ => {}
    }
}

/// Many entries in place of one.
fn repeat(place: &mut Value, source: &mut Source<'_>) {
    let times = 1 << source.below(12);
    match place {
        Value::Array(items) => {
            let first = items.first().cloned().unwrap_or_default();
            items.extend(std::iter::repeat_n(first, times));
        }
        Value::Object(fields) => {
            let value = fields.values().next().cloned().unwrap_or_default();
            fields.extend((0..times).map(|n| (format!("k{n}"), value.clone())).collect::<Map<_, _>>());
        }
        _ => {}
    }
}

/// The number of values in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// The value with this number, counted from the outside in.
fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, left)),
        _ => None,
    }
}
