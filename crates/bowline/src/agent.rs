//! `bowline agent`: starts a conversation with an agent.

use std::io::IsTerminal;
use std::process::ExitCode;

use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::problem;

use crate::config::Config;
use crate::conversation::{self, Conversation};
use crate::failure::{self, Code, Failure};
use crate::host::Host;
use crate::{args, attach, new, print, prompts, send};

pub(crate) fn run(verb: &args::Agent, host: &dyn Host, config: &Config) -> anyhow::Result<ExitCode> {
    let prompt = prompt(verb)?;
    let started = host.start_agent(verb, prompt.clone(), config).map_err(|error| explain(error, verb, host))?;
    match prompt {
        _ if verb.detach => new::report(&started, verb.json),
        _ if is_live(verb) => attach::attach_started(host, &started, config),
        None => new::report(&started, verb.json),
        Some(FirstPrompt { id, .. }) => {
            conversation::run(&Conversation { host, session: &started, prompt: &id, json: verb.json, config })
        }
    }
}

/// Whether the conversation is shown in this terminal, where the user can go on with it.
fn is_live(verb: &args::Agent) -> bool {
    !verb.detach && !verb.json && std::io::stdin().is_terminal() && print::is_terminal()
}

/// The first prompt, with a new id. In a terminal, the user can type it later.
fn prompt(verb: &args::Agent) -> anyhow::Result<Option<FirstPrompt>> {
    let text = match verb.prompt.as_slice() {
        [] if verb.detach || is_live(verb) => return Ok(None),
        [] if !std::io::stdin().is_terminal() => prompts::read_stdin()?,
        [] => {
            let hint = format!("`bowline agent {} 'What does this project do?'`, for example", verb.agent);
            return Err(Failure::new(Code::Usage, "there is no prompt", hint).into());
        }
        words => prompts::text(words)?,
    };
    prompts::command(&text)?;
    Ok(Some(FirstPrompt { id: send::new_command_id()?, text }))
}

/// Adds a hint about agents to the error of a session that could not be started.
fn explain(error: anyhow::Error, verb: &args::Agent, host: &dyn Host) -> anyhow::Error {
    match (failure::start_code(&error), &verb.name) {
        (Some(problem::Code::NoProgram), _) => {
            let hint = "`bowline agents` lists the agents, and says what is missing";
            Failure::new(Code::CannotStart, format!("{error:#}"), hint).into()
        }
        (Some(problem::Code::NameTaken), Some(name)) => {
            let attach = conversation::command(host, "attach", name.as_str());
            let hint = format!("{attach} shows it; choose another --name for a new conversation");
            Failure::new(Code::NameTaken, format!("{error:#}"), hint).into()
        }
        _ => error,
    }
}
