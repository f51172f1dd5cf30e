//! What agents offer to choose from: modes and models, as far as that is known before a session is started.

use std::collections::HashMap;

use bowline_host::agents::{AgentProgram, AgentTable, Protocol};
use bowline_host::home::Home;
use bowline_host::registry::{self, Entry};
use bowline_host::transcript;
use bowline_proto::agent::config::{Choices, Config};
use bowline_proto::ids::SessionId;

use crate::app::App;
use crate::problem::Problem;
use crate::sessions::blocking;

/// How many sessions of an agent are read to find one in which it has said what it offers.
const MAX_SESSIONS: usize = 8;
/// The mode of Claude Code that it refuses as root.
const NOT_AS_ROOT: &str = "bypassPermissions";

/// What each agent offered in its newest session that knows, by the agent's name.
pub(super) async fn read(app: App) -> Result<HashMap<String, Config>, Problem> {
    let list = app.list.get(&app.home).await?;
    let newest = |name: &str| list.newest_of(name).take(MAX_SESSIONS).cloned().collect();
    let sessions: Vec<(String, Vec<SessionId>)> =
        app.settings.agents.names().map(|name| (name.to_owned(), newest(name))).collect();
    let home = app.home.clone();
    blocking(move || Ok(find_all(&home, sessions))).await
}

/// The same, from the files of the sessions alone.
pub(super) fn of_files(table: &AgentTable, home: &Home) -> HashMap<String, Config> {
    let entries = registry::list_files(home).unwrap_or_default();
    let newest = |name: &str| {
        let is_of_agent =
            |entry: &&Entry| entry.is_local && entry.info.agent.as_ref().is_some_and(|agent| agent.agent == name);
        entries.iter().rev().filter(is_of_agent).map(|entry| entry.info.id.clone()).take(MAX_SESSIONS).collect()
    };
    find_all(home, table.names().map(|name| (name.to_owned(), newest(name))).collect())
}

fn find_all(home: &Home, sessions: Vec<(String, Vec<SessionId>)>) -> HashMap<String, Config> {
    sessions.into_iter().filter_map(|(name, sessions)| Some((name, find(home, &sessions)?))).collect()
}

/// The newest configuration that is recorded in these sessions.
fn find(home: &Home, sessions: &[SessionId]) -> Option<Config> {
    sessions.iter().find_map(|id| transcript::read_state(&home.session(id)).ok()?.fold.config)
}

/// The modes that a client may choose: those of the protocol, of the configuration, or that the agent offered.
pub(super) fn modes(agent: &AgentProgram, offered: Option<&Config>) -> Vec<String> {
    let is_refused =
        |mode: &str| agent.protocol == Protocol::Claude && mode == NOT_AS_ROOT && rustix::process::geteuid().is_root();
    let known: Vec<String> = match (agent.protocol.modes(), &agent.mode_policy.modes) {
        (Some(modes), _) => modes.iter().map(|&mode| mode.to_owned()).collect(),
        (None, Some(configured)) => configured.clone(),
        (None, None) => ids(offered.and_then(|config| config.modes.as_ref())).unwrap_or_default(),
    };
    known.into_iter().filter(|mode| agent.allows_mode(mode) && !is_refused(mode)).collect()
}

/// The models that the agent offered, if that is known.
pub(super) fn models(offered: Option<&Config>) -> Option<Vec<String>> {
    ids(offered.and_then(|config| config.models.as_ref()))
}

fn ids(choices: Option<&Choices>) -> Option<Vec<String>> {
    Some(choices?.available.iter().map(|choice| choice.id.clone()).collect())
}

#[cfg(test)]
mod tests {
    use bowline_proto::agent::config::Choice;
    use serde_json::json;

    use super::*;

    fn agent(name: &str, entry: serde_json::Value) -> AgentProgram {
        let entries = serde_json::from_value(json!({ name: entry })).unwrap();
        AgentTable::builtin().merge(&entries).unwrap().get(name).unwrap().clone()
    }

    fn offer(modes: &[&str]) -> Config {
        let available = modes.iter().map(|id| Choice::plain(id)).collect();
        Config { modes: Some(Choices { current: None, available }), ..Config::default() }
    }

    #[test]
    fn r43_modes_that_skip_approvals_are_listed_only_with_allow_bypass() {
        let offered = offer(&["default", "plan", "yolo"]);
        let gemini = |entry| modes(&agent("gemini", entry), Some(&offered));
        assert_eq!(gemini(json!({})), ["default", "plan"]);
        assert_eq!(gemini(json!({"allow_bypass": true})), ["default", "plan", "yolo"]);
        assert_eq!(gemini(json!({"modes": ["plan", "yolo"]})), ["plan"], "the configuration comes first");
        assert_eq!(gemini(json!({"modes": ["plan", "yolo"], "allow_bypass": true})), ["plan", "yolo"]);
        assert_eq!(modes(&agent("gemini", json!({})), None), [""; 0], "not known yet");
        let codex = |entry| modes(&agent("codex", entry), None);
        assert_eq!(codex(json!({})), ["read-only", "workspace-write", "plan"]);
        assert_eq!(codex(json!({"modes": ["plan", "none"]})), ["plan"]);
        assert_eq!(codex(json!({"allow_bypass": true})).last().unwrap(), "danger-full-access");
        let claude = modes(&agent("claude", json!({"allow_bypass": true})), None);
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(claude.contains(&NOT_AS_ROOT.to_owned()), !is_root, "{claude:?}");
        assert!(claude.contains(&"dontAsk".to_owned()));
    }

    #[test]
    fn models_are_known_once_an_agent_has_offered_some() {
        assert_eq!((models(None), models(Some(&Config::default()))), (None, None));
        let offered = Config { models: offer(&["small", "large"]).modes, ..Config::default() };
        assert_eq!(models(Some(&offered)).unwrap(), ["small", "large"]);
    }
}
