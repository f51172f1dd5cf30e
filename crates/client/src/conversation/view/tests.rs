//! Tests of the view: keys, deliveries and rows; approvals have a file of their own.

mod approvals;

use std::time::SystemTime;

use bowline_proto::post::{Delivery, Failure, FailureReason};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const STYLE: Style = Style { width: Some(120), color: false };
const OPTIONS: ViewOptions = ViewOptions { observe: false, detach_key: None, style: STYLE };

/// A view, and the number of its next event.
struct Shown {
    view: View,
    next: u64,
    now: Duration,
}

impl Shown {
    fn new() -> Shown {
        Shown { view: View::new(OPTIONS), next: 0, now: Duration::ZERO }
    }

    fn event(&mut self, event: Value) {
        let record = Record::new(self.next, "2026-11-18T00:00:00Z".to_owned(), event);
        self.next += 1;
        self.view.handle_record(&record);
    }

    fn run(&mut self, run: &str, command: &str) {
        self.event(
            json!({"type": "prompt", "run": run, "command": command, "digest": "d", "by": "local", "text": "hi",
            "attachments": []}),
        );
        self.event(json!({"type": "run_started", "run": run, "cause": "prompt"}));
    }

    fn ask(&mut self, id: &str) {
        self.event(json!({"type": "approval_requested", "approval": {"id": id, "run": "r0", "kind": "permission",
            "tool": "execute", "title": "Clean", "detail": {"command": "rm -r build"}, "at": "",
            "options": [{"id": "once", "kind": "allow_once", "label": "Yes"}]}}));
    }

    fn press(&mut self, key: Key) {
        self.view.handle_key(&key, self.now);
    }

    /// No key is pressed for a while.
    fn pause(&mut self) {
        self.now += QUIET_TIME;
        self.view.handle_time(self.now);
    }

    fn type_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(Key::Char(c)));
    }

    /// What was sent since the last call.
    fn sent(&mut self) -> Vec<AgentCommand> {
        std::iter::from_fn(|| self.view.poll_action())
            .map(|action| match action {
                Action::Send(command) => command,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn rows(&mut self) -> Vec<String> {
        self.view.live_rows(20, self.now, SystemTime::UNIX_EPOCH).rows
    }

    fn shows(&mut self, text: &str) -> bool {
        self.rows().join("\n").contains(text)
    }

    fn lines(&mut self) -> String {
        std::iter::from_fn(|| self.view.poll_line()).collect::<Vec<_>>().join("\n")
    }
}

fn prompt(text: &str) -> AgentCommand {
    AgentCommand::Prompt { text: text.to_owned(), attachments: Vec::new() }
}

#[test]
fn a_prompt_is_shown_until_its_event_arrives() {
    let mut shown = Shown::new();
    shown.type_text("hello");
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [prompt("hello")]);
    shown.view.handle_posted("c1".to_owned(), prompt("hello"));
    assert!(shown.shows("> hello"));
    assert_eq!(shown.view.undelivered(), 1);
    shown.view.handle_state("c1", State::Delivered(Delivery::Accepted { seq: 0, run: None }));
    assert!(shown.shows("> hello"), "accepted, but not in the transcript yet");
    assert_eq!(shown.view.undelivered(), 0);
    shown.run("r0", "c1");
    assert!(!shown.shows("> hello"));
}

#[test]
fn a_blank_prompt_is_not_sent() {
    let mut shown = Shown::new();
    shown.type_text("  ");
    shown.press(Key::NewLine);
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), []);
}

#[test]
fn r37_a_prompt_that_failed_waits_for_its_sender() {
    let mut shown = Shown::new();
    for id in ["c1", "c2"] {
        shown.view.handle_posted(id.to_owned(), prompt(id));
        let failure = Failure { reason: FailureReason::Expired, message: String::new() };
        shown.view.handle_state(id, State::Failed(failure));
    }
    assert!(shown.shows("✗ not delivered: no answer within ten minutes"));
    shown.press(Key::Ctrl('r'));
    assert_eq!(shown.view.poll_action(), Some(Action::SendAgain("c1".to_owned())));
    shown.press(Key::Ctrl('x'));
    assert_eq!(shown.view.poll_action(), Some(Action::Discard("c2".to_owned())));
    assert!(!shown.shows("✗"));
    assert_eq!(shown.view.undelivered(), 1);
}

#[test]
fn what_was_typed_and_not_sent_is_printed_at_the_end() {
    let mut shown = Shown::new();
    shown.type_text("a long draft");
    shown.view.finish();
    assert!(shown.lines().contains("not sent: a long draft"));
}

#[test]
fn r37_prompts_that_were_not_delivered_are_printed_in_full_at_the_end() {
    let mut shown = Shown::new();
    let long = format!("first line\n{}", "and more ".repeat(40));
    let failed = State::Failed(Failure { reason: FailureReason::Expired, message: String::new() });
    let accepted = State::Delivered(Delivery::Accepted { seq: 0, run: None });
    for (id, text, state) in [
        ("c1", long.as_str(), State::Retrying { tries: 1, at: 0, message: String::new() }),
        ("c2", "given up", failed),
        ("c3", "accepted", accepted),
    ] {
        shown.view.handle_posted(id.to_owned(), prompt(text));
        shown.view.handle_state(id, state);
    }
    shown.view.finish();
    let lines = shown.lines();
    let words = lines.split_whitespace().collect::<String>();
    assert!(lines.contains("not delivered: first line") && words.contains(&"andmore".repeat(40)), "{lines}");
    assert!(lines.contains("not delivered: given up") && !lines.contains("accepted"), "{lines}");
}

#[test]
fn a_prompt_that_is_refused_while_another_one_is_typed_is_printed() {
    let mut shown = Shown::new();
    shown.type_text("draft");
    shown.view.handle_refused(prompt("refused"), "too many");
    assert!(shown.shows("> draft") && shown.lines().contains("not sent: refused"));
}

#[test]
fn a_prompt_is_recalled_once_although_its_event_has_it_too() {
    let mut shown = Shown::new();
    for (id, text) in [("c1", "one"), ("c2", "two")] {
        shown.type_text(text);
        shown.press(Key::Enter);
        shown.sent();
        shown.view.handle_posted(id.to_owned(), prompt(text));
    }
    for (run, id, text) in [("r0", "c1", "one"), ("r1", "c2", "two")] {
        shown.event(json!({"type": "prompt", "run": run, "command": id, "digest": "d", "by": "local", "text": text,
            "attachments": []}));
    }
    shown.press(Key::Up);
    shown.press(Key::Up);
    shown.press(Key::Up);
    assert!(shown.shows("> one"));
}

#[test]
fn r33_ctrl_c_stops_the_run_and_a_second_one_leaves() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.type_text("draft");
    shown.press(Key::Ctrl('c'));
    assert_eq!(shown.sent(), [AgentCommand::Abort { run: RunId(0), queue: false }]);
    assert!(!shown.view.has_left() && shown.shows("> draft"));
    shown.now = LEAVE_WITHIN * 3;
    shown.press(Key::Ctrl('c'));
    assert_eq!(shown.sent().len(), 1, "too late to leave: the agent is told once more");
    assert!(!shown.view.has_left());
    shown.now += LEAVE_WITHIN;
    shown.press(Key::Ctrl('c'));
    assert!(shown.view.has_left() && shown.sent().is_empty());
}

/// The view with a prompt that is on its way, whose run the user wants to stop.
fn unwanted_prompt() -> Shown {
    let mut shown = Shown::new();
    shown.type_text("hi");
    shown.press(Key::Enter);
    assert_eq!(shown.sent(), [prompt("hi")]);
    shown.view.handle_posted("c0".to_owned(), prompt("hi"));
    shown.press(Key::Ctrl('c'));
    assert_eq!(shown.sent(), [], "its run is not known yet");
    assert!(!shown.view.has_left());
    assert!(shown.shows("it is stopped as soon as it has arrived") && shown.shows("> hi (will be stopped)"));
    shown
}

#[test]
fn r33_ctrl_c_stops_the_run_of_a_prompt_that_is_on_its_way() {
    let abort = AgentCommand::Abort { run: RunId(0), queue: false };
    let accepted = State::Delivered(Delivery::Accepted { seq: 0, run: Some("r0".to_owned()) });
    let mut by_event = unwanted_prompt();
    by_event.run("r0", "c0");
    assert_eq!(by_event.sent(), std::slice::from_ref(&abort));
    by_event.view.handle_state("c0", accepted.clone());
    assert_eq!(by_event.sent(), []);

    let mut by_response = unwanted_prompt();
    by_response.view.handle_state("c0", accepted.clone());
    assert_eq!(by_response.sent(), std::slice::from_ref(&abort), "the response names the run, too");
    by_response.run("r0", "c0");
    assert_eq!(by_response.sent(), [], "once is enough");

    let mut accepted_before = Shown::new();
    accepted_before.view.handle_posted("c0".to_owned(), prompt("hi"));
    accepted_before.view.handle_state("c0", accepted);
    accepted_before.press(Key::Ctrl('c'));
    assert_eq!(accepted_before.sent(), [abort]);

    let mut leaving = unwanted_prompt();
    leaving.press(Key::Ctrl('c'));
    assert!(leaving.view.has_left());
}

/// Only the oldest of several prompts could be stopped before it arrived.
#[test]
fn r33_ctrl_c_stops_one_prompt_after_the_other_that_is_on_its_way() {
    let mut shown = unwanted_prompt();
    shown.view.handle_posted("c1".to_owned(), prompt("second"));
    shown.view.handle_posted("c2".to_owned(), prompt("third"));
    let accepted = |run: &str| State::Delivered(Delivery::Accepted { seq: 0, run: Some(run.to_owned()) });
    let abort = |run| AgentCommand::Abort { run: RunId(run), queue: false };
    shown.now += LEAVE_WITHIN * 2;
    shown.press(Key::Ctrl('c'));
    assert!(shown.shows("> second (will be stopped)") && !shown.shows("> third (will"));
    shown.view.handle_state("c0", accepted("r0"));
    shown.view.handle_state("c1", accepted("r1"));
    assert_eq!(shown.sent(), [abort(0), abort(1)]);
    shown.view.handle_state("c2", accepted("r2"));
    for expected in [vec![abort(2)], vec![]] {
        shown.now += LEAVE_WITHIN * 2;
        shown.press(Key::Ctrl('c'));
        assert_eq!(shown.sent(), expected, "each is stopped once");
    }
    assert!(!shown.view.has_left());
}

#[test]
fn r33_ctrl_c_takes_back_a_prompt_that_is_not_handed_over_yet() {
    let mut shown = Shown::new();
    shown.type_text("hi");
    shown.press(Key::Enter);
    shown.press(Key::Ctrl('c'));
    assert!(shown.sent().is_empty() && shown.shows("not sent: Up gets it back"));
    shown.press(Key::Up);
    assert!(shown.shows("> hi"));
}

#[test]
fn ctrl_c_without_a_run_clears_the_text_and_ctrl_d_leaves_only_without_one() {
    let mut shown = Shown::new();
    shown.type_text("draft");
    shown.press(Key::Ctrl('d'));
    assert!(!shown.view.has_left());
    shown.press(Key::Ctrl('c'));
    assert!(!shown.view.has_left() && !shown.shows("draft") && shown.shows("Ctrl-C again or Ctrl-D leaves"));
    shown.press(Key::Ctrl('d'));
    assert!(shown.view.has_left());
}

#[test]
fn the_detach_key_then_d_leaves() {
    let mut shown = Shown::new();
    shown.view = View::new(ViewOptions { detach_key: Some(DetachKey::default()), ..OPTIONS });
    shown.press(Key::Ctrl('\\'));
    shown.press(Key::Char('x'));
    assert!(!shown.view.has_left() && !shown.shows("> x"));
    shown.press(Key::Ctrl('\\'));
    shown.press(Key::Char('d'));
    assert!(shown.view.has_left());
}

#[test]
fn an_observer_sends_nothing_and_leaves_with_ctrl_c() {
    let mut shown = Shown::new();
    shown.view = View::new(ViewOptions { observe: true, ..OPTIONS });
    shown.run("r0", "c0");
    shown.ask("a0");
    assert!(!shown.shows("1. Yes"));
    shown.type_text("1");
    shown.press(Key::Enter);
    shown.press(Key::Ctrl('c'));
    assert!(shown.sent().is_empty() && shown.view.has_left());
}

#[test]
fn r35_with_a_token_that_only_reads_the_user_only_watches() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.lines();
    for can_write in [true, false, false] {
        shown.view.handle_permission(can_write);
    }
    assert_eq!(shown.lines(), "! this token only allows reading: you only watch", "said once");
    shown.pause();
    shown.type_text("1");
    shown.press(Key::Enter);
    assert!(shown.sent().is_empty() && !shown.shows("1. Yes") && !shown.shows("> "));
    let mut observer = Shown::new();
    observer.view = View::new(ViewOptions { observe: true, ..OPTIONS });
    observer.view.handle_permission(false);
    assert_eq!(observer.lines(), "", "the user asked for it");
}

#[test]
fn a_page_replaces_everything_and_keeps_the_draft() {
    let mut shown = Shown::new();
    shown.run("r0", "c0");
    shown.ask("a0");
    shown.pause();
    shown.press(Key::Escape);
    shown.type_text("draft");
    shown.view.handle_page(&[], ConversationState::default(), false);
    assert!(shown.shows("> draft") && !shown.shows("approval") && !shown.shows("Ctrl-C stops"));
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        any::<char>().prop_map(Key::Char),
        prop::sample::select(vec![
            Key::Char('1'),
            Key::Char('2'),
            Key::Enter,
            Key::Escape,
            Key::Tab,
            Key::NewLine,
            Key::Up,
            Key::Down,
            Key::Backspace,
            Key::Ctrl('c'),
            Key::Ctrl('r'),
            Key::Paste("a\nb\nc\nd\ne\nf\ng".to_owned()),
        ]),
    ]
}

proptest! {
    #[test]
    fn rows_fit_the_window_whatever_is_typed(
        keys in prop::collection::vec(any_key(), 0..40), height in 2usize..30, asks in any::<bool>(),
    ) {
        let mut shown = Shown::new();
        shown.run("r0", "c0");
        for (at, key) in keys.into_iter().enumerate() {
            if asks && at == 3 {
                shown.ask("a0");
            }
            shown.pause();
            shown.press(key);
            while let Some(action) = shown.view.poll_action() {
                if let Action::Send(command) = action {
                    shown.view.handle_posted(format!("p{at}"), command);
                }
            }
            let live = shown.view.live_rows(height, shown.now, SystemTime::UNIX_EPOCH);
            prop_assert!(live.rows.len() <= height && live.cursor.0 < live.rows.len(), "{live:?}");
            prop_assert!(live.rows.iter().all(|row| !row.contains(|c: char| c.is_control())), "{live:?}");
        }
    }
}
