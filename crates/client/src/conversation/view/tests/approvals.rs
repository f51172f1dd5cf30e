//! Tests of approvals: when they are asked, and what answers them.

use bowline_proto::agent::approval::Outcome;

use super::*;

fn approve() -> AgentCommand {
    AgentCommand::Approve { approval: ApprovalId(0), option: Some("once".to_owned()) }
}

#[test]
fn r34_an_approval_is_asked_at_once_and_answered_once() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.lines();
    shown.ask("a0");
    assert!(shown.lines().contains("rm -r build"));
    assert!(shown.shows("1. Yes") && shown.shows("a0 rm -r build"));
    shown.pause();
    assert!(shown.shows("Enter confirms"));
    shown.type_text("1");
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [approve()]);
    shown.view.handle_posted("c1".to_owned(), approve());
    assert!(!shown.shows("1. Yes") && !shown.shows("an approval waits"));
    shown.event(json!({"type": "approval_resolved", "approval": "a0", "outcome": "allowed", "option": "once",
        "command": "c1", "digest": "d", "by": "local"}));
    assert!(!shown.shows("the answer"));
}

#[test]
fn r34_an_approval_that_was_answered_elsewhere_is_not_asked_any_more() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.type_text("1");
    shown.event(json!({"type": "approval_resolved", "approval": "a0", "outcome": "denied", "command": "x",
        "digest": "d", "by": "phone"}));
    assert!(!shown.shows("1. Yes"));
    assert!(shown.lines().contains("phone"));
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [], "Enter came too late, and means nothing now");
}

#[test]
fn r34_an_answer_that_came_too_late_says_so_and_is_not_asked_again() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.type_text("1");
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [approve()]);
    shown.view.handle_posted("c1".to_owned(), approve());
    shown.lines();
    let (outcome, by) = (Some(Outcome::Denied), Some("phone".to_owned()));
    shown.view.handle_state("c1", State::Delivered(Delivery::AlreadyAnswered { outcome, by }));
    assert_eq!(shown.lines(), "! your answer to a0 came too late: already denied by phone");
    assert!(!shown.shows("1. Yes") && !shown.shows("an approval waits"), "its event is on its way");
    assert_eq!(shown.view.undelivered(), 0);
    shown.event(json!({"type": "notice", "level": "info", "text": "something else"}));
    assert!(!shown.shows("1. Yes"));
    shown.event(json!({"type": "approval_resolved", "approval": "a0", "outcome": "denied", "command": "x",
        "digest": "d", "by": "phone"}));
    shown.ask("a0");
    assert!(shown.shows("1. Yes"), "it is not remembered for longer than needed");
}

#[test]
fn an_approval_does_not_take_keys_that_were_meant_for_a_prompt() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.type_text("use option ");
    shown.ask("a0");
    shown.type_text("1");
    assert!(shown.shows("> use option 1") && shown.shows("an approval waits: send or clear your text first"));
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [prompt("use option 1")]);
    assert!(shown.shows("1. Yes"), "it is asked once the text is sent");
}

#[test]
fn an_approval_can_be_answered_later() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.press(Key::Escape);
    assert!(shown.shows("an approval waits: Tab answers"));
    shown.press(Key::Tab);
    assert!(shown.shows("1. Yes"));
}

#[test]
fn an_answer_that_was_refused_is_asked_again() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.type_text("1");
    shown.press(Key::Enter);
    shown.view.handle_posted("c1".to_owned(), approve());
    assert!(shown.sent().len() == 1);
    let reason = FailureReason::Refused { code: "not_allowed".to_owned() };
    let failure = Failure { reason, message: "a read token\x1b[2J answers nothing".to_owned() };
    shown.view.handle_state("c1", State::Failed(failure));
    assert!(shown.lines().contains("the answer was not delivered: a read token\\u001b[2J answers nothing"));
    assert!(shown.shows("1. Yes"));
    assert_eq!(shown.view.poll_action(), Some(Action::Discard("c1".to_owned())));
}

#[test]
fn r35_keys_that_are_typed_while_a_form_opens_answer_nothing() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.type_text("use port");
    shown.press(Key::Enter);
    shown.sent();
    shown.ask("a0");
    for key in [Key::Char('1'), Key::Enter] {
        shown.now += QUIET_TIME / 2;
        shown.press(key);
    }
    assert_eq!(shown.sent(), []);
    assert!(shown.shows("pause a moment, then answer"));
    shown.pause();
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [], "nothing was selected");
}

#[test]
fn r35_with_two_approvals_the_form_says_which_one_it_answers() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.ask("a1");
    assert!(shown.shows("a0 rm -r build") && !shown.shows("a1 rm"));
    shown.pause();
    shown.type_text("1");
    shown.press(Key::Enter);
    shown.press(Key::Enter);
    shown.type_text("1");
    assert_eq!(shown.sent(), [approve()], "the next form does not take keys that were typed ahead");
    assert!(shown.shows("a1 rm -r build") && !shown.shows("> 1"));
}

#[test]
fn r35_a_repeated_enter_does_not_answer_the_warning_that_it_caused() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.event(json!({"type": "approval_requested", "approval": {"id": "a0", "run": "r0", "kind": "permission",
        "tool": "execute", "title": "Clean", "detail": {"command": "rm -r"}, "truncated": true, "at": "",
        "options": [{"id": "once", "kind": "allow_once", "label": "Yes"}]}}));
    shown.pause();
    shown.type_text("1");
    for _ in 0..20 {
        shown.press(Key::Enter);
        shown.now += QUIET_TIME / 4;
    }
    assert_eq!(shown.sent(), []);
    assert!(shown.shows("! What it asks was cut") && shown.shows("pause a moment, then answer"));
    shown.pause();
    assert!(shown.shows("! What it asks was cut") && shown.shows("Enter confirms"));
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [approve()]);
}

/// In a low window, the warning was below the last row, and a second Enter allowed what was not shown.
#[test]
fn r35_a_low_window_shows_the_warning_about_what_was_cut() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    let label = "Yes, and do not ask again for commands like this one ".repeat(20);
    shown.event(json!({"type": "approval_requested", "approval": {"id": "a0", "run": "r0", "kind": "permission",
        "tool": "execute", "title": "Clean", "detail": {"command": "rm -r"}, "truncated": true, "at": "",
        "options": [{"id": "once", "kind": "allow_once", "label": label},
            {"id": "no", "kind": "reject_once", "label": label}]}}));
    shown.pause();
    shown.type_text("1");
    shown.press(Key::Enter);
    shown.view.handle_style(Style { width: Some(30), color: false });
    let live = shown.view.live_rows(6, shown.now, SystemTime::UNIX_EPOCH);
    assert_eq!((live.rows.len(), live.cursor.0), (6, 5));
    let words = live.rows[2..].iter().flat_map(|row| row.split_whitespace()).collect::<Vec<_>>().join(" ");
    assert!(
        words.ends_with("! What it asks was cut, because it is too long. Enter again allows it anyway."),
        "{live:?}"
    );
}

#[test]
fn ctrl_d_does_not_leave_while_an_answer_is_typed() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.type_text("2no: it is needed");
    shown.press(Key::Ctrl('d'));
    assert!(!shown.view.has_left() && shown.shows("no: it is needed"));
    shown.view.finish();
    assert!(shown.lines().contains("not sent: no: it is needed"));
}

#[test]
fn a_reason_that_was_typed_in_vain_can_be_got_back() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.type_text("2not now");
    shown.press(Key::Escape);
    shown.press(Key::Up);
    assert!(shown.shows("> not now"));
}
