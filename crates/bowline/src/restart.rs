//! `bowline restart`: starts an ended or lost session again.

use std::process::ExitCode;

use bowline_proto::session::State;

use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::host::Host;
use crate::{args, attach, new};

pub(crate) fn run(verb: &args::Restart, host: &dyn Host, config: &Config) -> anyhow::Result<ExitCode> {
    if verb.attach {
        attach::require_terminal("restart it without --attach; `bowline screen` prints its screen")?;
    }
    let session = host.find(&verb.session)?;
    if session.info.state == State::Running {
        let label = session.label();
        let hint = format!("`bowline kill --keep {label}` ends it first");
        return Err(Failure::new(Code::Other, format!("{label} is already running"), hint).into());
    }
    let started = host.restart(&session)?;
    if verb.attach {
        return attach::attach_started(host, &started, config);
    }
    if let (Some(agent), false) = (&started.info.agent, verb.json) {
        eprintln!("[{} is ready to go on with {}]", started.label(), agent.agent);
    }
    new::report(&started, verb.json)
}
