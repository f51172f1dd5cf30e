//! The arguments of the verbs about agents.

use std::path::PathBuf;

use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::NewAgent;
use bowline_proto::ids::SessionName;

use crate::units;

/// Start a conversation with a coding agent in a new session.
///
/// In a terminal, the conversation is shown, approvals are asked, and you can type further prompts. Ctrl-C stops the run;
/// Ctrl-D, or a second Ctrl-C within a second, leaves. The session goes on, and `bowline attach` returns to it.
///
/// In a script, or with --json, the agent's answer is printed as it comes, and the command ends with the run: with 0 if
/// the agent reported a normal end, with 1 otherwise. What the agent does besides writing goes to standard error. With
/// --json, each event is printed as a line of JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline agent claude                              type the prompts in this terminal
  bowline agent claude 'What does this project do?'
  git diff | bowline agent codex --name review -    read the prompt from standard input
  bowline agent gemini --detach 'Fix the tests'     do not wait; print only the id
  bowline agent claude --resume ID 'Go on'          continue a conversation of this agent
  bowline agent claude --mode plan --json 'Plan a release' | jq .event

`bowline agents` lists the agents and their modes. `bowline attach` and `bowline send` continue the \
conversation, `bowline log` prints it, and `bowline approvals` lists what the agent waits for.

The agent runs on the server with --server; --cwd must then name a directory there, such as '~/src' (in quotes).")]
pub(crate) struct Agent {
    /// Name of the agent; `bowline agents` lists them
    pub(crate) agent: String,
    /// Directory of the project [default: the current one; with --server, it must be given]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Name of the session: letters, digits, and . _ -
    #[arg(long, short)]
    pub(crate) name: Option<SessionName>,
    /// Continue the conversation that the agent has under this id
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Mode of the agent, such as plan
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// Model that the agent uses, by the agent's name for it
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Do not wait for the answer; print the id
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Print each event as JSON or, with --detach, the session
    #[arg(long)]
    pub(crate) json: bool,
    /// What the agent should do, or - for standard input, which is also read without a prompt if it is not a terminal; put
    /// -- before text that starts with a dash
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
}

impl Agent {
    /// The request for the session, in the directory `cwd`.
    pub(crate) fn request(&self, cwd: String, prompt: Option<FirstPrompt>) -> NewAgent {
        NewAgent {
            agent: self.agent.clone(),
            cwd,
            name: self.name.as_ref().map(ToString::to_string),
            resume: self.resume.clone(),
            mode: self.mode.clone(),
            model: self.model.clone(),
            prompt,
            argv: Default::default(),
            env: Default::default(),
        }
    }
}

/// List the agents that sessions may run, and whether they are installed.
///
/// Runs the agents' programs for their versions, which can take a few seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline agents
  bowline agents --json | jq -r '.agents[] | select(.available) | .name'

Programs are looked for in PATH; `[agents.NAME]` in the configuration changes an agent, or adds one.")]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List what agents wait for, in all sessions, oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline approvals
  bowline approvals --json | jq -r '.approvals[].approval.detail.command'

`bowline approve ID` allows what is asked, `bowline deny ID` refuses it.")]
pub(crate) struct Approvals {
    /// Print JSON, with whole texts
    #[arg(long)]
    pub(crate) json: bool,
}

/// Allow what an agent waits for, or answer its questions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline approve dev/a7                          allow it this once
  bowline approve dev/a7 --option always          choose another option that allows it
  bowline approve a7                              if only one session has an open approval a7
  bowline approve dev/a8 --answer colour=Blue     answer a question by its id
  bowline approve dev/a8 --answer 1=Blue          answer a question by its number

`bowline approvals` lists the ids. Without --option, there must be exactly one option that allows it once.")]
pub(crate) struct Approve {
    /// Id of the approval: SESSION/a7, or a7 alone if no other open approval has it
    pub(crate) approval: String,
    /// Option to choose, by its id
    #[arg(long, value_name = "ID", conflicts_with = "answers")]
    pub(crate) option: Option<String>,
    /// Answer to a question, by its id or number; repeatable, also for several answers to one question
    #[arg(long = "answer", value_name = "QUESTION=TEXT", value_parser = units::parse_answer)]
    pub(crate) answers: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop what an agent is doing. The conversation goes on with the next prompt.
///
/// The agent gets two seconds to stop by itself, then its processes are ended. Prompts that wait behind the run are run
/// next, unless --queue is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline stop dev
  bowline stop dev --queue    also discard the prompts that wait

`bowline kill` ends the whole session.")]
pub(crate) struct Stop {
    /// Full name or id of the session
    pub(crate) session: String,
    /// Also discard the prompts that wait
    #[arg(long)]
    pub(crate) queue: bool,
    /// Print JSON; null if the agent is idle
    #[arg(long)]
    pub(crate) json: bool,
}

/// Refuse what an agent waits for.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline deny dev/a7                             deny it this once
  bowline deny dev/a7 --option never              choose another option that denies it
  bowline deny dev/a7 --reason 'Use the staging server'

`bowline approvals` lists the ids.")]
pub(crate) struct Deny {
    /// Id of the approval: SESSION/a7, or a7 alone if no other open approval has it
    pub(crate) approval: String,
    /// Option to choose, by its id
    #[arg(long, value_name = "ID")]
    pub(crate) option: Option<String>,
    /// Why; recorded, and told to agents whose protocol has room for it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
