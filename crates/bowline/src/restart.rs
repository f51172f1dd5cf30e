//! `bowline restart`: a new life for a session that has ended.

use std::process::ExitCode;

use bowline_proto::message::State;
use bowline_session::home::Home;
use bowline_session::launch::Launcher;
use bowline_session::{registry, start};

use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::{args, attach, new};

pub(crate) fn run(verb: &args::Restart, config: &Config) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let entry = registry::find(&home, &verb.session)?;
    if entry.info.state == State::Running {
        let hint = format!("`bowline kill --keep {}` ends it first", verb.session);
        return Err(Failure::new(Code::Other, format!("{} is running", verb.session), hint).into());
    }
    let started = start::restart(&home, &Launcher::this_program(), &entry, None)?;
    if verb.attach {
        return attach::to(&home, started.id.as_str(), config);
    }
    new::report(&home, &started, verb.json)
}
