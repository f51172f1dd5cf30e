//! The settings of a new session, checked and turned into its `meta.json`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use bowline_proto::agent::command::{FirstPrompt, check_model};
use bowline_proto::api::{IfExists, NewAgent};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::Kind;
use bowline_proto::size::Size;

use crate::agents::{AgentProgram, AgentTable, ModePolicy};
use crate::log;
use crate::machine::{this_boot, this_host};
use crate::meta::{AgentMeta, Makers, Meta, TerminalMeta};
use crate::os_text::OsText;
use crate::start::StartError;
use crate::timestamp::timestamp;

/// Lines of scrollback unless configured. The emulator allocates a thousand at a time, about 2 MB at 80 columns.
pub const DEFAULT_SCROLLBACK: u32 = 1000;
/// The most lines of scrollback; at 200 columns they take about 480 MB.
pub const MAX_SCROLLBACK: u32 = 100_000;
/// The longest time without a viewer, in seconds: ten years.
pub const MAX_TTL: u64 = 10 * 366 * 24 * 3600;

/// The settings of a new session.
#[derive(Clone, Debug)]
pub struct Spec {
    pub name: Option<SessionName>,
    pub cwd: PathBuf,
    /// Seconds without a viewer after which the session ends; 0 for never.
    pub detached_ttl: u64,
    /// What to do if a running session has the name.
    pub if_exists: IfExists,
    /// The id, if the caller derived it from an idempotency key; otherwise it is random.
    pub id: Option<SessionId>,
    /// A digest of the create request, to detect another request with the same key.
    pub request: Option<String>,
    pub makers: Makers,
    /// The program's soft limit of open files; by default, that of this process.
    pub open_files: Option<u64>,
    pub body: BodySpec,
}

/// The settings of one kind of session.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum BodySpec {
    Terminal(TerminalSpec),
    Agent(AgentSpec),
}

#[derive(Clone, Debug)]
pub struct TerminalSpec {
    /// Program and arguments; empty for the login shell.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub size: Size,
    /// Bytes of output that the log keeps.
    pub log_size: u64,
    /// Lines of scrollback.
    pub scrollback: u32,
}

/// A conversation with an agent.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// The agent's name in the table of agents.
    pub agent: String,
    /// What the table says about it.
    pub program: AgentProgram,
    /// The environment, to which the table's variables are added.
    pub env: Vec<(OsString, OsString)>,
    /// The conversation to continue.
    pub resume: Option<String>,
    pub mode: Option<String>,
    pub model: Option<String>,
    /// The first prompt, and the name of its sender.
    pub prompt: Option<(FirstPrompt, String)>,
}

impl AgentSpec {
    /// Looks up the agent that a request names, and checks what the request wants of it. `by` is the name of the caller.
    /// The environment is empty.
    pub fn new(request: NewAgent, table: &AgentTable, by: impl FnOnce() -> String) -> Result<AgentSpec, StartError> {
        let NewAgent { agent, resume, mode, model, prompt, cwd: _, name: _, argv: _, env: _ } = request;
        let Some(program) = table.get(&agent) else {
            let known = table.names().collect::<Vec<_>>().join(", ");
            return Err(StartError::UnknownAgent { agent, known });
        };
        if resume.as_ref().is_some_and(|id| !is_word(id)) {
            let why = "a conversation's id must have 1 to 128 characters from A-Z a-z 0-9 . _ : - and not start with -";
            return Err(StartError::Limit(why.to_owned()));
        }
        if let Some(mode) = mode.clone().filter(|mode| !is_word(mode) || !program.allows_mode(mode)) {
            return Err(StartError::Mode { agent, mode });
        }
        if let Some(Err(why)) = model.as_deref().map(check_model) {
            return Err(StartError::Limit(why.to_owned()));
        }
        let (program, prompt) = (program.clone(), prompt.map(|prompt| (prompt, by())));
        Ok(AgentSpec { agent, program, env: Vec::new(), resume, mode, model, prompt })
    }
}

/// Whether this can be the id of a conversation or the name of a mode. It becomes one argument of the agent's command,
/// which must not take it for an option.
fn is_word(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_allowed)
}

pub(crate) fn check_limits(spec: &Spec) -> Result<(), StartError> {
    if spec.detached_ttl > MAX_TTL {
        return Err(StartError::Limit("the detached TTL must be at most ten years; 0 means no limit".into()));
    }
    let BodySpec::Terminal(terminal) = &spec.body else { return Ok(()) };
    if !(log::MIN_SIZE..=log::MAX_SIZE).contains(&terminal.log_size) {
        let (min, max, bytes) = (log::MIN_SIZE >> 10, log::MAX_SIZE >> 30, terminal.log_size);
        return Err(StartError::Limit(format!("the log size must be {min} KiB to {max} GiB, not {bytes} bytes")));
    }
    if terminal.scrollback > MAX_SCROLLBACK {
        return Err(StartError::Limit(format!("the scrollback must be at most {MAX_SCROLLBACK} lines")));
    }
    Ok(())
}

pub(crate) fn meta(spec: Spec) -> io::Result<Meta> {
    let mut random = [0; 12];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let (kind, terminal, agent) = match spec.body {
        BodySpec::Terminal(terminal) => (Kind::Terminal, Some(terminal_meta(terminal)), None),
        BodySpec::Agent(agent) => (Kind::Agent, None, Some(agent_meta(agent))),
    };
    Ok(Meta {
        id: spec.id.unwrap_or_else(|| SessionId::from_random(random)),
        name: spec.name,
        kind,
        cwd: spec.cwd.into_os_string().into(),
        detached_ttl: spec.detached_ttl,
        request: spec.request,
        makers: spec.makers,
        open_files: spec.open_files.or(rustix::process::getrlimit(rustix::process::Resource::Nofile).current),
        created: timestamp(),
        host: this_host(),
        boot: this_boot(),
        terminal,
        agent,
    })
}

fn terminal_meta(spec: TerminalSpec) -> TerminalMeta {
    let TerminalSpec { argv, env, size, log_size, scrollback } = spec;
    let (argv, arg0) = if argv.is_empty() { login_shell(&env) } else { (argv, None) };
    TerminalMeta {
        argv: argv.into_iter().map(OsText::from).collect(),
        arg0: arg0.map(OsText::from),
        env: env_meta(env),
        size,
        log_size,
        scrollback,
    }
}

fn agent_meta(spec: AgentSpec) -> AgentMeta {
    let AgentSpec { agent, program, env, resume, mode, model, prompt: _ } = spec;
    let (protocol, env, mode_policy) = (program.protocol, env_meta(env), ModePolicy::default());
    let (command, table_env, limits) = (Vec::new(), Vec::new(), program.limits);
    let mut meta = AgentMeta { agent, protocol, command, env, table_env, resume, mode, model, mode_policy, limits };
    meta.refresh(&program);
    meta
}

fn env_meta(env: Vec<(OsString, OsString)>) -> Vec<(OsText, OsText)> {
    env.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// The shell from the environment, with the `argv[0]` of a login shell.
fn login_shell(env: &[(OsString, OsString)]) -> (Vec<OsString>, Option<OsString>) {
    let shell = env.iter().find(|(name, value)| name == "SHELL" && !value.is_empty());
    let shell = shell.map_or_else(|| OsString::from("/bin/sh"), |(_, value)| value.clone());
    let mut arg0 = OsString::from("-");
    arg0.push(Path::new(&shell).file_name().unwrap_or(OsStr::new("sh")));
    (vec![shell], Some(arg0))
}
