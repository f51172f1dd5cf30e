//! `bowline send`: type into a session, or signal its program, without attaching.

use std::io::Read;
use std::process::ExitCode;

use bowline_proto::ids::ClientId;
use bowline_proto::message::State;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::place::Place;
use crate::{args, ls};

pub(crate) fn run(verb: &args::Send, place: &dyn Place) -> anyhow::Result<ExitCode> {
    let session = place.find(&verb.session)?;
    if session.info.state != State::Running {
        let message = format!("{} is not running ({})", verb.session, ls::state(&session.info));
        let hint = format!("`bowline restart {}` starts it again", verb.session);
        return Err(Failure::new(Code::Other, message, hint).into());
    }
    let accepted = place.command(&session, &command(verb)?)?;
    if verb.json {
        println!("{}", serde_json::to_string(&accepted)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// An id for something that is to be done once.
pub(crate) fn fresh_id() -> std::io::Result<String> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(ClientId::from_random(random).to_string())
}

fn command(verb: &args::Send) -> anyhow::Result<Value> {
    if let Some(signal) = &verb.signal {
        return Ok(json!({"type": "signal", "name": signal}));
    }
    let mut text = if verb.text == ["-"] {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        text
    } else {
        verb.text.join(" ")
    };
    if verb.enter {
        text.push('\r');
    }
    Ok(json!({"type": "input", "text": text}))
}
