//! What can be set in an agent: modes, models and other options; and the commands that it knows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::session::truncate_text;

/// Modes, models, values of an option, options or commands that are kept of each list; more are left out.
const MAX_ENTRIES: usize = 128;
/// The longest description in bytes; a longer one is cut.
const MAX_DESCRIPTION: usize = 120;
/// The longest id or name in bytes. An entry with a longer id is left out, because it could not be chosen.
const MAX_NAME: usize = 128;
/// The most bytes of a whole configuration, as JSON. Descriptions are left out first, then the last entries.
const MAX_CONFIG: usize = 32 << 10;

/// What can be set in an agent, and the commands that it knows.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "AgentConfig"))]
#[serde(default)]
pub struct Config {
    /// Null if the agent has no modes.
    pub modes: Option<Choices>,
    /// Null if the agent's model cannot be chosen.
    pub models: Option<Choices>,
    pub options: Vec<ConfigOption>,
    /// The commands that a prompt may begin with, such as `/compact`.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<SlashCommand>))]
    #[cfg_attr(test, ts(type = "SlashCommand[]"))]
    pub commands: Arc<Vec<SlashCommand>>,
    /// Something was left out or cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub truncated: bool,
}

/// A setting with its possible values.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Choices {
    /// The id of the current one, if it is known.
    pub current: Option<String>,
    pub available: Vec<Choice>,
}

/// A possible value of a setting.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Choice {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
}

/// A setting that is neither the mode nor the model.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConfigOption {
    pub id: String,
    pub name: String,
    #[serde(flatten)]
    pub choices: Choices,
}

/// A command of the agent, which a prompt begins with.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
    /// What its argument is, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
}

/// Settings that a client changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub option: Option<OptionValue>,
}

/// A new value of an option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OptionValue {
    pub id: String,
    pub value: String,
}

impl Choice {
    /// A value whose name is its id.
    pub fn plain(id: &str) -> Choice {
        Choice { id: id.to_owned(), name: id.to_owned(), description: None }
    }
}

impl Choices {
    /// Whether this is the id of a possible value.
    pub fn has(&self, id: &str) -> bool {
        self.available.iter().any(|choice| choice.id == id)
    }

    fn bound(&mut self) -> bool {
        let before = self.available.len();
        self.available.retain(|choice| choice.id.len() <= MAX_NAME);
        self.available.truncate(MAX_ENTRIES);
        let mut cut = self.available.len() < before;
        if self.current.as_ref().is_some_and(|current| current.len() > MAX_NAME) {
            self.current = None;
        }
        for choice in &mut self.available {
            cut |= truncate_text(&mut choice.name, MAX_NAME);
            cut |= bound_description(&mut choice.description);
        }
        cut
    }
}

impl Config {
    /// Cuts what is too large to be recorded, whatever the agent said, and says so.
    pub fn bound(&mut self) {
        let mut cut = false;
        for choices in [&mut self.modes, &mut self.models].into_iter().flatten() {
            cut |= choices.bound();
        }
        let options = self.options.len();
        self.options.retain(|option| option.id.len() <= MAX_NAME);
        self.options.truncate(MAX_ENTRIES);
        cut |= self.options.len() < options;
        for option in &mut self.options {
            cut |= truncate_text(&mut option.name, MAX_NAME) | option.choices.bound();
        }
        let commands = Arc::make_mut(&mut self.commands);
        let before = commands.len();
        commands.retain(|command| command.name.len() <= MAX_NAME);
        commands.truncate(MAX_ENTRIES);
        cut |= commands.len() < before;
        for command in commands {
            cut |= bound_description(&mut command.description) | bound_description(&mut command.hint);
        }
        self.truncated |= cut;
        self.shrink();
    }

    /// Leaves out details until the whole fits into [`MAX_CONFIG`].
    fn shrink(&mut self) {
        let is_large = |config: &Config| serde_json::to_vec(config).is_ok_and(|json| json.len() > MAX_CONFIG);
        if !is_large(self) {
            return;
        }
        self.truncated = true;
        let options = self.options.iter_mut().map(|option| &mut option.choices);
        for choices in [&mut self.modes, &mut self.models].into_iter().flatten().chain(options) {
            choices.available.iter_mut().for_each(|choice| choice.description = None);
        }
        for command in Arc::make_mut(&mut self.commands) {
            (command.description, command.hint) = (None, None);
        }
        while is_large(self) && !(self.commands.is_empty() && self.options.is_empty()) {
            let commands = Arc::make_mut(&mut self.commands);
            commands.truncate(commands.len() / 2);
            self.options.truncate(self.options.len() / 2);
        }
        // Two lists of at most 128 short names each are left, and long ones are cut.
        for choices in [&mut self.modes, &mut self.models].into_iter().flatten() {
            while serde_json::to_vec(&*choices).is_ok_and(|json| json.len() > MAX_CONFIG / 2) {
                choices.available.truncate(choices.available.len() / 2);
            }
        }
    }
}

fn bound_description(text: &mut Option<String>) -> bool {
    text.take_if(|text| text.is_empty());
    text.as_mut().is_some_and(|text| truncate_text(text, MAX_DESCRIPTION))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choices(len: usize, text: &str) -> Option<Choices> {
        let choice = |n| Choice { id: format!("{n}{text}"), name: text.into(), description: Some(text.into()) };
        Some(Choices { current: Some("0".into()), available: (0..len).map(choice).collect() })
    }

    #[test]
    fn r52_a_configuration_of_any_size_is_cut_to_one_that_fits() {
        for text in ["x", "\u{1}", "\u{e9}", ""] {
            for (len, repeat) in [(1, 1), (1, 1000), (1000, 1), (1000, 100), (200, 100), (128, 20)] {
                let text = text.repeat(repeat);
                let choices = choices(len, &text);
                let option = ConfigOption { id: "o".into(), name: text.clone(), choices: choices.clone().unwrap() };
                let command = SlashCommand { name: "c".into(), description: Some(text.clone()), hint: None };
                let mut config = Config {
                    modes: choices.clone(),
                    models: choices,
                    options: vec![option; len],
                    commands: Arc::new(vec![command; len]),
                    truncated: false,
                };
                config.bound();
                let written = serde_json::to_vec(&config).unwrap().len();
                assert!(written <= MAX_CONFIG + 1024, "{written} bytes of {len} times {repeat}");
            }
        }
    }

    #[test]
    fn a_small_configuration_is_kept_whole() {
        let mut config = Config { modes: choices(4, "mode"), ..Config::default() };
        let before = config.clone();
        config.bound();
        assert_eq!(config, before);
    }

    /// Clients outside of this repository rely on these shapes.
    #[test]
    fn a_configuration_has_the_shape_of_the_contract() {
        let choices = Choices { current: Some("plan".into()), available: vec![Choice::plain("plan")] };
        let config = Config {
            modes: Some(choices.clone()),
            options: vec![ConfigOption { id: "effort".into(), name: "Effort".into(), choices }],
            commands: Arc::new(vec![SlashCommand { name: "compact".into(), description: None, hint: None }]),
            ..Config::default()
        };
        let plan = json!([{"id": "plan", "name": "plan"}]);
        assert_eq!(
            json!(config),
            json!({"modes": {"current": "plan", "available": plan}, "models": null,
                "options": [{"id": "effort", "name": "Effort", "current": "plan", "available": plan}],
                "commands": [{"name": "compact"}]})
        );
    }
}
