//! Plays the transcript of a [`Client`].

use std::time::Duration;

use bowline_proto::frame::Frame;
use bowline_proto::link::{Client, ClientConfig, ClientEvent, ClientTransmit};
use serde_json::{Value, json};

use super::{hex, ms, unhex};

pub(crate) fn play(config: &Value, steps: &[Value]) -> Vec<Value> {
    let mut settings = ClientConfig::new(config["client"].as_str().unwrap().parse().unwrap());
    settings.observe = config["observe"].as_bool().unwrap_or_default();
    settings.size = config.get("size").map(|size| serde_json::from_value(size.clone()).unwrap());
    if let Some(lag) = config.get("lag") {
        settings.lag = serde_json::from_value(lag.clone()).unwrap();
    }
    if let Some(outbox) = config["outbox"].as_u64() {
        settings.outbox = outbox as usize;
    }
    if let Some(every) = config["rendered_every"].as_u64() {
        settings.rendered_every = every;
    }
    let mut client = Client::new(settings);
    steps.iter().map(|step| apply(&mut client, &step["do"], ms(&step["at"]))).collect()
}

/// Applies one step, then polls until nothing is left.
fn apply(client: &mut Client, action: &Value, now: Duration) -> Value {
    let (verb, argument) = action.as_object().unwrap().iter().next().unwrap();
    let mut then = json!({});
    match verb.as_str() {
        "connected" => client.handle_connected(now),
        "disconnected" => client.handle_disconnected(now),
        "text" => client.handle_frame(Frame::Text(&argument.to_string()), now),
        "binary" => client.handle_frame(Frame::Binary(&unhex(argument)), now),
        "rendered" => client.handle_rendered(argument.as_u64().unwrap()),
        "input" => {
            let bytes = unhex(argument);
            let result = client.handle_input(&bytes, now);
            then["taken"] = result.map_or_else(|error| json!(format!("{error:?}")), |()| json!(bytes.len()));
        }
        "resize" => client.handle_resize(serde_json::from_value(argument.clone()).unwrap()),
        "claim_size" => client.claim_size(serde_json::from_value(argument.clone()).unwrap()),
        "repaint" => client.repaint(),
        "command" => {
            let id = argument["id"].as_str().unwrap().to_owned();
            client.command(id, argument["command"].clone(), now).unwrap();
        }
        "wake" => client.handle_wake(now),
        "timeout" => client.handle_timeout(now),
        "send_unsent" => client.send_unsent(now),
        "discard_unsent" => client.discard_unsent(),
        "ended" => client.handle_ended(now),
        other => panic!("no such step: {other}"),
    }
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).map(|event| event_json(&event)).collect();
    let transmits: Vec<_> = std::iter::from_fn(|| client.poll_transmit(now)).map(transmit_json).collect();
    for (key, list) in [("events", events), ("transmits", transmits)] {
        if !list.is_empty() {
            then[key] = list.into();
        }
    }
    if let Some(at) = client.poll_timeout() {
        then["timeout"] = json!(at.as_millis() as u64);
    }
    then
}

fn transmit_json(transmit: ClientTransmit) -> Value {
    match transmit {
        ClientTransmit::Text(message) => json!({"text": message}),
        ClientTransmit::Input { offset, bytes } => json!({"input": {"offset": offset, "hex": hex(&bytes)}}),
        ClientTransmit::Close { code, .. } => json!({"close": code}),
    }
}

fn event_json(event: &ClientEvent) -> Value {
    match event {
        ClientEvent::Attached(at) => json!({"attached": {"verdict": at.verdict, "offset": at.offset}}),
        ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, bytes } => json!({"snapshot_begin":
            {"reason": reason, "scope": scope, "missed": missed, "offset": offset, "size": size, "bytes": bytes}}),
        ClientEvent::SnapshotPart(bytes) => json!({"snapshot_part": hex(bytes)}),
        ClientEvent::SnapshotEnd { offset } => json!({"snapshot_end": offset}),
        ClientEvent::Output { offset, bytes } => json!({"output": {"offset": offset, "hex": hex(bytes)}}),
        ClientEvent::Resize(size) => json!({"resize": size}),
        ClientEvent::Exit { status, offset } => {
            json!({"exit": {"code": status.code, "signal": status.signal, "offset": offset}})
        }
        ClientEvent::Closing { code, .. } => json!({"closing": code}),
        ClientEvent::Message(message) => json!({"message": message}),
        ClientEvent::Unsent(unsent) => json!({"unsent": {"hex": hex(&unsent.bytes), "doubtful": unsent.doubtful}}),
        ClientEvent::CommandUnsent { id } => json!({"command_unsent": id}),
        ClientEvent::StateChanged(state) => json!({"state": format!("{state:?}").to_lowercase()}),
    }
}
