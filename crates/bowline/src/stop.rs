//! `bowline stop`: stops what an agent is doing.

use std::process::ExitCode;

use bowline_proto::agent::command::AgentCommand;
use bowline_proto::problem;
use bowline_proto::session::Kind;
use serde_json::json;

use crate::conversation::command;
use crate::failure::{self, Code, Failure};
use crate::host::{Host, Session};
use crate::print::one_line;
use crate::{agent_command, args};

pub(crate) fn run(verb: &args::Stop, host: &dyn Host) -> anyhow::Result<ExitCode> {
    // By its whole name or id: a script that stops `job-1` must not stop `job-10`.
    let session = host.find_or_suggest(&verb.session)?;
    if session.info.kind != Kind::Agent {
        let message = format!("{} is not a conversation with an agent", session.label());
        let hint = format!("{} presses Ctrl-C there", command(host, "send --key C-c", session.label()));
        return Err(Failure::new(Code::Usage, message, hint).into());
    }
    let Some(activity) = session.info.agent.as_ref().and_then(|agent| agent.activity.clone()) else {
        return report_idle(verb, &session);
    };
    let abort = AgentCommand::Abort { run: activity.run, queue: verb.queue };
    match agent_command::send(host, &session, json!(abort), agent_command::WITHIN) {
        Ok(accepted) if verb.json => println!("{}", serde_json::to_string(&accepted)?),
        Ok(_) => {
            let queue = if verb.queue { " and what waits behind it" } else { "" };
            println!("stopping {} of {}{queue}: {}", activity.run, session.label(), one_line(&activity.text));
        }
        // It has just ended by itself.
        Err(error) if failure::problem_code(&error) == Some(problem::Code::NotRunning) => {
            return report_idle(verb, &session);
        }
        Err(error) => return Err(error),
    }
    Ok(ExitCode::SUCCESS)
}

/// The agent is idle, which is what the caller wants.
fn report_idle(verb: &args::Stop, session: &Session) -> anyhow::Result<ExitCode> {
    if verb.json {
        println!("null");
    } else {
        println!("{} is idle", session.label());
    }
    Ok(ExitCode::SUCCESS)
}
