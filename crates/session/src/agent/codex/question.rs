//! Questions of Codex, which only plan mode asks.

use bowline_proto::agent::approval::{Approval, ApprovalId, ApprovalKind, Detail, Question, QuestionOption};
use bowline_proto::agent::event::RunId;

use super::request_messages::{InputOption, InputQuestion, UserInput};
use crate::agent::details::Cut;
use crate::agent::shown_text;

/// The most questions of one request; more are left out.
const MAX_QUESTIONS: usize = 16;
/// The most answers that one question offers; more are left out.
const MAX_OPTIONS: usize = 32;
/// The most bytes of an id or a label. A question or an answer with a longer one is left out, because it could not be
/// chosen.
const MAX_LABEL: usize = 256;

pub(super) fn approval(run: Option<RunId>, request: &UserInput) -> Approval {
    let mut cut = Cut::default();
    let usable = |asked: &&InputQuestion| asked.id.len() <= MAX_LABEL;
    let asked: Vec<&InputQuestion> = request.questions.iter().filter(usable).take(MAX_QUESTIONS).collect();
    let title = match asked.as_slice() {
        [only] => cut.line(&only.question),
        several => cut.line(&several.iter().map(|asked| asked.header.as_str()).collect::<Vec<_>>().join(", ")),
    };
    let questions: Vec<Question> = asked.iter().map(|asked| question(asked, &mut cut)).collect();
    Approval {
        id: ApprovalId::default(),
        run,
        kind: ApprovalKind::Question,
        tool: "question".to_owned(),
        call: Some(cut.line(&request.item_id)),
        title,
        detail: Detail::default(),
        truncated: cut.was_cut || questions.len() < request.questions.len(),
        options: Vec::new(),
        questions: Some(questions),
        at: String::new(),
        expires_at: None,
    }
}

fn question(asked: &InputQuestion, cut: &mut Cut) -> Question {
    let offered = asked.options.as_deref().unwrap_or_default();
    let options: Vec<QuestionOption> =
        offered.iter().take(MAX_OPTIONS).filter_map(|option| choice(option, cut)).collect();
    cut.was_cut |= options.len() < offered.len();
    let text = cut.long(&asked.question);
    // Nothing keeps the answer secret: it is part of the conversation.
    let text = if asked.is_secret { format!("{text} (a secret; your answer is recorded)") } else { text };
    Question { id: asked.id.clone(), text, free: asked.is_other || options.is_empty(), multi: false, options }
}

/// An answer is chosen by its label, so one whose label would be changed is left out.
fn choice(option: &InputOption, cut: &mut Cut) -> Option<QuestionOption> {
    let (label, was_cut) = shown_text(&option.label, MAX_LABEL);
    let description = option.description.as_deref().map(|description| cut.line(description));
    (!was_cut && label == option.label).then_some(QuestionOption { label, description })
}
