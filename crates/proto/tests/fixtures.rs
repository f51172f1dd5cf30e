//! Tests against the vectors in `fixtures/`, which the TypeScript client is tested against as well.
//!
//! `BOWLINE_BLESS=1` rewrites the transcripts with the current behaviour; review the difference before you commit it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

mod vectors;

use std::time::Duration;

use bowline_proto::backoff::Backoff;
use bowline_proto::board::BoardMessage;
use bowline_proto::close::{CloseClass, ConnectionEnd, PermanentFailure, classify};
use bowline_proto::frame::{Binary, Frame, FrameError, put_binary, put_text};
use bowline_proto::message::{ClientMessage, ServerMessage};
use bowline_proto::post::{ResponseClass, classify_response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vectors::{hex, load, unhex};

/// The bytes of a vector, concatenated from its fields.
fn fields(vector: &Value) -> Vec<u8> {
    let fields = vector["fields"].as_array().unwrap();
    assert!(fields.iter().all(|field| !field["is"].as_str().unwrap().is_empty()), "each field has a comment");
    fields.iter().flat_map(|field| unhex(&field["hex"])).collect()
}

#[test]
fn frames_match_their_vectors() {
    let file = load("frames/frames.json");
    for vector in file["frames"].as_array().unwrap() {
        let bytes = fields(vector);
        let (frame, used) = Frame::decode(&bytes).unwrap().unwrap();
        assert_eq!(used, bytes.len(), "{vector}");
        let mut encoded = Vec::new();
        let decoded = match frame {
            Frame::Text(text) => {
                put_text(&mut encoded, text);
                json!({"kind": "text", "text": text})
            }
            Frame::Binary(payload) => {
                put_binary(&mut encoded, &Binary::decode(payload).unwrap());
                json!({"kind": "binary", "hex": hex(payload)})
            }
        };
        assert_eq!(decoded, vector["decoded"]);
        assert_eq!(encoded, bytes, "{vector}");
    }
    for vector in file["incomplete"].as_array().unwrap() {
        assert_eq!(Frame::decode(&unhex(&vector["hex"])), Ok(None), "{vector}");
    }
    for vector in file["bad"].as_array().unwrap() {
        let error = match Frame::decode(&unhex(&vector["hex"])).unwrap_err() {
            FrameError::TooLong(_) => "too_long",
            FrameError::Kind(_) => "kind",
            FrameError::NotUtf8 => "not_utf8",
            FrameError::Binary => "binary",
        };
        assert_eq!(error, vector["error"], "{vector}");
    }
}

#[test]
fn payloads_match_their_vectors() {
    let file = load("frames/payloads.json");
    for vector in file["payloads"].as_array().unwrap() {
        let bytes = fields(vector);
        let payload = Binary::decode(&bytes).unwrap();
        let decoded = match payload {
            Binary::Output(at, bytes) => json!({"kind": "output", "offset": at.to_string(), "hex": hex(bytes)}),
            Binary::Input(at, bytes) => json!({"kind": "input", "offset": at.to_string(), "hex": hex(bytes)}),
            Binary::Snapshot(bytes) => json!({"kind": "snapshot", "hex": hex(bytes)}),
        };
        assert_eq!(decoded, vector["decoded"]);
        let mut encoded = Vec::new();
        payload.encode(&mut encoded);
        assert_eq!(encoded, bytes, "{vector}");
    }
    for vector in file["bad"].as_array().unwrap() {
        assert!(Binary::decode(&unhex(&vector["hex"])).is_err(), "{vector}");
    }
}

fn check_messages<T: Serialize + DeserializeOwned + PartialEq>(path: &str, unknown: &T) {
    let file = load(path);
    for vector in file["good"].as_array().unwrap() {
        let message: T = serde_json::from_str(&vector["json"].to_string()).expect("a good message");
        assert!(message != *unknown, "{vector}");
        let canonical = vector.get("canonical").unwrap_or(&vector["json"]);
        assert_eq!(serde_json::to_value(&message).unwrap(), *canonical);
    }
    for vector in file["unknown"].as_array().unwrap() {
        assert!(serde_json::from_str::<T>(&vector["json"].to_string()).unwrap() == *unknown, "{vector}");
    }
    for vector in file["bad"].as_array().unwrap() {
        assert!(serde_json::from_str::<T>(&vector["json"].to_string()).is_err(), "{vector}");
    }
}

#[test]
fn messages_match_their_vectors() {
    check_messages("messages/to_server.json", &ClientMessage::Unknown);
    check_messages("messages/to_client.json", &ServerMessage::Unknown);
    check_messages("messages/board.json", &BoardMessage::Unknown);
}

#[test]
fn r2_the_classifier_matches_its_vectors() {
    for case in load("policy/classifier.json")["cases"].as_array().unwrap() {
        let class = match classify(&vectors::closed(&case["closed"])) {
            CloseClass::Ended => json!({"class": "ended"}),
            CloseClass::NeedsLogin => json!({"class": "needs_login"}),
            CloseClass::Superseded => json!({"class": "superseded"}),
            CloseClass::FetchTicket => json!({"class": "fetch_ticket"}),
            CloseClass::Transient { not_before: None } => json!({"class": "transient"}),
            CloseClass::Transient { not_before: Some(at) } => json!({"class": "transient", "not_before": at.as_secs()}),
            CloseClass::Permanent(kind) => json!({"class": "permanent", "kind": vectors::permanent(kind)}),
        };
        let mut expected = case.as_object().unwrap().clone();
        expected.retain(|key, _| ["class", "kind", "not_before"].contains(&key.as_str()));
        assert_eq!(class, Value::Object(expected), "{case}");
    }
}

#[test]
fn every_documented_close_code_is_in_the_vectors() {
    let file = load("policy/classifier.json");
    let codes: Vec<_> = file["cases"].as_array().unwrap().iter().map(|case| &case["closed"]["code"]).collect();
    for code in [
        1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013, 4400, 4401, 4403, 4404, 4408, 4409,
        4410, 4425, 4426, 4429, 4502,
    ] {
        assert!(codes.iter().any(|other| **other == code), "{code}");
    }
    // Every possible code has a class.
    for code in 0..=u16::MAX {
        let class = classify(&ConnectionEnd::Code { code, reason: String::new(), done: false });
        let permanent = matches!(class, CloseClass::Permanent(_) | CloseClass::NeedsLogin | CloseClass::Superseded);
        let listed = matches!(code, 1002 | 1003 | 1007..=1009) || (4400..=4499).contains(&code);
        assert_eq!(permanent, listed && ![4408, 4425, 4429].contains(&code), "{code}");
        assert_eq!(class == CloseClass::Permanent(PermanentFailure::Gone), code == 4410);
    }
}

#[test]
fn backoff_matches_its_vectors() {
    let file = load("policy/backoff.json");
    for (name, preset) in [("native", Backoff::NATIVE), ("browser", Backoff::BROWSER)] {
        let expected = &file["presets"][name];
        assert_eq!(preset.base, Duration::from_millis(expected["base"].as_u64().unwrap()));
        assert_eq!(preset.cap, Duration::from_millis(expected["cap"].as_u64().unwrap()));
        assert_eq!(preset.tries.map(u64::from), expected["tries"].as_u64());
    }
    for case in file["cases"].as_array().unwrap() {
        let preset = if case["preset"] == "native" { Backoff::NATIVE } else { Backoff::BROWSER };
        let delay = preset.delay(case["n"].as_u64().unwrap() as u32, case["jitter"].as_f64().unwrap());
        assert_eq!(delay.map(|delay| (delay.as_secs_f64() * 1000.0).round() as u64), case["ms"].as_u64(), "{case}");
    }
}

#[test]
fn clients_match_their_transcripts() {
    vectors::transcripts("link/client.json", vectors::client::play);
}

#[test]
fn r3_r8_r13_r17_reconnectors_match_their_transcripts() {
    vectors::transcripts("link/reconnect.json", vectors::reconnect::play);
}

#[test]
fn r37_responses_to_commands_match_their_vectors() {
    for case in load("policy/responses.json")["cases"].as_array().unwrap() {
        let class = match classify_response("c1", &vectors::post::response(&case["response"])) {
            ResponseClass::Delivered(delivery) => json!({"class": "delivered", "delivery": delivery}),
            ResponseClass::NeedsLogin => json!({"class": "needs_login"}),
            ResponseClass::Retry { not_before, binding, message } => {
                let mut class = json!({"class": "retry", "message": message});
                if let Some(wait) = not_before {
                    class["not_before"] = wait.as_secs().into();
                }
                if binding {
                    class["binding"] = true.into();
                }
                class
            }
            ResponseClass::Failed(failure) => json!({"class": "failed", "failure": failure}),
        };
        let mut expected = case.as_object().unwrap().clone();
        expected.retain(|key, _| !["response", "why"].contains(&key.as_str()));
        assert_eq!(class, Value::Object(expected), "{case}");
    }
}

#[test]
fn r37_post_queues_match_their_transcripts() {
    for name in ["responses", "lanes", "waiting", "time", "storage", "limits"] {
        vectors::transcripts(&format!("post/{name}.json"), vectors::post::play);
    }
}

#[test]
fn r40_positions_match_their_transcripts() {
    vectors::transcripts("follow/position.json", vectors::position::play);
}
