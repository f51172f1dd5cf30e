//! What can be set in an ACP agent: its modes, models and options, however it announces them.

use std::sync::Arc;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::config::{Choice, Choices, Config, ConfigOption, SlashCommand};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::bounded_list::BoundedList;

/// The most entries of a list that are read; more are left out.
const MAX_ENTRIES: usize = 256;

type List<T> = BoundedList<T, MAX_ENTRIES>;

/// The part of the answer to `session/new` or `session/load` that says what can be set.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Announced {
    modes: Option<Modes>,
    models: Option<Models>,
    config_options: Option<List<AnnouncedOption>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Modes {
    current_mode_id: Option<String>,
    available_modes: List<Mode>,
}

#[derive(Debug, Deserialize)]
struct Mode {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Models {
    current_model_id: Option<String>,
    available_models: List<Model>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    model_id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

/// An option, or a group of values of one.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnnouncedOption {
    id: String,
    name: String,
    category: Option<String>,
    current_value: Value,
    options: List<AnnouncedValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AnnouncedValue {
    value: Option<String>,
    name: Option<String>,
    description: Option<String>,
    /// Set for a group of values.
    options: List<GroupedValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupedValue {
    value: Option<String>,
    name: Option<String>,
    description: Option<String>,
}

/// The answer to `session/set_config_option`, and the content of `config_option_update`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnnouncedOptions {
    pub(super) config_options: Option<List<AnnouncedOption>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CurrentMode {
    current_mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AvailableCommands {
    #[serde(default)]
    available_commands: List<AnnouncedCommand>,
}

#[derive(Debug, Deserialize)]
struct AnnouncedCommand {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input: Option<CommandInput>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CommandInput {
    hint: Option<String>,
}

/// How a mode or a model is set.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Setter {
    /// By a method of its own.
    Method,
    /// As the option with this id.
    Option(String),
}

/// What can be set in the agent of one session.
#[derive(Debug, Default)]
pub(super) struct Settings {
    modes: Option<(Setter, Choices)>,
    models: Option<(Setter, Choices)>,
    options: Vec<ConfigOption>,
    /// Options with only two values, which are set with a truth value.
    booleans: Vec<String>,
    commands: Arc<Vec<SlashCommand>>,
    /// What was recorded last.
    recorded: Option<Config>,
}

impl Settings {
    pub(super) fn handle_announced(&mut self, announced: Announced) {
        let Announced { modes, models, config_options } = announced;
        // An agent without modes may announce an empty list.
        let known = |choices: Choices| {
            let is_empty = choices.current.is_none() && choices.available.is_empty();
            (!is_empty).then_some((Setter::Method, choices))
        };
        if let Some(Modes { current_mode_id: current, available_modes }) = modes {
            let choice = |Mode { id, name, description }| choice(id, name, description);
            self.modes = known(Choices { current, available: available_modes.into_iter().map(choice).collect() });
        }
        if let Some(Models { current_model_id: current, available_models }) = models {
            let choice = |Model { model_id, name, description }| choice(model_id, name, description);
            self.models = known(Choices { current, available: available_models.into_iter().map(choice).collect() });
        }
        self.handle_options(config_options);
    }

    /// The agent said which options it has. This may be fewer than before.
    pub(super) fn handle_options(&mut self, options: Option<List<AnnouncedOption>>) {
        let Some(options) = options else { return };
        self.options.clear();
        self.booleans.clear();
        for AnnouncedOption { id, name, category, current_value, options } in options.into_iter() {
            if id.is_empty() {
                continue;
            }
            let is_boolean = current_value.is_boolean();
            let current = match current_value {
                Value::String(value) => Some(value),
                Value::Bool(value) => Some(value.to_string()),
                _ => None,
            };
            let mut available: Vec<Choice> = options.into_iter().flat_map(choices).collect();
            if is_boolean {
                available = ["true", "false"].map(Choice::plain).into();
                self.booleans.push(id.clone());
            }
            let choices = Choices { current, available };
            // The method that is only for modes, or only for models, is understood by more agents.
            let setter = |known: &Option<(Setter, Choices)>| match known {
                Some((Setter::Method, _)) => Setter::Method,
                Some((Setter::Option(_), _)) | None => Setter::Option(id.clone()),
            };
            match category.as_deref() {
                Some("mode") => self.modes = Some((setter(&self.modes), choices)),
                Some("model") => self.models = Some((Setter::Option(id.clone()), choices)),
                _ => self.options.push(ConfigOption { id, name, choices }),
            }
        }
    }

    pub(super) fn handle_mode(&mut self, CurrentMode { current_mode_id }: CurrentMode) {
        self.modes.get_or_insert_with(|| (Setter::Method, Choices::default())).1.current = Some(current_mode_id);
    }

    pub(super) fn handle_commands(&mut self, AvailableCommands { available_commands }: AvailableCommands) {
        let command = |AnnouncedCommand { name, description, input }| {
            let hint = input.and_then(|input: CommandInput| input.hint);
            SlashCommand { name, description, hint }
        };
        self.commands = Arc::new(available_commands.into_iter().map(command).collect());
    }

    /// The agent has accepted a mode or a model.
    pub(super) fn handle_set(&mut self, setting: &Setting) {
        match setting {
            Setting::Mode(mode) => self.handle_mode(CurrentMode { current_mode_id: mode.clone() }),
            Setting::Model(model) => {
                let models = self.models.get_or_insert_with(|| (Setter::Method, Choices::default()));
                models.1.current = Some(model.clone());
            }
            Setting::Option { id, value } => {
                let option = self.options.iter_mut().find(|option| option.id == *id);
                option.into_iter().for_each(|option| option.choices.current = Some(value.clone()));
            }
        }
    }

    /// Whether the agent has a mode with this id.
    pub(super) fn has_mode(&self, id: &str) -> bool {
        self.modes.as_ref().is_some_and(|(_, choices)| choices.available.iter().any(|mode| mode.id == id))
    }

    /// Whether this is set already.
    pub(super) fn is_current(&self, setting: &Setting) -> bool {
        let is = |known: &Option<(Setter, Choices)>, value: &String| {
            known.as_ref().is_some_and(|(_, choices)| choices.current.as_ref() == Some(value))
        };
        match setting {
            Setting::Mode(mode) => is(&self.modes, mode),
            Setting::Model(model) => is(&self.models, model),
            Setting::Option { .. } => false,
        }
    }

    /// The method and the parameters that set this.
    pub(super) fn request(&self, session: Option<&str>, setting: &Setting) -> (&'static str, Value) {
        let option = |id: &str, value: &str| {
            let value =
                if self.booleans.iter().any(|known| known == id) { json!(value == "true") } else { json!(value) };
            ("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value}))
        };
        match setting {
            Setting::Mode(mode) => match &self.modes {
                Some((Setter::Option(id), _)) => option(id, mode),
                _ => ("session/set_mode", json!({"sessionId": session, "modeId": mode})),
            },
            Setting::Model(model) => match &self.models {
                Some((Setter::Option(id), _)) => option(id, model),
                _ => ("session/set_model", json!({"sessionId": session, "modelId": model})),
            },
            Setting::Option { id, value } => option(id, value),
        }
    }

    /// A request that changes nothing: it sets the current mode. An agent without modes gets one that it does not know.
    pub(super) fn probe(&self, session: Option<&str>) -> (&'static str, Value) {
        match self.modes.as_ref().and_then(|(_, choices)| choices.current.clone()) {
            Some(mode) => self.request(session, &Setting::Mode(mode)),
            None => ("_bowline/probe", json!({"sessionId": session})),
        }
    }

    /// What is to be recorded, if it changed or has to be `repeated`. Modes that a client may not choose are left out.
    pub(super) fn take_config(&mut self, policy: &ModePolicy, repeated: bool) -> Option<Config> {
        let mut config = Config {
            modes: self.modes.as_ref().map(|(_, choices)| choices.clone()),
            models: self.models.as_ref().map(|(_, choices)| choices.clone()),
            options: self.options.clone(),
            commands: Arc::clone(&self.commands),
            truncated: false,
        };
        if let Some(modes) = &mut config.modes {
            modes.available.retain(|mode| policy.allows(&mode.id));
        }
        for option in &mut config.options {
            option.choices.available.retain(|value| policy.allows_value(&value.id));
        }
        config.bound();
        if config == Config::default() || (self.recorded.as_ref() == Some(&config) && !repeated) {
            return None;
        }
        self.recorded = Some(config.clone());
        Some(config)
    }
}

/// Something to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Mode(String),
    Model(String),
    Option { id: String, value: String },
}

fn choice(id: String, name: Option<String>, description: Option<String>) -> Choice {
    Choice { name: name.unwrap_or_else(|| id.clone()), id, description }
}

/// The values of an option: one, or those of a group.
fn choices(announced: AnnouncedValue) -> Vec<Choice> {
    let AnnouncedValue { value, name, description, options } = announced;
    let of_group = options.into_iter().map(|grouped| (grouped.value, grouped.name, grouped.description));
    let all = std::iter::once((value, name, description)).chain(of_group);
    all.filter_map(|(value, name, description)| Some(choice(value?, name, description))).collect()
}
