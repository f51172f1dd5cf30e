//! Loads the vectors in `fixtures/`, and plays transcripts: the steps applied to a state machine, and what it does
//! then.

pub(crate) mod client;
pub(crate) mod position;
pub(crate) mod post;
pub(crate) mod reconnect;

use std::fs;
use std::time::Duration;

use bowline_proto::close::{ConnectionEnd, PermanentFailure};
use serde_json::Value;

fn path(name: &str) -> String {
    format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn load(name: &str) -> Value {
    let text = fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

pub(crate) fn ms(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().unwrap())
}

pub(crate) fn closed(value: &Value) -> ConnectionEnd {
    let retry_after = value["retry_after"].as_u64().map(Duration::from_secs);
    let number = |key: &str| value[key].as_u64().map(|n| n as u16);
    match (number("code"), number("status")) {
        (Some(code), _) => {
            let reason = value["reason"].as_str().unwrap_or_default().to_owned();
            ConnectionEnd::Code { code, reason, done: value["done"].as_bool().unwrap_or_default() }
        }
        (_, Some(status)) => {
            ConnectionEnd::Refused { status, from_gateway: value["bowline_code"].as_bool().unwrap(), retry_after }
        }
        _ => ConnectionEnd::Failed,
    }
}

pub(crate) fn permanent(kind: PermanentFailure) -> &'static str {
    match kind {
        PermanentFailure::Protocol => "protocol",
        PermanentFailure::NotAllowed => "not_allowed",
        PermanentFailure::Unknown => "unknown",
        PermanentFailure::Gone => "gone",
        PermanentFailure::Version => "version",
        PermanentFailure::Other => "other",
    }
}

/// Plays each transcript of a file. `play` gets its configuration and steps, and returns the result of each step.
#[allow(clippy::disallowed_methods, reason = "the developer decides whether to rewrite the transcripts")]
pub(crate) fn transcripts(name: &str, play: impl Fn(&Value, &[Value]) -> Vec<Value>) {
    let mut file = load(name);
    let bless = std::env::var_os("BOWLINE_BLESS").is_some();
    for transcript in file["transcripts"].as_array_mut().unwrap() {
        let name = transcript["name"].to_string();
        let played = play(&transcript["config"], transcript["steps"].as_array().unwrap());
        for (i, (step, then)) in transcript["steps"].as_array_mut().unwrap().iter_mut().zip(played).enumerate() {
            if bless {
                step["then"] = then;
            } else {
                let expected = serde_json::to_string_pretty(&step["then"]).unwrap();
                let then = serde_json::to_string_pretty(&then).unwrap();
                assert_eq!(then, expected, "{name}, step {i}: {}", step["do"]);
            }
        }
    }
    if bless {
        fs::write(path(name), serde_json::to_string_pretty(&file).unwrap() + "\n").unwrap();
    }
}
