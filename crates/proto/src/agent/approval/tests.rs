//! Explores approvals in all orders of inputs, and checks that each has exactly one outcome.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;
use crate::agent::event::CommandSource;
use crate::agent::fold::Fold;
use crate::journal::Record;

const DEPTH: usize = 10;
const MOST: usize = 3;
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    RequestOfFirstRun,
    RequestOfSecondRun,
    ApproveFirst,
    DenyLast,
    /// A second answer to an approval that was answered.
    AnswerAgain,
    WithdrawLast,
    AbortFirstRun,
    EndFirstRun,
    /// The run ends, and the agent still waits for answers.
    EndFirstRunAwaiting,
    Exit,
    EndSession,
    /// The oldest deadline passes. Only the approvals of the second run have one.
    PassDeadline,
}

const INPUTS: [Input; 12] = [
    Input::RequestOfFirstRun,
    Input::RequestOfSecondRun,
    Input::ApproveFirst,
    Input::DenyLast,
    Input::AnswerAgain,
    Input::WithdrawLast,
    Input::AbortFirstRun,
    Input::EndFirstRun,
    Input::EndFirstRunAwaiting,
    Input::Exit,
    Input::EndSession,
    Input::PassDeadline,
];

fn approval(run: u64) -> Approval {
    let options = json!([
        {"id": "once", "kind": "allow_once", "label": "Yes"}, {"id": "always", "kind": "allow_always", "label": "Always"},
        {"id": "no", "kind": "reject_once", "label": "No"}, {"id": "odd", "kind": "from_the_future", "label": "?"},
    ]);
    let approval = json!({
        "id": "a0", "run": format!("r{run}"), "kind": "permission", "tool": "execute", "title": "ls", "options": options,
        "at": "",
    });
    serde_json::from_value(approval).unwrap()
}

fn question() -> Approval {
    let questions = vec![
        Question {
            id: "colour".into(),
            text: "Which?".into(),
            options: ["Red", "Blue"].map(|label| QuestionOption { label: label.into(), description: None }).into(),
            multi: false,
            free: false,
        },
        Question { id: "why".into(), text: "Why?".into(), options: vec![], multi: true, free: true },
    ];
    Approval { kind: ApprovalKind::Question, options: vec![], questions: Some(questions), ..approval(0) }
}

#[derive(Clone)]
struct World {
    approvals: Approvals,
    journal: Vec<AgentEvent>,
    /// How often the agent was told something about each of its requests.
    answers: BTreeMap<RequestKey, usize>,
    requests: u64,
    path: Vec<Input>,
}

impl World {
    fn new() -> World {
        let approvals = Approvals::new(ApprovalId(0));
        World { approvals, journal: Vec::new(), answers: BTreeMap::new(), requests: 0, path: Vec::new() }
    }

    fn key(&self) -> String {
        let first = self.approvals.open.first().map_or(0, |open| open.approval.id.0);
        let open =
            self.approvals.open.iter().map(|open| (open.approval.id.0 - first, open.approval.run, open.deadline));
        let open: Vec<_> = open.collect();
        format!("{open:?} {}", self.requests > 0)
    }

    fn allows(&self, input: Input) -> bool {
        match input {
            Input::RequestOfFirstRun | Input::RequestOfSecondRun => self.approvals.open.len() < MOST,
            Input::ApproveFirst | Input::DenyLast | Input::WithdrawLast => !self.approvals.open.is_empty(),
            Input::AnswerAgain => self.approvals.next.0 > 0,
            _ => true,
        }
    }

    fn apply(&mut self, input: Input) {
        self.path.push(input);
        let first = self.approvals.open.first().map(|open| open.approval.id);
        let last = self.approvals.open.last().map(|open| (open.request, open.approval.id));
        match input {
            Input::RequestOfFirstRun | Input::RequestOfSecondRun => {
                let request = RequestKey(self.requests);
                self.requests += 1;
                let is_second = input == Input::RequestOfSecondRun;
                let deadline = is_second.then_some(DEADLINE);
                self.approvals.handle_request(request, approval(u64::from(is_second)), deadline);
            }
            Input::ApproveFirst => self.decide(first.unwrap(), Decision::Approve { option: None }),
            Input::DenyLast => self.decide(last.unwrap().1, Decision::Deny { option: None, reason: None }),
            Input::AnswerAgain => {
                let open = |id: &ApprovalId| self.approvals.open.iter().any(|open| open.approval.id == *id);
                let closed = (0..self.approvals.next.0).map(ApprovalId).find(|id| !open(id));
                if let Some(id) = closed {
                    let again = self.approvals.check(id, &Decision::Deny { option: None, reason: None });
                    assert_eq!(again, Err(BadAnswer::NotOpen), "{:?}", self.path);
                    assert!(fold(&self.journal).answered(id).is_some(), "the outcome is known: {:?}", self.path);
                }
            }
            Input::WithdrawLast => self.approvals.handle_withdrawn(last.unwrap().0),
            Input::AbortFirstRun => self.approvals.handle_abort(RunId(0)),
            Input::EndFirstRun => self.approvals.handle_run_end(RunId(0), |_| false),
            Input::EndFirstRunAwaiting => self.approvals.handle_run_end(RunId(0), |_| true),
            Input::Exit => self.approvals.handle_exit(),
            Input::EndSession => self.approvals.handle_ending(),
            Input::PassDeadline => self.pass_deadline(),
        }
        while let Some(output) = self.approvals.poll_output() {
            match output {
                ApprovalOutput::Append(event) => self.journal.push(event),
                ApprovalOutput::Answer { request, .. } => *self.answers.entry(request).or_default() += 1,
            }
        }
    }

    fn pass_deadline(&mut self) {
        let count = |world: &World| world.approvals.open.len();
        let before = count(self);
        self.approvals.handle_timeout(DEADLINE - Duration::from_nanos(1));
        assert_eq!(count(self), before, "expired too early: {:?}", self.path);
        self.approvals.handle_timeout(DEADLINE);
        assert!(self.approvals.open.iter().all(|open| open.deadline.is_none()), "not expired: {:?}", self.path);
        assert_eq!(self.approvals.poll_timeout(), None);
    }

    fn decide(&mut self, id: ApprovalId, decision: Decision) {
        let (outcome, option) = self.approvals.check(id, &decision).unwrap();
        let source = Some(CommandSource { command: "c".into(), digest: "d".into(), by: "phone".into() });
        self.journal.push(AgentEvent::ApprovalResolved { approval: id, outcome, option, reason: None, source });
        self.approvals.handle_decided(id, decision);
    }
}

fn fold(journal: &[AgentEvent]) -> Fold {
    let mut fold = Fold::default();
    for (seq, event) in journal.iter().enumerate() {
        fold.fold(&Record::new(seq as u64, String::new(), event.clone()));
    }
    fold
}

fn check_journal(journal: &[AgentEvent], path: &[Input]) {
    let mut resolved: BTreeMap<ApprovalId, bool> = BTreeMap::new();
    for event in journal {
        match event {
            AgentEvent::ApprovalRequested { approval } => {
                assert_eq!(resolved.insert(approval.id, false), None, "requested twice: {path:?}");
            }
            AgentEvent::ApprovalResolved { approval, .. } => {
                assert_eq!(
                    resolved.insert(*approval, true),
                    Some(false),
                    "resolved twice, or never requested: {path:?}"
                );
            }
            _ => {}
        }
    }
    let open: Vec<ApprovalId> = resolved.iter().filter(|(_, closed)| !**closed).map(|(id, _)| *id).collect();
    let folded: Vec<ApprovalId> = fold(journal).approvals.iter().map(|open| open.id).collect();
    assert_eq!(folded, open, "the fold disagrees about what is open: {path:?}");
}

#[test]
fn r36_every_order_of_inputs_gives_each_approval_one_outcome() {
    let (mut seen, mut level, mut transitions) = (BTreeSet::new(), vec![World::new()], 0);
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for world in level {
            for input in INPUTS.into_iter().filter(|input| world.allows(*input)) {
                let mut after = world.clone();
                after.apply(input);
                transitions += 1;
                check_journal(&after.journal, &after.path);
                assert!(after.answers.values().all(|times| *times == 1), "told twice: {:?}", after.path);
                // A crash after any prefix.
                for len in world.journal.len()..=after.journal.len() {
                    let mut repaired = after.journal[..len].to_vec();
                    repaired.extend(fold(&repaired).interruptions());
                    check_journal(&repaired, &after.path);
                    assert!(fold(&repaired).approvals.is_empty(), "open after a repair: {:?}", after.path);
                }
                if seen.insert(after.key()) {
                    next.push(after);
                }
            }
        }
        level = next;
    }
    assert!(transitions > 150, "only {transitions} transitions were explored");
}

#[test]
fn r36_an_option_is_chosen_by_its_id_and_only_if_it_allows() {
    let mut approvals = Approvals::new(ApprovalId(7));
    approvals.handle_request(RequestKey(0), approval(0), None);
    let check = |approvals: &Approvals, option: Option<&str>| {
        let decision = Decision::Approve { option: option.map(ToOwned::to_owned) };
        approvals.check(ApprovalId(7), &decision).map(|(_, option)| option.unwrap())
    };
    assert_eq!(check(&approvals, None), Ok("once".into()), "without an option, only this once");
    assert_eq!(check(&approvals, Some("always")), Ok("always".into()));
    for bad in ["no", "odd", "", "Yes"] {
        assert!(matches!(check(&approvals, Some(bad)), Err(BadAnswer::NotPossible(_))), "{bad}");
    }
    let second = ApprovalOption { id: "twice".into(), kind: OptionKind::AllowOnce, label: "x".into(), effect: None };
    let mut two = approval(0);
    two.options.push(second);
    let mut approvals = Approvals::new(ApprovalId(7));
    approvals.handle_request(RequestKey(0), two, None);
    assert!(
        check(&approvals, None).is_err_and(|why| why.to_string().contains("once, twice")),
        "never choose by kind alone"
    );
    let unknown = Approval { kind: ApprovalKind::Unknown, ..approval(0) };
    let mut approvals = Approvals::new(ApprovalId(7));
    approvals.handle_request(RequestKey(0), unknown, None);
    assert!(check(&approvals, Some("once")).is_err(), "what is not understood can only be denied");
    assert!(approvals.check(ApprovalId(7), &Decision::Deny { option: None, reason: None }).is_ok());
    assert_eq!(approvals.check(ApprovalId(6), &Decision::Deny { option: None, reason: None }), Err(BadAnswer::NotOpen));
}

#[test]
fn r36_a_denial_may_choose_an_option_but_only_one_that_rejects() {
    let mut approvals = Approvals::new(ApprovalId(0));
    let mut asked = approval(0);
    asked.options.push(ApprovalOption {
        id: "never".into(),
        kind: OptionKind::RejectAlways,
        label: "Never".into(),
        effect: None,
    });
    approvals.handle_request(RequestKey(0), asked.clone(), None);
    let deny = |option: Option<&str>| Decision::Deny { option: option.map(ToOwned::to_owned), reason: None };
    for option in [None, Some("no"), Some("never")] {
        let recorded = (Outcome::Denied, option.map(ToOwned::to_owned));
        assert_eq!(approvals.check(ApprovalId(0), &deny(option)), Ok(recorded));
    }
    for bad in ["once", "always", "odd", "", "No", "x"] {
        let why = approvals.check(ApprovalId(0), &deny(Some(bad))).unwrap_err().to_string();
        assert_eq!(why, format!("{bad:?} is not an option that denies this; choose one of: no, never"));
    }
    while approvals.poll_output().is_some() {}
    approvals.handle_decided(ApprovalId(0), deny(Some("never")));
    let answer = Answer::Denied { option: Some("never".into()), reason: None };
    assert_eq!(approvals.poll_output(), Some(ApprovalOutput::Answer { request: RequestKey(0), answer }));
    approvals.handle_request(RequestKey(1), question(), None);
    let why = approvals.check(ApprovalId(1), &deny(Some("no"))).unwrap_err().to_string();
    assert_eq!(why, "\"no\" is not an option that denies this; deny it without an option");
    approvals.handle_request(RequestKey(2), Approval { kind: ApprovalKind::Unknown, ..asked }, None);
    assert!(approvals.check(ApprovalId(2), &deny(Some("never"))).is_ok(), "what is not understood can be denied");
}

#[test]
fn an_approval_that_no_option_allows_says_what_to_do_instead() {
    let mut approvals = Approvals::new(ApprovalId(0));
    approvals.handle_request(RequestKey(0), question(), None);
    let mut no_way = approval(0);
    no_way.options.retain(|option| option.kind == OptionKind::RejectOnce);
    approvals.handle_request(RequestKey(1), no_way, None);
    for option in [None, Some("once".to_owned())] {
        let approve = Decision::Approve { option };
        let why = |id| approvals.check(ApprovalId(id), &approve).unwrap_err().to_string();
        assert_eq!(why(0), "this is a question; answer it with `answer`, or deny it");
        assert_eq!(why(1), "no option allows this; it can only be denied");
    }
}

/// A sub-agent in the background waits for an answer, and the abort of a later run ends the sub-agent, too.
#[test]
fn r36_an_abort_closes_the_approvals_of_background_work() {
    let mut approvals = Approvals::new(ApprovalId(0));
    approvals.handle_request(RequestKey(0), approval(0), None);
    approvals.handle_run_end(RunId(0), |_| true);
    approvals.handle_request(RequestKey(1), approval(1), None);
    approvals.handle_request(RequestKey(2), approval(2), None);
    while approvals.poll_output().is_some() {}
    approvals.handle_abort(RunId(1));
    let outputs: Vec<ApprovalOutput> = std::iter::from_fn(|| approvals.poll_output()).collect();
    let closed = |id: u64, request: u64| {
        let answer = ApprovalOutput::Answer { request: RequestKey(request), answer: Answer::Cancelled };
        [ApprovalOutput::Append(resolved(ApprovalId(id), Outcome::Aborted)), answer]
    };
    assert_eq!(outputs, [closed(0, 0), closed(1, 1)].concat());
    assert_eq!(approvals.open.len(), 1, "one of another run stays");
}

#[test]
fn r36_answers_are_checked_against_the_questions() {
    let mut approvals = Approvals::new(ApprovalId(0));
    approvals.handle_request(RequestKey(0), question(), None);
    let check = |answers: serde_json::Value| {
        let answers = serde_json::from_value(answers).unwrap();
        approvals.check(ApprovalId(0), &Decision::Answer { answers }).is_ok()
    };
    assert!(check(json!({"colour": ["Red"]})));
    assert!(check(json!({"colour": ["Red"], "why": ["a", "b"]})));
    for bad in [
        json!({}),
        json!({"colour": []}),
        json!({"colour": ["Green"]}),
        json!({"colour": ["Red", "Blue"]}),
        json!({"x": ["y"]}),
    ] {
        assert!(!check(bad.clone()), "{bad}");
    }
    assert!(approvals.check(ApprovalId(0), &Decision::Approve { option: None }).is_err(), "a question has no options");
}

#[test]
fn r52_large_approvals_are_cut_and_then_denied() {
    let mut approvals = Approvals::new(ApprovalId(0));
    let long = |text: usize, ids: usize| {
        let mut approval = approval(0);
        approval.detail.text = Some("x".repeat(text));
        approval.options[3].id = "y".repeat(ids);
        approval
    };
    approvals.handle_request(RequestKey(0), long(MAX_SIZE - 2000, 3), None);
    approvals.handle_request(RequestKey(1), long(9000, 3), None);
    assert!(!approvals.open[0].approval.truncated && approvals.open[1].approval.truncated);
    approvals.handle_request(RequestKey(2), long(0, 9000), None);
    assert_eq!(approvals.open.len(), 2, "what cannot be cut is denied");
    let all: usize = approvals.open.iter().map(|open| serde_json::to_vec(&open.approval).unwrap().len()).sum();
    assert!(all <= MAX_SIZE);
}

#[test]
fn r52_more_requests_than_may_wait_are_denied_at_once() {
    let mut approvals = Approvals::new(ApprovalId(0));
    (0..=MAX_OPEN as u64).for_each(|n| approvals.handle_request(RequestKey(n), approval(0), None));
    let outputs: Vec<ApprovalOutput> = std::iter::from_fn(|| approvals.poll_output()).collect();
    assert_eq!(approvals.open.len(), MAX_OPEN);
    let Some(ApprovalOutput::Answer { request: RequestKey(64), answer: Answer::Denied { .. } }) = outputs.last() else {
        panic!("{:?}", outputs.last())
    };
}

#[test]
fn r36_an_approval_that_is_not_answered_in_time_is_denied_and_never_allowed() {
    let mut approvals = Approvals::new(ApprovalId(0));
    approvals.handle_request(RequestKey(0), approval(0), None);
    approvals.handle_request(RequestKey(1), approval(0), Some(DEADLINE * 2));
    approvals.handle_request(RequestKey(2), approval(0), Some(DEADLINE));
    while approvals.poll_output().is_some() {}
    assert_eq!(approvals.poll_timeout(), Some(DEADLINE));
    approvals.handle_timeout(DEADLINE);
    let outputs: Vec<ApprovalOutput> = std::iter::from_fn(|| approvals.poll_output()).collect();
    let [ApprovalOutput::Append(event), ApprovalOutput::Answer { request, answer }] = outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    assert_eq!(*event, resolved(ApprovalId(2), Outcome::Expired));
    assert_eq!(*request, RequestKey(2));
    assert!(matches!(answer, Answer::Denied { option: None, reason: Some(_) }), "{answer:?}");
    let late = approvals.check(ApprovalId(2), &Decision::Approve { option: None });
    assert_eq!(late, Err(BadAnswer::NotOpen));
    assert_eq!(approvals.poll_timeout(), Some(DEADLINE * 2));
    approvals.handle_timeout(DEADLINE * 1000);
    assert!(approvals.check(ApprovalId(0), &Decision::Approve { option: None }).is_ok(), "it has no deadline");
}
