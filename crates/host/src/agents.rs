//! The agent programs that sessions may run: the built-in table, and the entries of the configuration merged over it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::Path;

use bowline_proto::ids::SessionName;
use serde::{Deserialize, Serialize};

use crate::spec::MAX_TTL;

/// Modes in which an agent acts without requesting approvals, as the agents name them: Gemini and Qwen, Claude (two),
/// Codex and its adapter (three), others. Case, `-` and `_` do not count, because agents spell the same mode differently.
const MODES_WITHOUT_APPROVALS: &[&str] = &[
    "yolo",
    "bypassPermissions",
    "dontAsk",
    "agent-full-access",
    "full-access",
    "danger-full-access",
    "auto-approve",
    "approve-all",
];

/// The length of a transcript unless configured, in bytes.
pub const DEFAULT_TRANSCRIPT_SIZE: u64 = 256 << 20;
/// The smallest limit of a transcript that can be configured.
pub const MIN_TRANSCRIPT_SIZE: u64 = 1 << 20;
/// The largest one. The index of a longer transcript would not fit into its checkpoint.
pub const MAX_TRANSCRIPT_SIZE: u64 = 4 << 30;

/// What an agent program speaks on its standard input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The Agent Client Protocol, version 1.
    Acp,
    /// The stream-json and control messages of Claude Code.
    Claude,
    /// The app-server of Codex.
    Codex,
}

impl Protocol {
    /// The modes of every agent that speaks this protocol; `None` if each agent has its own.
    pub fn modes(self) -> Option<&'static [&'static str]> {
        match self {
            Protocol::Acp => None,
            Protocol::Claude => Some(&["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]),
            Protocol::Codex => Some(&["read-only", "workspace-write", "plan", "danger-full-access"]),
        }
    }
}

/// Which modes of an agent a client may choose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModePolicy {
    /// `None` for all that request approvals.
    pub modes: Option<Vec<String>>,
    /// Whether a client may choose a mode that skips approvals.
    pub allow_bypass: bool,
}

impl ModePolicy {
    /// Whether a client may choose this mode. One that skips approvals also needs `allow_bypass`, even if `modes`
    /// lists it.
    pub fn allows(&self, mode: &str) -> bool {
        let is_listed = self.modes.as_ref().is_none_or(|modes| modes.iter().any(|listed| listed == mode));
        is_listed && self.allows_value(mode)
    }

    /// Whether a client may choose this value of an option of the agent, whose meaning is not known. Some agents have
    /// their modes among the options.
    pub fn allows_value(&self, value: &str) -> bool {
        self.allow_bypass || !skips_approvals(value)
    }
}

/// The limits of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConversationLimits {
    /// Bytes of the transcript. A longer one accepts no more prompts.
    pub transcript_size: u64,
    /// Seconds after which an approval that was not answered is denied; `None` for never.
    pub approval_deadline: Option<u64>,
}

impl Default for ConversationLimits {
    fn default() -> ConversationLimits {
        ConversationLimits { transcript_size: DEFAULT_TRANSCRIPT_SIZE, approval_deadline: None }
    }
}

/// How to run an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentProgram {
    /// The name that users see.
    pub label: String,
    pub protocol: Protocol,
    /// The program, by an absolute path or a name to find in `PATH`, and its arguments. Never empty. Bowline adds the
    /// arguments that make Claude Code and Codex speak their protocol.
    pub command: Vec<String>,
    /// Variables to add to the environment. Their values may be secrets.
    pub env: BTreeMap<String, String>,
    pub mode_policy: ModePolicy,
    pub limits: ConversationLimits,
    /// A command that installs the program.
    pub install: Option<String>,
}

impl AgentProgram {
    /// Whether a client may choose this mode, as far as that is known before the agent has started.
    pub fn allows_mode(&self, mode: &str) -> bool {
        self.protocol.modes().is_none_or(|modes| modes.contains(&mode)) && self.mode_policy.allows(mode)
    }

    fn merge(&mut self, config: &AgentConfig) {
        let AgentConfig { label, protocol, command, env, modes, allow_bypass } = config.clone();
        if let Some(command) = command {
            // The hint is about the built-in program.
            if command.first() != self.command.first() {
                self.install = None;
            }
            self.command = command;
        }
        self.label = label.unwrap_or_else(|| self.label.clone());
        self.protocol = protocol.unwrap_or(self.protocol);
        self.env = env.unwrap_or_else(|| self.env.clone());
        let policy = &mut self.mode_policy;
        policy.modes = modes.or_else(|| policy.modes.clone());
        policy.allow_bypass = allow_bypass.unwrap_or(policy.allow_bypass);
    }
}

/// Whether an agent in this mode acts without requesting approvals.
fn skips_approvals(mode: &str) -> bool {
    let letters =
        |text: &str| text.chars().filter(|c| !matches!(c, '-' | '_')).collect::<String>().to_ascii_lowercase();
    let mode = letters(mode);
    MODES_WITHOUT_APPROVALS.iter().any(|known| letters(known) == mode)
}

/// An entry `[agents.NAME]` of the configuration. For a built-in agent, keys that are not set keep their built-in
/// values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    pub label: Option<String>,
    pub protocol: Option<Protocol>,
    pub command: Option<Vec<String>>,
    pub modes: Option<Vec<String>>,
    pub allow_bypass: Option<bool>,
    // The last field, because TOML writes tables after values.
    pub env: Option<BTreeMap<String, String>>,
}

/// A setting of the configuration about agents that cannot be used. The message names the key and says what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAgent {
    #[error(
        "agents.{0:?} is not a valid name: use 1 to 64 letters, digits, `.`, `-` and `_`, starting with a letter or digit"
    )]
    Name(String),
    #[error("agents.{agent}.{key} is missing: {agent} is not a built-in agent, so set it, such as {example}")]
    Missing { agent: String, key: &'static str, example: &'static str },
    #[error(
        "agents.{agent}.command must begin with an absolute path or the name of a program in PATH, not {program:?}"
    )]
    Program { agent: String, program: String },
    #[error("agents.{agent}.{key} contains a NUL character; remove it")]
    Nul { agent: String, key: &'static str },
    #[error("agents.{agent}.env has the name {variable:?}: a name must not be empty or contain `=`")]
    Variable { agent: String, variable: String },
    #[error("transcript_size must be {min} MiB to {max} GiB, not {0} bytes",
        min = MIN_TRANSCRIPT_SIZE >> 20, max = MAX_TRANSCRIPT_SIZE >> 30)]
    TranscriptSize(u64),
    #[error("approval_deadline must be one second to ten years, or \"never\"")]
    ApprovalDeadline,
}

impl AgentConfig {
    fn check(&self, agent: &str) -> Result<(), InvalidAgent> {
        let agent = || agent.to_owned();
        if let Some(command) = &self.command {
            let program = command.first().map_or("", String::as_str);
            // A relative path would depend on the session's directory, which the client chooses.
            if program.is_empty() || program.contains('/') && !Path::new(program).is_absolute() {
                return Err(InvalidAgent::Program { agent: agent(), program: program.to_owned() });
            }
            if command.iter().any(|argument| argument.contains('\0')) {
                return Err(InvalidAgent::Nul { agent: agent(), key: "command" });
            }
        }
        for (name, value) in self.env.iter().flatten() {
            if name.is_empty() || name.contains('=') {
                return Err(InvalidAgent::Variable { agent: agent(), variable: name.clone() });
            }
            if name.contains('\0') || value.contains('\0') {
                return Err(InvalidAgent::Nul { agent: agent(), key: "env" });
            }
        }
        Ok(())
    }
}

/// The agents that sessions may run, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTable(BTreeMap<String, AgentProgram>);

impl Default for AgentTable {
    fn default() -> AgentTable {
        AgentTable::builtin()
    }
}

impl AgentTable {
    /// The agents that need no configuration.
    pub fn builtin() -> AgentTable {
        use Protocol::{Acp, Claude, Codex};
        let agent = |name: &str, label: &str, protocol, command: &[&str], package: Option<&str>| {
            let program = AgentProgram {
                label: label.to_owned(),
                protocol,
                command: command.iter().map(|&part| part.to_owned()).collect(),
                env: BTreeMap::new(),
                mode_policy: ModePolicy::default(),
                limits: ConversationLimits::default(),
                install: package.map(|package| format!("npm install -g {package}")),
            };
            (name.to_owned(), program)
        };
        AgentTable(BTreeMap::from([
            agent("claude", "Claude Code", Claude, &["claude"], Some("@anthropic-ai/claude-code")),
            agent("codex", "Codex", Codex, &["codex"], Some("@openai/codex")),
            agent("gemini", "Gemini CLI", Acp, &["gemini", "--acp"], Some("@google/gemini-cli")),
            agent("opencode", "opencode", Acp, &["opencode", "acp"], Some("opencode-ai")),
            agent("qwen", "Qwen Code", Acp, &["qwen", "--acp"], Some("@qwen-code/qwen-code")),
            // The npm package `cursor-agent` is an unrelated program.
            agent("cursor", "Cursor", Acp, &["cursor-agent", "acp"], None),
        ]))
    }

    /// Merges the entries of the configuration over this table.
    pub fn merge(mut self, entries: &BTreeMap<String, AgentConfig>) -> Result<AgentTable, InvalidAgent> {
        for (name, config) in entries {
            if name.parse::<SessionName>().is_err() {
                return Err(InvalidAgent::Name(name.clone()));
            }
            config.check(name)?;
            match self.0.entry(name.clone()) {
                Entry::Occupied(mut known) => known.get_mut().merge(config),
                Entry::Vacant(new) => {
                    let missing = |key, example| InvalidAgent::Missing { agent: name.clone(), key, example };
                    let command = config.command.clone();
                    let mut program = AgentProgram {
                        label: name.clone(),
                        protocol: config.protocol.ok_or_else(|| missing("protocol", "protocol = \"acp\""))?,
                        command: command.ok_or_else(|| missing("command", "command = [\"my-agent\", \"--acp\"]"))?,
                        env: BTreeMap::new(),
                        mode_policy: ModePolicy::default(),
                        limits: ConversationLimits::default(),
                        install: None,
                    };
                    program.merge(config);
                    new.insert(program);
                }
            }
        }
        Ok(self)
    }

    /// Sets the limits of the conversations with all agents.
    pub fn with_limits(mut self, limits: ConversationLimits) -> Result<AgentTable, InvalidAgent> {
        if !(MIN_TRANSCRIPT_SIZE..=MAX_TRANSCRIPT_SIZE).contains(&limits.transcript_size) {
            return Err(InvalidAgent::TranscriptSize(limits.transcript_size));
        }
        if limits.approval_deadline.is_some_and(|seconds| !(1..=MAX_TTL).contains(&seconds)) {
            return Err(InvalidAgent::ApprovalDeadline);
        }
        self.0.values_mut().for_each(|program| program.limits = limits);
        Ok(self)
    }

    pub fn get(&self, name: &str) -> Option<&AgentProgram> {
        self.0.get(name)
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The agents with their names, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AgentProgram)> {
        self.0.iter().map(|(name, program)| (name.as_str(), program))
    }
}

/// Without the values of `env`, which may be secrets.
impl fmt::Debug for AgentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgentProgram { label, protocol, command, env, mode_policy, limits, install } = self;
        f.debug_struct("AgentProgram")
            .field("label", label)
            .field("protocol", protocol)
            .field("command", command)
            .field("env", &env.keys())
            .field("mode_policy", mode_policy)
            .field("limits", limits)
            .field("install", install)
            .finish()
    }
}

/// Without the values of `env`, which may be secrets.
impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgentConfig { label, protocol, command, env, modes, allow_bypass } = self;
        f.debug_struct("AgentConfig")
            .field("label", label)
            .field("protocol", protocol)
            .field("command", command)
            .field("modes", modes)
            .field("allow_bypass", allow_bypass)
            .field("env", &env.as_ref().map(BTreeMap::keys))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Merges entries, written as JSON, over the built-in table.
    fn merged(entries: Value) -> Result<AgentTable, InvalidAgent> {
        AgentTable::builtin().merge(&serde_json::from_value(entries).unwrap())
    }

    #[test]
    fn the_built_in_agents_have_commands() {
        let table = AgentTable::default();
        assert_eq!(table.names().collect::<Vec<_>>(), ["claude", "codex", "cursor", "gemini", "opencode", "qwen"]);
        assert_eq!(table.get("gemini").unwrap().command, ["gemini", "--acp"]);
        assert_eq!(table.get("gemini").unwrap().install.as_deref(), Some("npm install -g @google/gemini-cli"));
        assert_eq!(table.get("cursor").unwrap().install, None);
        assert!(table.get("mine").is_none());
        assert!(table.iter().all(|(name, program)| name.parse::<SessionName>().is_ok() && !program.command.is_empty()));
    }

    #[test]
    fn an_entry_for_a_built_in_agent_changes_only_the_keys_that_it_sets() {
        let table = merged(json!({ "gemini": { "env": { "K": "v" } }, "qwen": { "command": ["/opt/qwen"] } })).unwrap();
        let (gemini, builtin) = (table.get("gemini").unwrap(), AgentTable::builtin());
        let expected = BTreeMap::from([("K".to_owned(), "v".to_owned())]);
        assert_eq!(gemini, &AgentProgram { env: expected, ..builtin.get("gemini").unwrap().clone() });
        let qwen = table.get("qwen").unwrap();
        assert_eq!((qwen.command.as_slice(), qwen.label.as_str()), (&["/opt/qwen".to_owned()][..], "Qwen Code"));
        assert_eq!(qwen.install, None, "the hint is about another program");
        assert_eq!(table.get("opencode"), builtin.get("opencode"));
    }

    #[test]
    fn an_entry_for_a_new_agent_needs_a_protocol_and_a_command() {
        let table = merged(json!({ "mine": { "protocol": "acp", "command": ["a", "b"], "modes": ["plan"] } })).unwrap();
        let mine = table.get("mine").unwrap();
        assert_eq!((mine.label.as_str(), mine.command.len(), mine.mode_policy.allow_bypass), ("mine", 2, false));
        let error = |entry: Value| merged(json!({ "mine": entry })).unwrap_err().to_string();
        assert!(error(json!({ "command": ["a"] })).contains("agents.mine.protocol is missing"));
        assert!(error(json!({ "protocol": "acp" })).contains("such as command = [\"my-agent\", \"--acp\"]"));
    }

    #[test]
    fn entries_that_cannot_work_are_refused() {
        let error = |entry: Value| merged(json!({ "gemini": entry })).unwrap_err().to_string();
        for program in [json!([]), json!([""]), json!(["./gemini"]), json!(["bin/gemini", "--acp"])] {
            assert!(
                error(json!({ "command": program })).contains("agents.gemini.command must begin with"),
                "{program}"
            );
        }
        assert!(error(json!({ "command": ["a", "b\0"] })).contains("agents.gemini.command contains a NUL"));
        assert!(error(json!({ "env": { "A": "\0" } })).contains("agents.gemini.env contains a NUL"));
        assert!(error(json!({ "env": { "A=B": "" } })).contains("agents.gemini.env has the name \"A=B\""));
        for name in ["", "..", "a b", "-x"] {
            assert_eq!(merged(json!({ name: {} })), Err(InvalidAgent::Name(name.to_owned())));
        }
        let unknown = serde_json::from_value::<AgentConfig>(json!({ "comand": [] })).unwrap_err().to_string();
        assert!(unknown.contains("comand") && unknown.contains("command"), "{unknown}");
    }

    #[test]
    fn a_mode_that_skips_approvals_needs_allow_bypass_even_if_it_is_listed() {
        let program = |entry: Value| merged(json!({ "gemini": entry })).unwrap().get("gemini").unwrap().clone();
        let allowed = |entry: Value| {
            let program = program(entry);
            ["default", "plan", "yolo"].map(|mode| program.mode_policy.allows(mode))
        };
        assert_eq!(allowed(json!({})), [true, true, false]);
        assert_eq!(allowed(json!({ "modes": ["plan", "yolo"] })), [false, true, false]);
        assert_eq!(allowed(json!({ "allow_bypass": true })), [true, true, true]);
        assert_eq!(allowed(json!({ "allow_bypass": true, "modes": ["plan"] })), [false, true, false]);
        assert_eq!(allowed(json!({ "modes": [] })), [false, false, false]);
        let gemini = program(json!({}));
        for mode in ["bypassPermissions", "dontAsk", "agent-full-access", "auto-approve", "AUTO_APPROVE", "YOLO"] {
            assert!(!gemini.mode_policy.allows(mode), "{mode}");
            assert!(!gemini.mode_policy.allows_value(mode), "{mode}");
        }
    }

    #[test]
    fn debug_output_has_no_values_of_the_environment() {
        let entry: AgentConfig = serde_json::from_value(json!({ "env": { "KEY": "hunter2" } })).unwrap();
        let table = AgentTable::builtin().merge(&BTreeMap::from([("gemini".to_owned(), entry.clone())])).unwrap();
        for text in [format!("{entry:?}"), format!("{table:?}")] {
            assert!(text.contains("KEY") && !text.contains("hunter2"), "{text}");
        }
    }
}
