//! The sections `[agents.NAME]` of the configuration: the agents that sessions may run.

use bowline_host::agents::{AgentConfig, AgentProgram, AgentTable, ConversationLimits, InvalidAgent};
use toml::{Table, Value};

use super::Config;
use super::layers::Source;
use crate::units;

/// What `bowline config show` prints instead of the value of a variable, which is often a secret.
const HIDDEN: &str = "(hidden)";

/// A key of `[agents.NAME]`. Neither variables nor flags set it.
#[derive(Debug)]
pub(super) struct AgentKey {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
}

const fn key(name: &'static str, about: &'static str) -> AgentKey {
    AgentKey { name, about }
}

/// All keys, in the order in which `bowline config show` and docs/CONFIG.md list them.
pub(super) const AGENT_KEYS: &[AgentKey] = &[
    key("label", "name that users see"),
    key("protocol", "what the program speaks on its standard input and output: `acp`, `claude` or `codex`"),
    key(
        "command",
        "the program, by an absolute path or a name to find in PATH, and its arguments; it runs without a shell. For `claude` and `codex`, Bowline adds the arguments that make it speak its protocol",
    ),
    key(
        "env",
        "variables to add to its environment; `config show` hides their values. Keep the file private if there are secrets in it",
    ),
    key(
        "modes",
        "modes that a client may choose; others get 422 `not_allowed_mode`. All but those that skip approvals if unset",
    ),
    key(
        "allow_bypass",
        "whether a client may choose a mode that skips approvals, such as `yolo` or `bypassPermissions`; without it, also those in `modes` are refused",
    ),
];

/// A value of one agent, as `bowline config show` prints it.
#[derive(Debug)]
pub(super) struct AgentValue {
    /// Dotted path in the file, such as `agents.gemini.command`.
    pub(super) path: String,
    pub(super) value: Value,
    pub(super) from: Source,
    pub(super) about: &'static str,
}

impl Config {
    /// The built-in agents, with those of the configuration.
    pub(crate) fn agent_table(&self) -> Result<AgentTable, InvalidAgent> {
        let approval_deadline = self.approval_deadline.map(units::round_up_to_seconds);
        let limits = ConversationLimits { transcript_size: self.transcript_size, approval_deadline };
        AgentTable::builtin().merge(&self.agents)?.with_limits(limits)
    }

    /// The values of all agents that are set.
    pub(super) fn agent_values(&self) -> anyhow::Result<Vec<AgentValue>> {
        let mut values = Vec::new();
        for (name, program) in self.agent_table()?.iter() {
            let effective = Table::try_from(shown(program))?;
            let configured = Table::try_from(self.agents.get(name).cloned().unwrap_or_default())?;
            for key in AGENT_KEYS {
                let Some(value) = effective.get(key.name) else { continue };
                let from = if configured.contains_key(key.name) { Source::File } else { Source::Default };
                let path = format!("agents.{}.{}", quoted(name), key.name);
                values.push(AgentValue { path, value: value.clone(), from, about: key.about });
            }
        }
        Ok(values)
    }
}

/// The agent as an entry of the configuration, with its secrets hidden.
fn shown(program: &AgentProgram) -> AgentConfig {
    let env = program.env.keys().map(|name| (name.clone(), HIDDEN.to_owned())).collect();
    AgentConfig {
        label: Some(program.label.clone()),
        protocol: Some(program.protocol),
        command: Some(program.command.clone()),
        modes: program.mode_policy.modes.clone(),
        allow_bypass: Some(program.mode_policy.allow_bypass),
        env: (!program.env.is_empty()).then_some(env),
    }
}

/// The name as a part of a dotted path.
fn quoted(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use bowline_host::agents::ModePolicy;

    use super::*;

    const FILE: &str = "[agents.gemini]\nallow_bypass = true\n[agents.\"my.agent\"]\nprotocol = \"acp\"\n\
                        command = [\"my-agent\", \"--acp\"]\nmodes = [\"plan\"]\nenv = { MY_KEY = \"hunter2\" }";

    /// The rows of docs/CONFIG.md about agents.
    pub(in super::super) fn rows() -> impl Iterator<Item = String> {
        // For an agent that is not built in.
        let default = |name| match name {
            "label" => "NAME",
            "protocol" | "command" => "required",
            "allow_bypass" => "`false`",
            _ => "unset",
        };
        AGENT_KEYS
            .iter()
            .map(move |key| format!("| `agents.NAME.{}` | {} | {} |", key.name, default(key.name), key.about))
    }

    #[test]
    fn the_table_of_agent_keys_is_complete() {
        let program = AgentTable::builtin().get("gemini").unwrap().clone();
        let env = [("A".to_owned(), "b".to_owned())].into();
        let mode_policy = ModePolicy { modes: Some(vec![]), ..program.mode_policy.clone() };
        let all = Table::try_from(shown(&AgentProgram { mode_policy, env, ..program })).unwrap();
        let mut names: Vec<&str> = AGENT_KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        let mut found: Vec<&str> = all.keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, names);
    }

    #[test]
    fn r55_every_value_of_an_agent_is_shown_with_its_source_but_no_secret() {
        let config: Config = toml::from_str(FILE).unwrap();
        let values = config.agent_values().unwrap();
        let shown = |path: &str| {
            let found = values.iter().find(|value| value.path == path);
            found.map(|found| format!("{} {}", found.value, found.from))
        };
        assert_eq!(shown("agents.gemini.allow_bypass").unwrap(), "true file");
        assert_eq!(shown("agents.gemini.command").unwrap(), "[\"gemini\", \"--acp\"] default");
        assert_eq!(shown("agents.gemini.modes"), None);
        assert_eq!(shown("agents.\"my.agent\".modes").unwrap(), "[\"plan\"] file");
        assert_eq!(shown("agents.\"my.agent\".label").unwrap(), "\"my.agent\" default");
        assert!(!format!("{values:?}").contains("hunter2"));
        // What is shown is also what the file accepts.
        for AgentValue { path, value, .. } in &values {
            let text = format!("{path} = {value}");
            assert!(toml::from_str::<Config>(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn r55_a_configuration_with_agents_can_be_printed_and_parsed() {
        let config: Config = toml::from_str(FILE).unwrap();
        let written = toml::to_string(&config).unwrap();
        let read: Config = toml::from_str(&written).unwrap();
        assert_eq!(read.agents, config.agents);
        assert_eq!(read.agent_table().unwrap().names().count(), AgentTable::builtin().names().count() + 1);
    }
}
