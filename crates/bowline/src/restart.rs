//! `bowline restart`: a new life for a session that has ended.

use std::process::ExitCode;

use bowline_proto::session::State;

use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::place::Place;
use crate::{args, attach, new};

pub(crate) fn run(verb: &args::Restart, place: &dyn Place, config: &Config) -> anyhow::Result<ExitCode> {
    if verb.attach {
        attach::require_terminal("restart it without --attach, and look at it with `bowline screen`")?;
    }
    let session = place.find(&verb.session)?;
    if session.info.state == State::Running {
        let label = session.label();
        let hint = format!("`bowline kill --keep {label}` ends it first");
        return Err(Failure::new(Code::Other, format!("{label} is running"), hint).into());
    }
    let started = place.restart(&session)?;
    if verb.attach {
        return attach::to(place, &started, config);
    }
    new::report(&started, verb.json)
}
