//! The requests that only Cursor sends, as its documentation describes them. It waits for ever for their answers.

use bowline_proto::agent::approval::{
    Answers, Approval, ApprovalId, ApprovalKind, ApprovalOption, Detail, OptionKind, Question, QuestionOption,
};
use bowline_proto::agent::event::RunId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::bounded_list::BoundedList;
use crate::agent::details::Cut;
use crate::agent::shown_text;

/// The most questions of one request, and answers of one question; more are left out.
const MAX_QUESTIONS: usize = 16;
const MAX_ANSWERS: usize = 32;
/// The longest id or label in bytes. What has a longer one is left out: it could not be chosen.
const MAX_NAME: usize = 256;

/// The parameters of `cursor/ask_question`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct AskQuestion {
    tool_call_id: Option<String>,
    title: Option<String>,
    questions: BoundedList<AskedQuestion, MAX_QUESTIONS>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AskedQuestion {
    id: String,
    prompt: String,
    options: Vec<Offered>,
    allow_multiple: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Offered {
    id: String,
    label: String,
}

/// The parameters of `cursor/create_plan`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CreatePlan {
    tool_call_id: Option<String>,
    name: Option<String>,
    overview: Option<String>,
    plan: Option<String>,
}

/// The parameters of `cursor/update_todos`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UpdateTodos {
    pub(super) todos: Value,
}

/// The answers that a question offers, by their labels.
#[derive(Debug)]
pub(super) struct OfferedAnswers(Vec<(String, Vec<Offered>)>);

impl AskQuestion {
    /// The approval, and what is needed to answer it.
    pub(super) fn approval(self, run: Option<RunId>) -> (Approval, OfferedAnswers) {
        let AskQuestion { tool_call_id, title, questions } = self;
        let (mut cut, mut offered) = (Cut::default(), Vec::new());
        let mut question = |asked: AskedQuestion| {
            let AskedQuestion { id, prompt, mut options, allow_multiple } = asked;
            // An answer is chosen by its label, so one whose label would be cut or changed is left out.
            let is_shown = |label: &String| shown_text(label, MAX_NAME) == (label.clone(), false);
            options.retain(|option| option.id.len() <= MAX_NAME && is_shown(&option.label));
            options.truncate(MAX_ANSWERS);
            let shown = |option: &Offered| QuestionOption { label: option.label.clone(), description: None };
            let question = Question {
                id: id.clone(),
                text: cut.line(&prompt),
                options: options.iter().map(shown).collect(),
                multi: allow_multiple,
                free: false,
            };
            offered.push((id, options));
            question
        };
        let questions = questions.into_iter().filter(|asked| asked.id.len() <= MAX_NAME).map(&mut question).collect();
        let approval = Approval {
            kind: ApprovalKind::Question,
            tool: "question".to_owned(),
            title: cut.line(title.as_deref().unwrap_or("The agent has a question")),
            questions: Some(questions),
            ..empty(run, tool_call_id.map(|call| cut.line(&call)))
        };
        (Approval { truncated: cut.was_cut, ..approval }, OfferedAnswers(offered))
    }
}

impl CreatePlan {
    pub(super) fn approval(self, run: Option<RunId>) -> Approval {
        let CreatePlan { tool_call_id, name, overview, plan } = self;
        let mut cut = Cut::default();
        let option = |id: &str, kind, label: &str| ApprovalOption {
            id: id.to_owned(),
            kind,
            label: label.to_owned(),
            effect: None,
        };
        let text = plan.or(overview).map(|text| cut.long(&text));
        let approval = Approval {
            kind: ApprovalKind::Plan,
            tool: "plan".to_owned(),
            title: cut.line(name.as_deref().unwrap_or("A plan")),
            detail: Detail { text, ..Detail::default() },
            options: vec![
                option("accepted", OptionKind::AllowOnce, "Accept the plan"),
                option("rejected", OptionKind::RejectOnce, "Reject the plan"),
            ],
            ..empty(run, tool_call_id.map(|call| cut.line(&call)))
        };
        Approval { truncated: cut.was_cut, ..approval }
    }
}

impl OfferedAnswers {
    /// The answers as the agent wants them: by the ids of what it offered.
    pub(super) fn result(&self, answers: &Answers) -> Value {
        let answer = |(id, labels): (&String, &Vec<String>)| {
            let (_, offered) = self.0.iter().find(|(question, _)| question == id)?;
            let chosen = offered.iter().filter(|option| labels.contains(&option.label));
            let ids: Vec<&str> = chosen.map(|option| option.id.as_str()).collect();
            Some(json!({"questionId": id, "selectedOptionIds": ids}))
        };
        let answers: Vec<Value> = answers.iter().filter_map(answer).collect();
        json!({"outcome": {"outcome": "answered", "answers": answers}})
    }
}

/// An outcome without anything else.
pub(super) fn outcome(outcome: &str) -> Value {
    json!({"outcome": {"outcome": outcome}})
}

fn empty(run: Option<RunId>, call: Option<String>) -> Approval {
    Approval {
        id: ApprovalId::default(),
        run,
        kind: ApprovalKind::Unknown,
        tool: String::new(),
        call,
        title: String::new(),
        detail: Detail::default(),
        truncated: false,
        options: Vec::new(),
        questions: None,
        at: String::new(),
        expires_at: None,
    }
}
