//! What can be set in Codex: modes, which are Bowline's names for its policies; models; and the effort of reasoning.

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::config::{Choice, Choices, Config, ConfigOption, Settings};
use serde_json::{Map, Value, json};

use super::messages::{Effort, Model, ModelList, ThreadOpened};
use crate::agent::AdapterConfig;
use crate::agent::details::MAX_SHORT;

/// The models that are kept; more are left out.
const MAX_MODELS: usize = 64;
/// The efforts of a model that are kept; more are left out.
const MAX_EFFORTS: usize = 16;
/// The longest name of a model or an effort in bytes; a longer one is left out.
const MAX_NAME: usize = 128;

/// A mode: when Codex requests approvals, and what its sandbox allows.
#[derive(Debug)]
pub(super) struct Mode {
    pub(super) id: &'static str,
    name: &'static str,
    description: &'static str,
    /// As `thread/start` names it.
    pub(super) sandbox: &'static str,
    /// As `turn/start` names it.
    sandbox_policy: &'static str,
    pub(super) approvals: &'static str,
}

const PLAN: &str = "plan";

/// The default mode is the second one. Plan mode has its sandbox, as in Codex itself.
static MODES: [Mode; 4] = [
    Mode {
        id: "read-only",
        name: "Read only",
        description: "Reads files; asks before it changes anything",
        sandbox: "read-only",
        sandbox_policy: "readOnly",
        approvals: "on-request",
    },
    Mode {
        id: "workspace-write",
        name: "Workspace",
        description: "Changes files in its directory; asks before anything else",
        sandbox: "workspace-write",
        sandbox_policy: "workspaceWrite",
        approvals: "on-request",
    },
    Mode {
        id: PLAN,
        name: "Plan",
        description: "Asks questions and writes a plan before any work",
        sandbox: "workspace-write",
        sandbox_policy: "workspaceWrite",
        approvals: "on-request",
    },
    Mode {
        id: "danger-full-access",
        name: "Full access",
        description: "Does everything without a sandbox, and never asks",
        sandbox: "danger-full-access",
        sandbox_policy: "dangerFullAccess",
        approvals: "never",
    },
];

fn find_mode(id: &str) -> Option<&'static Mode> {
    MODES.iter().find(|mode| mode.id == id)
}

/// Whether Codex has a mode with this id.
pub(super) fn is_mode(id: &str) -> bool {
    find_mode(id).is_some()
}

/// What is set, and what can be.
#[derive(Debug)]
pub(super) struct CodexSettings {
    policy: ModePolicy,
    pub(super) mode: &'static Mode,
    /// A client chose the mode after the thread was opened, so each turn has to name it.
    sends_mode: bool,
    /// The thread was in plan mode once, so each turn has to name its collaboration mode.
    sends_collaboration: bool,
    /// The sandbox that `thread/start` resulted in. Unlike a policy of ours, it has what the user's own configuration
    /// allows, such as more writable directories.
    sandbox: Option<Value>,
    /// The model that a client or the configuration chose.
    pub(super) model: Option<String>,
    /// The model that the thread was opened with.
    thread_model: Option<String>,
    effort: Option<String>,
    thread_effort: Option<String>,
    models: Vec<Model>,
    /// What was recorded last.
    recorded: Option<Config>,
}

impl CodexSettings {
    /// The settings. Their mode is another one if the configured one is unknown or not allowed.
    pub(super) fn new(config: &AdapterConfig) -> CodexSettings {
        let policy = config.mode_policy.clone();
        let wanted = config.mode.as_deref();
        let usable = |mode: &&Mode| policy.allows(mode.id);
        let chosen = wanted.and_then(find_mode).filter(usable);
        // If the table of agents allows none of these, the one that can do least.
        let default = || find_mode("workspace-write").filter(usable).or_else(|| MODES.iter().find(usable));
        let [least, ..] = &MODES;
        CodexSettings {
            mode: chosen.or_else(default).unwrap_or(least),
            policy,
            sends_mode: false,
            sends_collaboration: false,
            sandbox: None,
            model: config.model.clone(),
            thread_model: None,
            effort: None,
            thread_effort: None,
            models: Vec::new(),
            recorded: None,
        }
    }

    pub(super) fn handle_thread(&mut self, thread: &ThreadOpened, sandbox: Option<Value>) {
        let short = |text: &Option<String>| text.clone().filter(|text| text.len() <= MAX_NAME);
        self.thread_model = short(&thread.model);
        self.thread_effort = short(&thread.reasoning_effort);
        self.sandbox = sandbox.filter(|sandbox| sandbox.to_string().len() <= MAX_SHORT * 8);
        self.sends_collaboration = thread.collaboration_mode.as_ref().is_some_and(|mode| mode.mode == PLAN);
    }

    pub(super) fn handle_models(&mut self, list: ModelList) {
        let usable = |model: &Model| !model.hidden && model.id.len() <= MAX_NAME;
        self.models = list.data.into_iter().filter(usable).take(MAX_MODELS).collect();
        for model in &mut self.models {
            model.supported_reasoning_efforts.retain(|effort| effort.reasoning_effort.len() <= MAX_NAME);
            model.supported_reasoning_efforts.truncate(MAX_EFFORTS);
        }
        self.drop_unsupported_effort();
    }

    /// Changes settings. Returns what cannot be set, and why.
    pub(super) fn set(&mut self, settings: &Settings) -> Vec<String> {
        let mut refused = Vec::new();
        if let Some(id) = &settings.mode {
            match find_mode(id).filter(|mode| self.policy.allows(mode.id)) {
                Some(mode) => (self.mode, self.sends_mode) = (mode, true),
                None => refused.push(format!("the mode {id:?} cannot be chosen")),
            }
        }
        if let Some(model) = &settings.model {
            self.model = Some(model.clone());
            self.drop_unsupported_effort();
        }
        match &settings.option {
            Some(option) if option.id == "effort" && self.has_effort(&option.value) => {
                self.effort = Some(option.value.clone());
            }
            Some(option) if option.id == "effort" => {
                refused.push(format!("the model has no effort {:?}", option.value));
            }
            Some(option) => refused.push(format!("Codex has no option {:?}", option.id)),
            None => {}
        }
        refused
    }

    /// The model's own default is better than an effort that it does not have.
    fn drop_unsupported_effort(&mut self) {
        if self.effort.as_ref().is_some_and(|effort| !self.has_effort(effort)) {
            self.effort = None;
        }
    }

    /// The model of the next turn.
    fn current_model(&self) -> Option<&str> {
        self.model.as_deref().or(self.thread_model.as_deref())
    }

    fn listed_model(&self) -> Option<&Model> {
        let current = self.current_model()?;
        self.models.iter().find(|model| model.id == current)
    }

    /// The effort of the next turn, if it is not the model's default. The thread keeps the one that it was opened with, so
    /// for a model that does not have it, the default has to be named.
    fn current_effort(&self) -> Option<String> {
        let known = self.effort.as_ref().or(self.thread_effort.as_ref())?;
        if self.has_effort(known) {
            return Some(known.clone());
        }
        self.listed_model().and_then(|model| model.default_reasoning_effort.clone())
    }

    /// Of a model that Codex does not list, it is not known.
    fn has_effort(&self, effort: &str) -> bool {
        let is_same = |known: &Effort| known.reasoning_effort == effort;
        self.listed_model().is_none_or(|model| model.supported_reasoning_efforts.iter().any(is_same))
    }

    /// Adds to the parameters of `turn/start` what a client has chosen. Codex keeps it for later turns, but whether an
    /// earlier turn took it is not certain, so each turn gets it.
    pub(super) fn write_turn(&mut self, params: &mut Map<String, Value>) {
        let mut insert = |key: &str, value: Value| _ = params.insert(key.to_owned(), value);
        if self.sends_mode {
            let Mode { sandbox_policy, approvals, .. } = self.mode;
            let own = self.sandbox.clone().filter(|sandbox| sandbox["type"] == *sandbox_policy);
            insert("approvalPolicy", json!(approvals));
            insert("sandboxPolicy", own.unwrap_or_else(|| json!({"type": sandbox_policy})));
        }
        if let Some(model) = &self.model {
            insert("model", json!(model));
        }
        if let Some(effort) = self.current_effort() {
            insert("effort", json!(effort));
        }
        self.sends_collaboration |= self.mode.id == PLAN;
        if self.sends_collaboration {
            let mode = if self.mode.id == PLAN { PLAN } else { "default" };
            // These replace the model and the effort beside them.
            let mut settings = json!({"reasoning_effort": self.current_effort(), "developer_instructions": null});
            // If none is known, Codex refuses the turn, which is better than a turn without a plan.
            if let Some(model) = self.current_model() {
                settings["model"] = json!(model);
            }
            insert("collaborationMode", json!({"mode": mode, "settings": settings}));
        }
    }

    /// What to record, if it has changed.
    pub(super) fn changed(&mut self) -> Option<Config> {
        let mut config = self.config();
        config.bound();
        if self.recorded.as_ref() == Some(&config) {
            return None;
        }
        self.recorded = Some(config.clone());
        Some(config)
    }

    pub(super) fn config(&self) -> Config {
        let mode = |mode: &Mode| Choice {
            id: mode.id.to_owned(),
            name: mode.name.to_owned(),
            description: Some(mode.description.to_owned()),
        };
        let modes = MODES.iter().filter(|mode| self.policy.allows(mode.id)).map(mode).collect();
        let model = |model: &Model| Choice {
            id: model.id.clone(),
            name: model.display_name.clone().unwrap_or_else(|| model.id.clone()),
            description: model.description.clone(),
        };
        let mut models: Vec<Choice> = self.models.iter().map(model).collect();
        // With a provider of its own, Codex does not list the model that it uses.
        if let Some(current) = self.current_model().filter(|_| self.listed_model().is_none()) {
            models.insert(0, Choice::plain(current));
        }
        let efforts = self.listed_model().map(|model| ConfigOption {
            id: "effort".to_owned(),
            name: "Reasoning effort".to_owned(),
            choices: Choices {
                current: self.current_effort().or_else(|| model.default_reasoning_effort.clone()),
                available: model.supported_reasoning_efforts.iter().map(effort_choice).collect(),
            },
        });
        Config {
            modes: Some(Choices { current: Some(self.mode.id.to_owned()), available: modes }),
            models: Some(Choices { current: self.current_model().map(ToOwned::to_owned), available: models }),
            options: efforts.into_iter().filter(|option| !option.choices.available.is_empty()).collect(),
            ..Config::default()
        }
    }
}

fn effort_choice(effort: &Effort) -> Choice {
    let Effort { reasoning_effort, description } = effort.clone();
    Choice { id: reasoning_effort.clone(), name: reasoning_effort, description }
}

#[cfg(test)]
mod tests {
    use bowline_host::agents::Protocol;

    use super::*;

    /// A gateway refuses others before the program is started.
    #[test]
    fn r43_the_table_of_agents_has_the_same_modes() {
        assert_eq!(Protocol::Codex.modes().unwrap(), MODES.each_ref().map(|mode| mode.id));
    }
}
