//! Questions of ACP agents: a form, described by a small JSON schema, and the answers to it.

use bowline_proto::agent::approval::{Answers, Question, QuestionOption};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::agent::shown_text;

/// The most questions of one form; more are left out.
const MAX_QUESTIONS: usize = 16;
/// The most answers that one question offers; more are left out.
const MAX_OPTIONS: usize = 32;
/// The most bytes of a text of the form; a longer one is cut. A question with a longer id is left out.
const MAX_TEXT: usize = 256;

/// A property that is longer than this many bytes may have lost something.
const MAX_FORM: usize = 4 << 10;

/// The parameters of `elicitation/create`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elicitation {
    #[serde(default)]
    pub(super) mode: Option<String>,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
    #[serde(default)]
    pub(super) requested_schema: Schema,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Schema {
    #[serde(default)]
    properties: Map<String, Value>,
}

impl Schema {
    /// Whether there is anything to ask.
    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// The questions, and whether something of the form may have been left out.
    pub(super) fn questions(&self) -> (Vec<Question>, bool) {
        let usable = self.properties.iter().filter(|(id, _)| id.len() <= MAX_TEXT).take(MAX_QUESTIONS);
        let questions: Vec<Question> = usable.map(|(id, property)| question(id, property)).collect();
        let is_long = |property: &Value| property.to_string().len() > MAX_FORM;
        let left_out = questions.len() < self.properties.len() || self.properties.values().any(is_long);
        (questions, left_out)
    }

    /// The content of the form: each answer in the type that its property has.
    pub(super) fn content(&self, answers: &Answers) -> Map<String, Value> {
        let typed = |(id, answer): (&String, &Vec<String>)| {
            let property = self.properties.get(id)?;
            let first = answer.first()?;
            let value = match property["type"].as_str() {
                Some("array") => answer.iter().map(|label| constant(&property["items"], label)).collect(),
                Some("boolean") => Value::Bool(matches!(first.as_str(), "true" | "yes" | "Yes" | "True")),
                Some("integer" | "number") => {
                    serde_json::from_str(first).ok().filter(Value::is_number).unwrap_or_else(|| first.as_str().into())
                }
                _ => constant(property, first),
            };
            Some((id.clone(), value))
        };
        answers.iter().filter_map(typed).collect()
    }
}

fn question(id: &str, property: &Value) -> Question {
    let is_array = property["type"] == "array";
    let choices = if is_array { &property["items"] } else { property };
    let mut options: Vec<QuestionOption> =
        offered(choices).map(|(label, _, description)| QuestionOption { label, description }).collect();
    if property["type"] == "boolean" {
        options = ["true", "false"].map(|label| QuestionOption { label: label.to_owned(), description: None }).into();
    }
    let text = |key: &str| shown(&property[key]);
    Question {
        id: id.to_owned(),
        text: text("title").or_else(|| text("description")).unwrap_or_else(|| id.to_owned()),
        free: options.is_empty(),
        multi: is_array,
        options,
    }
}

/// A text as it is shown.
fn shown(value: &Value) -> Option<String> {
    value.as_str().map(|text| shown_text(text, MAX_TEXT).0)
}

/// What a property offers: label, value and description of each.
fn offered(property: &Value) -> impl Iterator<Item = (String, Value, Option<String>)> {
    let listed =
        property["oneOf"].as_array().or_else(|| property["anyOf"].as_array()).or_else(|| property["enum"].as_array());
    let items = listed.map(Vec::as_slice).unwrap_or_default().iter().take(MAX_OPTIONS);
    items.filter_map(|item| {
        let value = if item.is_object() { item["const"].clone() } else { item.clone() };
        let label = if item["title"].is_string() { &item["title"] } else { &value };
        // An answer is chosen by its label, so one whose label would be cut is left out.
        let label = label.as_str().map(|label| shown_text(label, MAX_TEXT)).filter(|(_, was_cut)| !was_cut)?.0;
        Some((label, value, shown(&item["description"])))
    })
}

/// The value that a label stands for; a text that is not offered stands for itself.
fn constant(property: &Value, label: &str) -> Value {
    offered(property).find(|(offered, ..)| offered == label).map_or_else(|| label.into(), |(_, value, _)| value)
}
