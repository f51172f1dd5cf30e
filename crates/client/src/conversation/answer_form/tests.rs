//! Tests of the form: what keys choose, and what is sent.

use bowline_proto::agent::approval::ApprovalId;
use serde_json::{Value, json};

use super::*;

fn form(fields: Value) -> AnswerForm {
    let mut approval = json!({"id": "a7", "run": "r3", "kind": "permission", "tool": "execute", "title": "rm",
        "options": [
            {"id": "always", "kind": "allow_always", "label": "Always", "effect": "adds a rule"},
            {"id": "once", "kind": "allow_once", "label": "Yes"},
            {"id": "odd", "kind": "hologram", "label": "?"},
            {"id": "never", "kind": "reject_always", "label": "Never"},
            {"id": "no", "kind": "reject_once", "label": "No"},
        ], "at": "t"});
    approval.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    AnswerForm::new(serde_json::from_value(approval).unwrap())
}

fn press(form: &mut AnswerForm, keys: &[Key]) -> FormOutcome {
    keys.iter().map(|key| form.handle_key(key)).last().unwrap()
}

fn typed(text: &str) -> Vec<Key> {
    text.chars().map(Key::Char).collect()
}

const APPROVAL: ApprovalId = ApprovalId(7);
const STYLE: Style = Style { width: Some(80), color: false };

#[test]
fn r35_an_approval_needs_a_choice_and_enter() {
    let mut form = form(json!({}));
    assert!(matches!(press(&mut form, &[Key::Enter]), FormOutcome::Refused(_)));
    assert!(matches!(press(&mut form, &typed("y")), FormOutcome::Refused(_)));
    assert!(matches!(press(&mut form, &typed("9")), FormOutcome::Refused(_)));
    assert_eq!(press(&mut form, &typed("2")), FormOutcome::Pending);
    let option = Some("once".to_owned());
    assert_eq!(
        press(&mut form, &[Key::Enter]),
        FormOutcome::Answered(AgentCommand::Approve { approval: APPROVAL, option })
    );
}

#[test]
fn r35_a_sentence_that_was_meant_for_a_prompt_answers_nothing() {
    let mut form = form(json!({}));
    let sentence: Vec<Key> = typed("fix 2 tests").into_iter().chain([Key::Enter]).collect();
    assert!(sentence.iter().all(|key| !matches!(form.handle_key(key), FormOutcome::Answered(_))));
}

#[test]
fn r35_what_was_cut_is_allowed_only_after_a_warning() {
    let mut form = form(json!({"truncated": true}));
    press(&mut form, &typed("2"));
    assert_eq!(press(&mut form, &[Key::Enter]), FormOutcome::Warned);
    let narrow = Style { width: Some(40), color: false };
    let shown = form.rows(narrow);
    assert_eq!(
        shown.rows[2..],
        [
            "❯ 2. Yes",
            "  3. No",
            "  ! What it asks was cut, because it is",
            "  too long. Enter again allows it",
            "  anyway."
        ]
    );
    assert_eq!(shown.cursor, (6, 0), "a low window shows the row of the cursor, and what is above");
    press(&mut form, &[Key::Down]);
    assert!(!form.rows(narrow).rows.join("\n").contains("was cut"), "a denial needs no warning");
    press(&mut form, &[Key::Up]);
    assert!(form.rows(narrow).rows.join("\n").contains("was cut"));
    assert!(matches!(press(&mut form, &[Key::Enter]), FormOutcome::Answered(AgentCommand::Approve { .. })));
}

#[test]
fn only_options_that_allow_and_one_denial_can_be_chosen() {
    let form = form(json!({}));
    let rows = form.rows(STYLE).rows;
    assert_eq!(rows, ["a7 rm", "  1. Always: adds a rule", "  2. Yes", "  3. No"]);
}

#[test]
fn a_denial_may_have_a_reason() {
    let mut form = form(json!({}));
    press(&mut form, &typed("3"));
    assert_eq!(form.rows(STYLE).rows.last().unwrap(), "  reason (optional): ");
    press(&mut form, &typed("2 files would be lost"));
    let reason = Some("2 files would be lost".to_owned());
    assert_eq!(
        press(&mut form, &[Key::Enter]),
        FormOutcome::Answered(AgentCommand::Deny { approval: APPROVAL, option: None, reason })
    );
}

#[test]
fn an_unknown_kind_can_only_be_denied() {
    for form in [form(json!({"kind": "hologram"})), form(json!({"kind": "question", "questions": []}))] {
        assert_eq!(form.choices.len(), 1);
        assert!(matches!(form.choices[0], Choice::Deny { .. }));
    }
}

fn questions() -> AnswerForm {
    form(json!({"kind": "question", "options": [], "questions": [
        {"id": "q1", "text": "Colour?", "options": [{"label": "Red"}, {"label": "Blue", "description": "calm"}],
            "multi": false, "free": true},
        {"id": "q2", "text": "Sizes?", "options": [{"label": "S"}, {"label": "M"}, {"label": "L"}], "multi": true,
            "free": false},
    ]}))
}

#[test]
fn questions_are_answered_one_after_another() {
    let mut form = questions();
    assert_eq!(form.rows(STYLE).rows[1..4], ["1 of 2: Colour?", "  Red", "  Blue: calm"]);
    assert_eq!(press(&mut form, &[Key::Down, Key::Down, Key::Enter]), FormOutcome::Pending);
    press(&mut form, &typed("1"));
    press(&mut form, &typed("3"));
    press(&mut form, &typed("2"));
    press(&mut form, &[Key::Char(' ')]);
    assert_eq!(form.rows(STYLE).rows[2..5], ["  1. [x] S", "❯ 2. [ ] M", "  3. [x] L"]);
    let FormOutcome::Answered(AgentCommand::Answer { approval, answers }) = press(&mut form, &[Key::Enter]) else {
        panic!("not answered")
    };
    assert_eq!((approval, json!(answers)), (APPROVAL, json!({"q1": ["Blue"], "q2": ["S", "L"]})));
}

#[test]
fn an_own_answer_replaces_the_selected_one() {
    let mut form = questions();
    press(&mut form, &[Key::Down]);
    press(&mut form, &typed("8080 greens"));
    press(&mut form, &[Key::Enter]);
    let FormOutcome::Answered(AgentCommand::Answer { answers, .. }) = press(&mut form, &[Key::Enter]) else {
        panic!("not answered")
    };
    assert_eq!(json!(answers), json!({"q1": ["8080 greens"]}), "the second question was skipped");
}

#[test]
fn at_least_one_question_is_answered_or_all_are_declined() {
    let mut form = questions();
    press(&mut form, &[Key::Enter]);
    assert!(matches!(press(&mut form, &[Key::Enter]), FormOutcome::Refused(_)));
    assert_eq!(form.question, 0);
    press(&mut form, &[Key::Up]);
    assert_eq!(
        press(&mut form, &[Key::Enter]),
        FormOutcome::Answered(AgentCommand::Deny { approval: APPROVAL, option: None, reason: None })
    );
}

#[test]
fn r35_a_question_that_is_asked_again_has_no_selection() {
    let mut form = form(json!({"kind": "question", "options": [], "questions": [
        {"id": "q1", "text": "Port?", "options": [], "multi": false, "free": true},
        {"id": "q2", "text": "Sizes?", "options": [{"label": "S"}], "multi": true, "free": false},
    ]}));
    // The answer of the second question is selected, and its mark is taken back: nothing is answered.
    press(&mut form, &[Key::Enter, Key::Char('1'), Key::Char('1')]);
    assert!(matches!(press(&mut form, &[Key::Enter]), FormOutcome::Refused(_)));
    assert_eq!((form.question, form.selected), (0, None));
    let outcome = press(&mut form, &[Key::Enter]);
    assert!(!matches!(outcome, FormOutcome::Answered(_)), "the user did not choose to decline: {outcome:?}");
}

#[test]
fn r52_a_label_cannot_look_like_another_choice() {
    let options = json!([{"id": "x", "kind": "allow_once", "label": "Yes\n  2. No\x1b[2K"}]);
    let form = form(json!({"options": options}));
    assert_eq!(form.rows(STYLE).rows[1..], [r"  1. Yes\u000a  2. No\u001b[2K", "  2. Deny"]);
}

#[test]
fn escape_leaves_it_for_later() {
    assert_eq!(press(&mut questions(), &[Key::Escape]), FormOutcome::SetAside);
}
