//! `bowline send`: type into a session, or signal its program, without attaching.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::ClientId;
use bowline_proto::message::State;
use bowline_session::control::{Control, ControlError};
use bowline_session::home::Home;
use bowline_session::registry;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::{args, ls};

/// How long the session process may take to accept it.
const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) fn run(verb: &args::Send) -> anyhow::Result<ExitCode> {
    let entry = registry::find(&Home::from_env()?, &verb.session)?;
    if entry.info.state != State::Running {
        let message = format!("{} is not running ({})", verb.session, ls::state(&entry.info));
        let hint = format!("`bowline restart {}` starts it again", verb.session);
        return Err(Failure::new(Code::Other, message, hint).into());
    }
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    // One id for all tries: a second one after a lost answer types nothing twice.
    let request = Request::Command { id: ClientId::from_random(random).to_string(), command: command(verb)? };
    let ask = || Control::connect(&entry.dir)?.request(&request, DEADLINE);
    let reply = match ask() {
        Err(ControlError::Silent | ControlError::Unreachable(_)) => ask()?,
        other => other?,
    };
    if verb.json {
        let Reply::Accepted { id, seq, duplicate } = reply else { return Err(ControlError::Unexpected.into()) };
        println!("{}", json!({"id": id, "seq": seq, "status": if duplicate { "duplicate" } else { "accepted" }}));
    }
    Ok(ExitCode::SUCCESS)
}

fn command(verb: &args::Send) -> anyhow::Result<Value> {
    if let Some(signal) = &verb.signal {
        let name = signal.to_ascii_uppercase();
        let name = if name.starts_with("SIG") { name } else { format!("SIG{name}") };
        return Ok(json!({"type": "signal", "name": name}));
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
