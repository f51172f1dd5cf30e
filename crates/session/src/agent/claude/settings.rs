//! What can be set in Claude Code: modes, models and effort; and the commands that it knows.

use std::sync::Arc;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::config::{Choice, Choices, Config, ConfigOption, SlashCommand};

use super::messages::{Initialized, Model};

/// The modes of Claude Code: id, name and description.
const MODES: [(&str, &str, &str); 6] = [
    ("default", "Default", "Requests approval before it changes anything"),
    ("acceptEdits", "Accept edits", "Edits files of the project without approval"),
    ("plan", "Plan", "Reads and plans, and changes nothing"),
    ("auto", "Auto", "A model decides what needs approval"),
    ("dontAsk", "Don't ask", "Refuses what is not allowed already"),
    (BYPASS, "Bypass permissions", "Does everything without approval"),
];
const BYPASS: &str = "bypassPermissions";
/// The model that Claude Code uses unless another one is set.
const DEFAULT_MODEL: &str = "default";
/// The option for how much the model thinks.
pub(super) const EFFORT: &str = "effort";
/// The longest name in bytes of a mode or a model that the agent reports; a longer one is not known.
const MAX_NAME: usize = 128;

/// What is set, and what can be.
#[derive(Debug)]
pub(super) struct Known {
    policy: ModePolicy,
    /// The program was started so that it can be switched to [`BYPASS`].
    can_bypass: bool,
    mode: Option<String>,
    model: String,
    effort: Option<String>,
    models: Vec<Model>,
    commands: Arc<Vec<SlashCommand>>,
    /// The last configuration that was recorded.
    recorded: Option<Config>,
}

impl Known {
    pub(super) fn new(policy: ModePolicy, can_bypass: bool) -> Known {
        let model = DEFAULT_MODEL.to_owned();
        let (models, commands) = (Vec::new(), Arc::default());
        Known { policy, can_bypass, mode: None, model, effort: None, models, commands, recorded: None }
    }

    pub(super) fn handle_initialized(&mut self, initialized: Initialized) {
        let Initialized { commands, models, current_permission_mode } = initialized;
        self.models = models.0;
        self.mode = current_permission_mode.filter(|mode| mode.len() <= MAX_NAME);
        let command = |command: super::messages::Command| SlashCommand {
            name: command.name,
            description: command.description,
            hint: command.argument_hint,
        };
        self.commands = Arc::new(commands.0.into_iter().map(command).collect());
    }

    /// The commands that every turn lists again, without descriptions.
    pub(super) fn handle_commands(&mut self, names: Vec<String>) {
        if self.commands.is_empty() && !names.is_empty() {
            let command = |name| SlashCommand { name, description: None, hint: None };
            self.commands = Arc::new(names.into_iter().map(command).collect());
        }
    }

    pub(super) fn handle_mode(&mut self, mode: &str) {
        self.mode = Some(mode.to_owned()).filter(|mode| mode.len() <= MAX_NAME);
    }

    /// The model was set by this name.
    pub(super) fn handle_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// A turn uses this model. If that is not what was set, a command such as `/model` has changed it.
    pub(super) fn handle_used_model(&mut self, used: &str) {
        let set = self.find(&self.model).and_then(|model| model.resolved_model.as_deref()).unwrap_or(&self.model);
        if set == used || used.len() > MAX_NAME {
            return;
        }
        let named = self.models.iter().filter(|model| model.value != DEFAULT_MODEL);
        let named = named.into_iter().find(|model| model.resolved_model.as_deref() == Some(used));
        self.model = named.map_or(used, |model| model.value.as_str()).to_owned();
    }

    pub(super) fn handle_effort(&mut self, effort: &str) {
        self.effort = Some(effort.to_owned());
    }

    pub(super) fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Whether a client may choose this mode.
    pub(super) fn allows_mode(&self, mode: &str) -> bool {
        self.policy.allows(mode) && (mode != BYPASS || self.can_bypass)
    }

    /// The first mode that a client may choose, preferably the one that requests most approvals.
    pub(super) fn first_allowed_mode(&self) -> Option<&'static str> {
        MODES.into_iter().map(|(id, ..)| id).find(|id| self.allows_mode(id))
    }

    /// The values that the effort of the current model can have.
    pub(super) fn effort_levels(&self) -> &[String] {
        self.find(&self.model).map(|model| model.supported_effort_levels.0.as_slice()).unwrap_or_default()
    }

    /// The configuration, if it differs from the one that was recorded last. `is_forced`: in any case.
    pub(super) fn take_config(&mut self, is_forced: bool) -> Option<Config> {
        let mut config = self.config();
        config.bound();
        if !is_forced && self.recorded.as_ref() == Some(&config) {
            return None;
        }
        self.recorded = Some(config.clone());
        Some(config)
    }

    fn find(&self, id: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.value == id)
    }

    fn config(&self) -> Config {
        let mode = |(id, name, description): (&str, &str, &str)| Choice {
            id: id.to_owned(),
            name: name.to_owned(),
            description: Some(description.to_owned()),
        };
        let modes = MODES.into_iter().filter(|(id, ..)| self.allows_mode(id)).map(mode).collect();
        let model = |model: &Model| Choice {
            id: model.value.clone(),
            name: model.display_name.clone().unwrap_or_else(|| model.value.clone()),
            description: model.description.clone(),
        };
        let models = self.models.iter().map(model).collect();
        let levels: Vec<Choice> = self.effort_levels().iter().map(|level| Choice::plain(level)).collect();
        let effort = (!levels.is_empty()).then(|| ConfigOption {
            id: EFFORT.to_owned(),
            name: "Effort".to_owned(),
            choices: Choices { current: self.effort.clone(), available: levels },
        });
        Config {
            modes: Some(Choices { current: self.mode.clone(), available: modes }),
            models: Some(Choices { current: Some(self.model.clone()), available: models }),
            options: effort.into_iter().collect(),
            commands: Arc::clone(&self.commands),
            truncated: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use bowline_host::agents::Protocol;

    use super::*;

    /// A gateway refuses others before the program is started.
    #[test]
    fn r43_the_table_of_agents_has_the_same_modes() {
        assert_eq!(Protocol::Claude.modes().unwrap(), MODES.map(|(id, ..)| id));
    }
}
