//! Reads the numbers of a session's `event` message, and adds the session's id to it without parsing the event.

use bowline_proto::ids::{Epoch, SessionId};
use bowline_proto::journal::Record;
use serde::Deserialize;
use serde_json::Value;

use crate::board::EncodedMessage;

/// How every `event` message of a session begins.
const TYPE: &str = r#"{"type":"event","#;
/// How the events begin that start an epoch.
const EPOCH_EVENTS: [&str; 2] = [r#"{"type":"started","#, r#"{"type":"repaired","#];

/// An `event` message of a session.
#[derive(Debug, PartialEq)]
pub(super) struct EventText<'a> {
    /// The first number that it stands for, and the last.
    pub(super) first: u64,
    pub(super) seq: u64,
    /// The epoch that begins with it.
    pub(super) epoch: Option<Epoch>,
    /// Everything after the type.
    fields: &'a str,
}

impl<'a> EventText<'a> {
    pub(super) fn is_event(text: &str) -> bool {
        text.starts_with(TYPE)
    }

    /// `None` if it is malformed.
    pub(super) fn parse(text: &'a str) -> Option<EventText<'a>> {
        let fields = text.strip_prefix(TYPE).filter(|fields| fields.ends_with('}'))?;
        EventText::scan(fields).or_else(|| EventText::read(text, fields))
    }

    /// `None` if the fields are not exactly those that this version writes, in its order.
    fn scan(fields: &'a str) -> Option<EventText<'a>> {
        let (seq, rest) = number(fields.strip_prefix(r#""seq":"#)?)?;
        let (first, rest) = match rest.strip_prefix(r#","from":"#) {
            Some(rest) => number(rest)?,
            None => (seq, rest),
        };
        let (_, rest) = rest.strip_prefix(r#","at":""#)?.split_once('"')?;
        let event = rest.strip_prefix(r#","event":"#)?;
        let epoch = match EPOCH_EVENTS.iter().any(|start| event.starts_with(start)) {
            true => Some(epoch_begun(event)?),
            false => None,
        };
        Some(EventText { first, seq, epoch, fields })
    }

    /// Parses all of it: a newer session process may write more fields.
    fn read(text: &str, fields: &'a str) -> Option<EventText<'a>> {
        let Record { seq, from, at: _, event } = serde_json::from_str::<Record<Value>>(text).ok()?;
        let begins = matches!(event.get("type").and_then(Value::as_str), Some("started" | "repaired"));
        let epoch = event.get("epoch").and_then(Value::as_str).filter(|_| begins).and_then(|epoch| epoch.parse().ok());
        Some(EventText { first: from.unwrap_or(seq), seq, epoch, fields })
    }

    /// The message for clients that watch the session.
    pub(super) fn encode(&self, session: &SessionId) -> EncodedMessage {
        EncodedMessage::from_parts(&[TYPE, r#""session":""#, session.as_str(), r#"","#, self.fields])
    }
}

fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

/// The epoch that begins with this event, which the end of its message follows. Such events are short and rare.
fn epoch_begun(event: &str) -> Option<Epoch> {
    #[derive(Deserialize)]
    struct Begun {
        epoch: Epoch,
    }
    serde_json::from_str::<Begun>(event.strip_suffix('}')?).ok().map(|begun| begun.epoch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_session_is_added_and_the_event_is_not_changed() {
        let session = SessionId::from_random([0; 12]);
        // The numbers and escapes of the event are not those that a parser would write.
        let event = r#"{"type":"text","delta":"\u0041 \"from\":9,\"event\":","n":1.0e2}"#;
        for (numbers, first, seq) in [(r#""seq":7"#, 7, 7), (r#""seq":9,"from":4"#, 4, 9)] {
            let text = format!(r#"{{"type":"event",{numbers},"at":"2026-01-01T00:00:00Z","event":{event}}}"#);
            let parsed = EventText::parse(&text).unwrap();
            assert_eq!((parsed.first, parsed.seq, &parsed.epoch), (first, seq, &None));
            let expected = format!(
                r#"{{"type":"event","session":"{session}",{numbers},"at":"2026-01-01T00:00:00Z","event":{event}}}"#
            );
            assert_eq!(parsed.encode(&session).json(), expected);
        }
    }

    #[test]
    fn an_epoch_begins_with_started_and_repaired_only() {
        let epoch: Option<Epoch> = "9f3c61d2".parse().ok();
        for (event, expected) in [
            (json!({"type": "started", "epoch": "9f3c61d2", "pid": 1}), &epoch),
            (json!({"type": "repaired", "epoch": "9f3c61d2"}), &epoch),
            (json!({"type": "text", "epoch": "9f3c61d2"}), &None),
            (json!({"type": "started_late", "epoch": "9f3c61d2"}), &None),
            (json!({"type": "started", "epoch": 7}), &None),
        ] {
            let kind = event["type"].as_str().unwrap();
            let mut text = format!(r#"{{"type":"event","seq":0,"at":"","event":{{"type":"{kind}""#);
            for (key, value) in event.as_object().unwrap().iter().filter(|(key, _)| *key != "type") {
                text += &format!(",{}:{value}", json!(key));
            }
            text += "}}";
            assert!(serde_json::from_str::<Value>(&text).is_ok());
            assert_eq!(EventText::parse(&text).unwrap().epoch, *expected, "{text}");
        }
    }

    /// A field beside those that this version knows costs neither the event nor the epoch that begins with it.
    #[test]
    fn r20_fields_of_a_newer_session_process_are_passed_on() {
        let session = SessionId::from_random([0; 12]);
        let event = r#"{"type":"started","epoch":"9f3c61d2","event":{"x":"\",\"event\":"}}"#;
        for fields in [
            format!(r#""seq":9,"from":4,"at":"t","event":{event},"lane":2"#),
            format!(r#""seq":9,"from":4,"at":"t","lane":2,"event":{event}"#),
            format!(r#""seq":9,"from":4,"at":"t","lane":{{"event":"x"}},"event":{event}"#),
            format!(r#""seq":9,"lane":"l","from":4,"at":"t","event":{event}"#),
            format!(r#""lane":[],"seq":9,"from":4,"at":"\u0074","event":{event}"#),
            format!(r#""at":"t","seq":9,"event":{event},"from":4"#),
        ] {
            let text = format!(r#"{{"type":"event",{fields}}}"#);
            let parsed = EventText::parse(&text).unwrap_or_else(|| panic!("refused: {text}"));
            assert_eq!((parsed.first, parsed.seq, parsed.epoch.as_ref().map(Epoch::as_str)), (4, 9, Some("9f3c61d2")));
            assert_eq!(parsed.encode(&session).json(), format!(r#"{{"type":"event","session":"{session}",{fields}}}"#));
        }
    }

    #[test]
    fn a_message_in_another_form_is_refused() {
        for bad in [
            "",
            r#"{"type":"exit"}"#,
            r#"{"type":"event","at":"","event":{}}"#,
            r#"{"type":"event","seq":,"at":"","event":{}}"#,
            r#"{"type":"event","seq":-1,"at":"","event":{}}"#,
            r#"{"type":"event","seq":99999999999999999999,"at":"","event":{}}"#,
            r#"{"type":"event","seq":1,"from":"0","at":"","event":{}}"#,
            r#"{"type":"event","seq":1,"event":{}}"#,
            r#"{"type":"event","seq":1,"at":"","event":{}"#.strip_suffix('}').unwrap(),
        ] {
            assert_eq!(EventText::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_line_break_between_tokens_does_not_end_an_sse_event() {
        let text = "{\"type\":\"event\",\"seq\":1,\"at\":\"\",\"event\":{\r\n}}";
        let event = EventText::parse(text).unwrap().encode(&SessionId::from_random([0; 12])).sse_event();
        assert!(event.ends_with(b"{  }}\n\n") && !event[..event.len() - 2].contains(&b'\n'));
    }
}
