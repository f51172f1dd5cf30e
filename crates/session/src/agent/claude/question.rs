//! Questions that Claude Code asks with the tool `AskUserQuestion`, and the answers to them.

use bowline_proto::agent::approval::{Answers, Question, QuestionOption};
use serde_json::{Map, Value};

use crate::agent::shown_text;

/// The most questions of one request; more are left out.
const MAX_QUESTIONS: usize = 16;
/// The most answers that one question offers; more are left out.
const MAX_OPTIONS: usize = 32;
/// The longest question in bytes that is its own id.
const MAX_ID: usize = 256;
/// The most bytes of a question or a description; a longer one is cut. An option with a longer label is left out, because
/// an answer is chosen by its label.
const MAX_TEXT: usize = 1 << 10;

/// The questions of one request.
#[derive(Debug)]
pub(super) struct Questions {
    questions: Vec<AgentQuestion>,
    /// Something was left out or cut.
    pub(super) left_out: bool,
}

/// A question, and the agent's own words in it.
#[derive(Debug)]
struct AgentQuestion {
    shown: Question,
    /// The key of the answer.
    text: String,
    /// The labels that were changed to be shown, with those that the agent gave.
    labels: Vec<(String, String)>,
}

impl Questions {
    /// Reads the tool's input. `None` if there is no question in it.
    pub(super) fn read(input: &Value) -> Option<Questions> {
        let listed = input["questions"].as_array()?;
        let mut questions: Vec<AgentQuestion> = Vec::new();
        let mut left_out = listed.len() > MAX_QUESTIONS;
        for item in listed.iter().take(MAX_QUESTIONS) {
            let Some(text) = item["question"].as_str() else {
                left_out = true;
                continue;
            };
            let is_used = |id: &str| questions.iter().any(|other| other.shown.id == id);
            let id = match text.len() <= MAX_ID && !is_used(text) {
                true => text.to_owned(),
                // An answer by the text of another question must not be taken for one to this.
                false => {
                    let is_free = |id: &String| !is_used(id) && !listed.iter().any(|other| other["question"] == **id);
                    let mut ids = (questions.len() + 1..).map(|number| format!("q{number}"));
                    ids.find(is_free).unwrap_or_default()
                }
            };
            questions.push(question(id, text, item, &mut left_out));
        }
        (!questions.is_empty()).then_some(Questions { questions, left_out })
    }

    pub(super) fn shown(&self) -> Vec<Question> {
        self.questions.iter().map(|question| question.shown.clone()).collect()
    }

    /// The answers as the tool wants them: by the text of the question, several in one text.
    pub(super) fn answers(&self, answers: &Answers) -> Value {
        let answered = self.questions.iter().filter_map(|question| {
            // Otherwise the model would hear that the user answered with nothing.
            let given = answers.get(&question.shown.id).filter(|given| !given.is_empty())?;
            let own = |label: &String| {
                let labels = question.labels.iter().find(|(shown, _)| shown == label);
                labels.map_or_else(|| label.clone(), |(_, own)| own.clone())
            };
            let joined = given.iter().map(own).collect::<Vec<_>>().join(", ");
            Some((question.text.clone(), Value::String(joined)))
        });
        Value::Object(answered.collect::<Map<_, _>>())
    }
}

fn question(id: String, text: &str, item: &Value, left_out: &mut bool) -> AgentQuestion {
    let listed = item["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    *left_out |= listed.len() > MAX_OPTIONS;
    let mut labels = Vec::new();
    let mut options = Vec::new();
    for option in listed.iter().take(MAX_OPTIONS) {
        let label = option["label"].as_str().unwrap_or_default();
        let (shown, was_cut) = shown_text(label, MAX_TEXT);
        if was_cut || shown.is_empty() {
            *left_out = true;
            continue;
        }
        if shown != label {
            labels.push((shown.clone(), label.to_owned()));
        }
        let description = option["description"].as_str().map(|text| cut(text, left_out));
        options.push(QuestionOption { label: shown, description });
    }
    let multi = item["multiSelect"].as_bool().unwrap_or(false);
    let shown = Question { id, text: cut(text, left_out), options, multi, free: true };
    AgentQuestion { shown, text: text.to_owned(), labels }
}

fn cut(text: &str, was_cut: &mut bool) -> String {
    let (shown, cut) = shown_text(text, MAX_TEXT);
    *was_cut |= cut;
    shown
}
