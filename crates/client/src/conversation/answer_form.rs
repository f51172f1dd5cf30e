//! The answer to one approval, while the user chooses it: the options of a permission or a plan, or one question after
//! another.
//!
//! Nothing is chosen at first, and a choice counts only with Enter, so that no key that was meant for something else
//! answers an approval.

use std::collections::BTreeSet;

use bowline_proto::agent::approval::{Answers, Approval, ApprovalKind, OptionKind, Question};
use bowline_proto::agent::command::AgentCommand;

use super::editor::{Editor, EditorRows};
use super::key_reader::Key;
use super::text::{Indent, Paint, Style, Text};
use crate::escape::one_line;

const WAS_CUT: &str = "! What it asks was cut, because it is too long. Enter again allows it anyway.";
const HOW_TO_CHOOSE: &str = "Choose by number or with the arrow keys, then press Enter; Esc: later";

/// An answer in the making.
#[derive(Debug)]
pub(crate) struct AnswerForm {
    approval: Approval,
    /// The question that is being answered; always 0 for a permission or a plan.
    question: usize,
    choices: Vec<Choice>,
    selected: Option<usize>,
    /// Chosen answers of a question that takes several.
    marked: BTreeSet<usize>,
    /// The reason of a denial, or the user's own answer.
    typed: Editor,
    answers: Answers,
    /// The user wants to allow what is not shown in full: the form has a warning now.
    warns: bool,
}

/// A line that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// An option of a permission or a plan.
    Allow {
        option: String,
        label: String,
        effect: Option<String>,
    },
    /// An answer that a question offers.
    Answer {
        label: String,
        description: Option<String>,
    },
    Deny {
        label: String,
    },
}

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormOutcome {
    /// It belongs to the form.
    Pending,
    /// The approval is answered with this command.
    Answered(AgentCommand),
    /// The user wants to answer later.
    SetAside,
    /// It makes no sense here; the text says what does.
    Refused(&'static str),
    /// The form has a warning now, which the user has to read before another key counts.
    Warned,
}

impl AnswerForm {
    pub(crate) fn new(approval: Approval) -> AnswerForm {
        let mut form = AnswerForm {
            approval,
            question: 0,
            choices: Vec::new(),
            selected: None,
            marked: BTreeSet::new(),
            typed: Editor::default(),
            answers: Answers::new(),
            warns: false,
        };
        form.choices = form.choices_of_page();
        form
    }

    pub(crate) fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The reason of a denial, or the user's own answer, as far as it is typed.
    pub(crate) fn typed(&self) -> &str {
        self.typed.text()
    }

    /// The questions, for a question; none for other kinds, also if they have some.
    fn questions(&self) -> &[Question] {
        match self.approval.kind {
            ApprovalKind::Question => self.approval.questions.as_deref().unwrap_or_default(),
            ApprovalKind::Permission | ApprovalKind::Plan | ApprovalKind::Unknown => &[],
        }
    }

    fn current_question(&self) -> Option<&Question> {
        self.questions().get(self.question)
    }

    fn choices_of_page(&self) -> Vec<Choice> {
        if let Some(question) = self.current_question() {
            let answers = question
                .options
                .iter()
                .map(|option| Choice::Answer { label: option.label.clone(), description: option.description.clone() });
            return answers.chain([Choice::Deny { label: "Decline to answer".to_owned() }]).collect();
        }
        // An approval of an unknown kind can only be denied.
        let can_allow = matches!(self.approval.kind, ApprovalKind::Permission | ApprovalKind::Plan);
        let allowing = self
            .approval
            .options
            .iter()
            .filter(|option| can_allow && matches!(option.kind, OptionKind::AllowOnce | OptionKind::AllowAlways));
        let allowing = allowing.map(|option| Choice::Allow {
            option: option.id.clone(),
            label: option.label.clone(),
            effect: option.effect.clone(),
        });
        let rejecting = self.approval.options.iter().find(|option| option.kind == OptionKind::RejectOnce);
        let label = rejecting.map_or_else(|| "Deny".to_owned(), |option| option.label.clone());
        allowing.chain([Choice::Deny { label }]).collect()
    }

    /// Whether letters are typed now, as a reason or as an answer.
    pub(crate) fn takes_text(&self) -> bool {
        match self.current_question() {
            Some(question) => question.free && !self.is_denying(),
            None => self.is_denying(),
        }
    }

    fn selected_choice(&self) -> Option<&Choice> {
        self.choices.get(self.selected?)
    }

    fn is_denying(&self) -> bool {
        matches!(self.selected_choice(), Some(Choice::Deny { .. }))
    }

    fn is_allowing(&self) -> bool {
        matches!(self.selected_choice(), Some(Choice::Allow { .. }))
    }

    pub(crate) fn handle_key(&mut self, key: &Key) -> FormOutcome {
        match key {
            Key::Escape => return FormOutcome::SetAside,
            Key::Enter => return self.confirm(),
            Key::Up => self.select_next(-1),
            Key::Down | Key::Tab => self.select_next(1),
            Key::Char(c @ '1'..='9') if !self.takes_text() => {
                let at = (*c as usize) - ('1' as usize);
                if at >= self.choices.len() {
                    self.selected = None;
                    return FormOutcome::Refused("There is no such choice");
                }
                self.select(at);
            }
            Key::Char(' ') if self.typed.is_empty() && self.selected.is_some() && self.takes_several() => {
                self.mark_selected();
            }
            key if self.takes_text() => match self.typed.handle_key(key) {
                Ok(()) => {}
                Err(_) => return FormOutcome::Refused("That text is too long"),
            },
            // It was meant for something else, and so may be what follows: Enter must not confirm anything now.
            _ => {
                self.selected = None;
                return FormOutcome::Refused(HOW_TO_CHOOSE);
            }
        }
        FormOutcome::Pending
    }

    fn takes_several(&self) -> bool {
        self.current_question().is_some_and(|question| question.multi)
    }

    fn select(&mut self, at: usize) {
        self.selected = Some(at);
        if self.takes_several() {
            self.mark_selected();
        }
    }

    /// Marks the selected answer, or takes the mark away.
    fn mark_selected(&mut self) {
        let Some(at) = self.selected.filter(|_| !self.is_denying()) else { return };
        if !self.marked.remove(&at) {
            self.marked.insert(at);
        }
    }

    fn select_next(&mut self, by: isize) {
        let count = self.choices.len();
        let next = match self.selected {
            Some(at) => at.saturating_add_signed(by).min(count.saturating_sub(1)),
            None if by < 0 => count.saturating_sub(1),
            None => 0,
        };
        self.selected = Some(next).filter(|at| *at < count);
    }

    fn confirm(&mut self) -> FormOutcome {
        let approval = self.approval.id;
        match self.selected_choice().cloned() {
            Some(Choice::Deny { .. }) => {
                // Only the text of this page: an own answer that was typed before is not a reason.
                let reason = self.current_question().is_none().then(|| self.typed.take());
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                FormOutcome::Answered(AgentCommand::Deny { approval, option: None, reason })
            }
            Some(Choice::Allow { .. }) if self.approval.truncated && !self.warns => {
                self.warns = true;
                FormOutcome::Warned
            }
            Some(Choice::Allow { option, .. }) => {
                FormOutcome::Answered(AgentCommand::Approve { approval, option: Some(option) })
            }
            Some(Choice::Answer { .. }) | None if self.current_question().is_some() => self.confirm_question(),
            Some(Choice::Answer { .. }) | None => FormOutcome::Refused(HOW_TO_CHOOSE),
        }
    }

    fn confirm_question(&mut self) -> FormOutcome {
        let Some(question) = self.current_question() else { return FormOutcome::Pending };
        let (id, multi, count) = (question.id.clone(), question.multi, self.questions().len());
        let chosen: Vec<usize> = match multi {
            true => self.marked.iter().copied().collect(),
            false => self.selected.into_iter().collect(),
        };
        let labels = chosen.into_iter().filter_map(|at| match self.choices.get(at) {
            Some(Choice::Answer { label, .. }) => Some(label.clone()),
            _ => None,
        });
        let typed = Some(self.typed.take()).filter(|text| !text.trim().is_empty());
        let answer: Vec<String> = match typed {
            // A question that takes one answer gets the text that was typed, instead of what was selected.
            Some(text) if !multi => vec![text],
            typed => labels.chain(typed).collect(),
        };
        if !answer.is_empty() {
            self.answers.insert(id, answer);
        }
        if self.question + 1 < count {
            self.show_question(self.question + 1);
            return FormOutcome::Pending;
        }
        if self.answers.is_empty() {
            self.show_question(0);
            return FormOutcome::Refused("Answer at least one question, or decline to answer");
        }
        FormOutcome::Answered(AgentCommand::Answer { approval: self.approval.id, answers: self.answers.clone() })
    }

    /// Shows a question, of which nothing is chosen yet.
    fn show_question(&mut self, question: usize) {
        self.question = question;
        (self.selected, self.marked) = (None, BTreeSet::new());
        self.choices = self.choices_of_page();
    }

    /// The form as rows, and the cursor.
    pub(crate) fn rows(&self, style: Style) -> EditorRows {
        // Which approval this is: another one may have been printed last.
        let approval = &self.approval;
        let asked = approval.detail.command.as_deref().unwrap_or(&approval.title);
        let asked = Text::new(&format!("{} ", approval.id), Paint::DIM).with(&one_line(asked), Paint::BOLD);
        let mut rows = vec![asked.cut(style.cut_columns()).line(style)];
        let questions = self.questions();
        if let Some(question) = questions.get(self.question) {
            let number = match questions.len() {
                1 => String::new(),
                count => format!("{} of {count}: ", self.question + 1),
            };
            let several = if question.multi { " (several are possible: space marks)" } else { "" };
            let text =
                Text::new(&number, Paint::DIM).with(&one_line(&question.text), Paint::BOLD).with(several, Paint::DIM);
            rows.extend(text.wrap(&Indent::default(), style));
        }
        let has_numbers = !questions.get(self.question).is_some_and(|question| question.free);
        let mut cursor = (0, 0);
        for (at, choice) in self.choices.iter().enumerate() {
            let is_selected = self.selected == Some(at);
            if is_selected || self.selected.is_none() {
                cursor = (rows.len(), 0);
            }
            let paint = if is_selected { Paint::BOLD } else { Paint::PLAIN };
            let arrow = if is_selected { "❯" } else { " " };
            // Where an answer can be typed, a digit is part of it.
            let number = if has_numbers { format!("{}. ", at + 1) } else { String::new() };
            let indent = Indent::hanging(&format!("{arrow} {number}"), paint);
            rows.extend(self.choice_text(at, choice, paint).wrap(&indent, style));
        }
        if self.warns && self.is_allowing() {
            let warning = Text::new(WAS_CUT, Paint { bold: true, ..Paint::YELLOW });
            rows.extend(warning.wrap(&Indent::hanging("  ", Paint::PLAIN), style));
            // On the last row, so that a low window shows the whole warning, whatever it leaves out above.
            cursor = (rows.len() - 1, 0);
        }
        if self.takes_text() {
            let label = if self.is_denying() { "  reason (optional): " } else { "  or type an answer: " };
            let typed = self.typed.rows(label, style.columns(), 3);
            cursor = (rows.len() + typed.cursor.0, typed.cursor.1);
            rows.extend(typed.rows);
        }
        EditorRows { rows, cursor }
    }

    fn choice_text(&self, at: usize, choice: &Choice, paint: Paint) -> Text {
        let mark = match choice {
            Choice::Answer { .. } if self.takes_several() && self.marked.contains(&at) => "[x] ",
            Choice::Answer { .. } if self.takes_several() => "[ ] ",
            _ => "",
        };
        let (label, more) = match choice {
            Choice::Allow { label, effect, .. } => (label, effect.as_deref()),
            Choice::Answer { label, description } => (label, description.as_deref()),
            Choice::Deny { label } => (label, None),
        };
        let text = Text::new(mark, paint).with(&one_line(label), paint);
        match more {
            Some(more) => text.with(&format!(": {}", one_line(more)), Paint::DIM),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests;
