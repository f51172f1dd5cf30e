//! Replays streams that were captured from real agents through an adapter, with the real machines of runs and approvals.
//!
//! `fixtures/agents/PROGRAM/CASE.io.jsonl` has what the captured client (`in`) and the agent (`out`) wrote.
//! `CASE.events.jsonl` beside it has what the adapter makes of it: the events that are recorded, and the lines that it
//! writes. `BOWLINE_BLESS=1 cargo test -p bowline-session --lib captured` writes these files anew; read the difference.
//!
//! `crates/session/tests/hostile_agent/` includes this file, too, and changes the streams.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_proto::agent::approval::{Answer, Approval, ApprovalId, ApprovalOutput, Approvals, Decision, RequestKey};
use bowline_proto::agent::config::Settings;
use bowline_proto::agent::event::{AgentEvent, CommandSource, RunId};
use bowline_proto::agent::run::{Output, ProgramExit, Prompt, Runs};
use serde_json::{Value, json};

use super::{Adapter, AdapterEvent, merge_deltas};

/// A captured stream.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    path: PathBuf,
    pub(super) messages: Vec<Captured>,
}

/// A captured message.
#[derive(Clone, Debug)]
pub(super) enum Captured {
    FromClient(Value),
    FromAgent(Value),
    /// A line of the agent that is not JSON.
    Noise(String),
    /// The agent's program exited.
    Exit(Option<i32>),
}

/// Translates between the captured client and the adapter, which may have numbered its requests differently.
#[allow(clippy::wrong_self_convention, reason = "`from` says who wrote the message")]
pub(super) trait Translate {
    /// The adapter as it is at the start of this case.
    fn adapter(&mut self, case: &Case) -> Box<dyn Adapter>;

    /// The captured client wrote this: does the same through the session, if the adapter has not done so by itself.
    fn from_client(&mut self, session: &mut Session, message: &Value);

    /// What the adapter gets in place of this message of the agent; nothing if it did not send the request.
    fn from_agent(&mut self, session: &mut Session, message: &Value) -> Option<Value>;

    /// A message of a kind that does not exist.
    fn unknown(&self) -> Value;
}

/// A session without IO: an adapter with the machines that decide what follows from its news.
pub(super) struct Session {
    pub(super) adapter: Box<dyn Adapter>,
    runs: Runs,
    approvals: Approvals,
    /// Approvals that wait for an answer, oldest first.
    pub(super) open: Vec<(RequestKey, Approval)>,
    pub(super) journal: Vec<AgentEvent>,
    /// Every line that the adapter wrote.
    pub(super) written: Vec<Value>,
    /// The journal and the lines, in order.
    story: Vec<Value>,
    unmerged: Vec<AgentEvent>,
    /// How often the program had to be started.
    pub(super) starts: usize,
}

const NOW: Duration = Duration::ZERO;

impl Session {
    pub(super) fn new(adapter: Box<dyn Adapter>) -> Session {
        let mut session = Session {
            adapter,
            runs: Runs::new(RunId(0), None),
            approvals: Approvals::new(ApprovalId(0)),
            open: Vec::new(),
            journal: Vec::new(),
            written: Vec::new(),
            story: Vec::new(),
            unmerged: Vec::new(),
            starts: 0,
        };
        session.runs.handle_opened(NOW);
        session.work();
        session
    }

    pub(super) fn handle_line(&mut self, line: &[u8]) {
        self.adapter.handle_line(line);
        self.work();
    }

    /// Prompts the agent, unless too many prompts wait.
    pub(super) fn prompt(&mut self, text: &str) {
        let Ok(run) = self.runs.check_prompt() else { return };
        let (text, attachments) = (text.to_owned(), Vec::new());
        self.append(AgentEvent::Prompt { run, source: source(), text: text.clone(), attachments: Vec::new() });
        self.runs.handle_prompt(Prompt { text, attachments }, NOW);
        self.work();
    }

    /// Aborts the run in the agent, if there is one.
    pub(super) fn abort(&mut self) {
        let Some(run) = self.runs.current() else { return };
        self.append(AgentEvent::AbortRequested { run, source: source(), queue: false });
        self.runs.handle_abort(run, false, NOW);
        self.perform_runs();
        self.approvals.handle_abort(run);
        self.work();
    }

    /// Answers the open approval for which `is_meant` holds, if that answer is possible.
    pub(super) fn decide(&mut self, is_meant: impl Fn(&Approval) -> bool, decision: Decision) {
        let Some((_, approval)) = self.open.iter().find(|(_, approval)| is_meant(approval)) else { return };
        let id = approval.id;
        let Ok((outcome, option)) = self.approvals.check(id, &decision) else { return };
        let source = Some(source());
        self.append(AgentEvent::ApprovalResolved { approval: id, outcome, option, reason: None, source });
        self.approvals.handle_decided(id, decision);
        self.work();
    }

    pub(super) fn steer(&mut self, text: &str) {
        let Some(run) = self.runs.current().filter(|_| self.adapter.can_steer()) else { return };
        self.append(AgentEvent::Steered { run, source: source(), text: text.to_owned() });
        self.adapter.steer(text);
        self.work();
    }

    pub(super) fn set(&mut self, settings: &Settings) {
        self.append(AgentEvent::Set { settings: settings.clone(), source: source() });
        self.adapter.set(settings);
        self.work();
    }

    /// The program was started again.
    #[allow(dead_code, reason = "only the tests with hostile agents use it")]
    pub(super) fn restart(&mut self, adapter: Box<dyn Adapter>) {
        self.adapter = adapter;
        self.work();
    }

    pub(super) fn exit(&mut self, code: Option<i32>) {
        self.runs.handle_gone();
        self.work();
        self.approvals.handle_exit();
        self.work();
        self.runs.handle_exit(&ProgramExit { code, signal: None }, NOW);
        self.work();
    }

    /// The run in the agent.
    pub(super) fn current(&self) -> Option<RunId> {
        self.runs.current()
    }

    /// What is done with the adapter's news, as in the session process.
    fn work(&mut self) {
        loop {
            while let Some(line) = self.adapter.poll_write() {
                assert!(!line.contains('\n'), "an adapter writes one line at a time");
                let line: Value = serde_json::from_str(&line).expect("an adapter writes JSON");
                self.story.push(json!({"write": line}));
                self.written.push(line);
            }
            let Some(news) = self.adapter.poll_event() else {
                if self.perform_approvals() | self.perform_runs() {
                    continue;
                }
                break;
            };
            if let AdapterEvent::Event(event) = news {
                if let AgentEvent::Conversation { id } = &event {
                    self.runs.handle_conversation(id);
                }
                self.unmerged.push(event);
                continue;
            }
            self.merge();
            match news {
                AdapterEvent::LongOutput { event, blob } => {
                    self.append(event);
                    self.story.push(json!({"blob": {"bytes": blob.text.len(), "is_cut": blob.is_cut}}));
                }
                AdapterEvent::Ready => self.runs.handle_ready(NOW),
                AdapterEvent::Unusable(error) => self.runs.handle_unusable(&error, true, NOW),
                AdapterEvent::UnknownConversation => {
                    self.story.push(json!("unknown conversation"));
                    self.runs.handle_restart(NOW);
                }
                AdapterEvent::OwnTurn => {
                    let own = self.runs.handle_own_turn();
                    self.begin_own_turn(own);
                }
                AdapterEvent::Ended { run, end } => {
                    if self.runs.current() == Some(run) {
                        self.approvals.handle_run_end(run, |request| self.adapter.awaits_after_run(request));
                    }
                    self.perform_approvals();
                    let own = self.runs.handle_end(run, end, NOW);
                    self.begin_own_turn(own);
                }
                AdapterEvent::Requested { request, approval } => {
                    self.approvals.handle_request(request, *approval.clone(), None);
                    let open = self.approvals_appended();
                    self.open.extend(open.map(|approval| (request, approval)));
                    if self.runs.is_cancelling() {
                        self.approvals.handle_ending();
                    }
                }
                AdapterEvent::Noise(line) => self.story.push(json!({"noise": String::from_utf8_lossy(&line)})),
                AdapterEvent::Withdrawn(request) => self.approvals.handle_withdrawn(request),
                AdapterEvent::Event(_) => {}
            }
            self.perform_approvals();
            self.perform_runs();
        }
        self.merge();
    }

    fn begin_own_turn(&mut self, own: Option<RunId>) {
        if let Some(run) = own {
            self.perform_runs();
            self.adapter.handle_own_turn(run);
        }
    }

    fn merge(&mut self) {
        let events = std::mem::take(&mut self.unmerged);
        merge_deltas(events).into_iter().for_each(|event| self.append(event));
    }

    fn append(&mut self, event: AgentEvent) {
        if let AgentEvent::ApprovalResolved { approval, .. } = &event {
            self.open.retain(|(_, open)| open.id != *approval);
        }
        self.story.push(json!(event));
        self.journal.push(event);
    }

    /// Appends the request that was just handled, and returns it.
    fn approvals_appended(&mut self) -> Option<Approval> {
        let before = self.journal.len();
        self.perform_approvals();
        self.journal.get(before..)?.iter().find_map(|event| match event {
            AgentEvent::ApprovalRequested { approval } => Some(approval.clone()),
            _ => None,
        })
    }

    fn perform_approvals(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.approvals.poll_output() {
            any = true;
            match output {
                ApprovalOutput::Append(event) => self.append(event),
                ApprovalOutput::Answer { request, answer } => self.answer(request, &answer),
            }
        }
        any
    }

    fn answer(&mut self, request: RequestKey, answer: &Answer) {
        self.adapter.answer(request, answer);
    }

    fn perform_runs(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.runs.poll_output() {
            any = true;
            match output {
                Output::Append(event) => self.append(event),
                Output::Send { run, prompt } => self.adapter.prompt(run, &prompt, &[]),
                Output::Cancel => self.adapter.cancel(),
                Output::Terminate => self.story.push(json!("terminate")),
                Output::Start => self.starts += 1,
                Output::Kill => {}
            }
        }
        any
    }
}

fn source() -> CommandSource {
    CommandSource { command: "c".to_owned(), digest: "0".repeat(16), by: "test".to_owned() }
}

/// The captured streams of a program.
pub(super) fn cases(program: &str) -> Vec<Case> {
    let repository =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|path| path.join("fixtures/agents").is_dir());
    let directory = repository.expect("it is in the repository").join("fixtures/agents").join(program);
    let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".io.jsonl"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no streams of {program}");
    paths.into_iter().map(read_case).collect()
}

fn read_case(path: PathBuf) -> Case {
    let text = fs::read_to_string(&path).unwrap();
    let messages = text.lines().filter_map(|line| captured(serde_json::from_str(line).unwrap())).collect();
    let name = path.file_name().unwrap().to_string_lossy().trim_end_matches(".io.jsonl").to_owned();
    Case { name, path, messages }
}

fn captured(line: Value) -> Option<Captured> {
    let message = line["msg"].clone();
    Some(match (line["dir"].as_str().unwrap(), message) {
        // The end of standard input, and lines that are not JSON, which an adapter never writes.
        ("in", Value::String(_)) => return None,
        ("in", message) => Captured::FromClient(message),
        ("out", Value::String(text)) => Captured::Noise(text),
        ("out", message) => Captured::FromAgent(message),
        ("exit", code) => Captured::Exit(code.as_i64().map(|code| code as i32)),
        _ => return None,
    })
}

/// Replays these messages, each message of the agent changed by `change` into those that the adapter gets.
pub(super) fn replay(
    case: &Case,
    translate: &mut dyn Translate,
    messages: &[Captured],
    mut change: impl FnMut(Value) -> Vec<Value>,
) -> Session {
    let mut session = Session::new(translate.adapter(case));
    for message in messages {
        match message {
            Captured::FromClient(message) => translate.from_client(&mut session, message),
            Captured::FromAgent(message) => {
                let message = translate.from_agent(&mut session, message);
                for message in message.map(&mut change).unwrap_or_default() {
                    session.handle_line(message.to_string().as_bytes());
                }
            }
            Captured::Noise(line) => session.handle_line(line.as_bytes()),
            Captured::Exit(code) => session.exit(*code),
        }
    }
    session
}

/// Every prompt that was accepted has exactly one `complete`, every approval exactly one outcome.
pub(super) fn check_ends(session: &Session, what: &str) {
    let (mut runs, mut approvals) = (BTreeMap::new(), BTreeMap::new());
    for event in &session.journal {
        match event {
            AgentEvent::Prompt { run, .. } => assert_eq!(runs.insert(*run, 0), None, "{what}: {run} began twice"),
            AgentEvent::RunStarted { run, .. } => _ = runs.entry(*run).or_insert(0),
            AgentEvent::Complete(complete) => *runs.get_mut(&complete.run).expect("it began") += 1,
            AgentEvent::ApprovalRequested { approval } => assert_eq!(approvals.insert(approval.id, 0), None),
            AgentEvent::ApprovalResolved { approval, .. } => {
                *approvals.get_mut(approval).expect("it was requested") += 1
            }
            _ => {}
        }
    }
    assert!(runs.values().all(|ends| *ends == 1), "{what}: {runs:?} in {:?}", session.journal);
    assert!(approvals.values().all(|ends| *ends == 1), "{what}: {approvals:?} in {:?}", session.journal);
}

/// Checks the events of every captured stream of a program, whole and damaged.
pub(super) fn check_program(program: &str, new: impl Fn() -> Box<dyn Translate>) {
    let mut wrong = Vec::new();
    for case in cases(program) {
        let what = format!("{program}/{}", case.name);
        let whole = replay(&case, &mut *new(), &case.messages, |message| vec![message]);
        wrong.extend(compare(&case, &whole, &what));
        check_cuts(&case, &new, &what);
        check_unknown(&case, &new, &whole, &what);
        check_duplicates(&case, &new, &what);
    }
    assert!(wrong.is_empty(), "{}\nBOWLINE_BLESS=1 writes the files anew", wrong.join("\n"));
}

/// Compares with the file of expected events, or writes it.
fn compare(case: &Case, session: &Session, what: &str) -> Option<String> {
    let path = case.path.with_file_name(format!("{}.events.jsonl", case.name));
    let mut found = String::new();
    for line in &session.story {
        writeln!(found, "{line}").unwrap();
    }
    if std::env::var_os("BOWLINE_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
        return None;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let first = |(found, expected): (&str, &str)| format!("found    {found}\nexpected {expected}");
    let differing = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected).map(first);
    let differs = || differing.unwrap_or_else(|| "one has more lines than the other".to_owned());
    (found != expected).then(|| format!("{what}: {}", differs()))
}

/// The agent dies after any of its messages.
fn check_cuts(case: &Case, new: &impl Fn() -> Box<dyn Translate>, what: &str) {
    for end in 0..case.messages.len() {
        let mut session = replay(case, &mut *new(), &case.messages[..end], |message| vec![message]);
        session.exit(None);
        check_ends(&session, &format!("{what}, cut after {end}"));
    }
}

/// Fields and messages that this version does not know change nothing else.
fn check_unknown(case: &Case, new: &impl Fn() -> Box<dyn Translate>, whole: &Session, what: &str) {
    let unknown = new().unknown();
    let changed = replay(case, &mut *new(), &case.messages, |mut message| {
        for place in ["", "/params", "/params/update", "/request", "/response", "/message", "/event", "/result"] {
            if let Some(object) = message.pointer_mut(place).and_then(Value::as_object_mut) {
                object.insert("from_a_later_version".to_owned(), json!({"a": [1, null, "b"]}));
            }
        }
        vec![unknown.clone(), message]
    });
    let known = |session: &Session| {
        let is_known = |event: &&AgentEvent| !matches!(event, AgentEvent::Raw { .. });
        session.journal.iter().filter(is_known).cloned().collect::<Vec<_>>()
    };
    let (found, expected) = (known(&changed), known(whole));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{what}, with unknown fields and messages");
    }
    assert_eq!(found.len(), expected.len(), "{what}, with unknown fields and messages");
    let raw = changed.journal.iter().filter(|event| matches!(event, AgentEvent::Raw { .. })).count();
    let from_agent = |message: &&Captured| matches!(message, Captured::FromAgent(_));
    assert!(
        raw > 0 || !case.messages.iter().any(|message| from_agent(&message)),
        "{what}: nothing unknown was recorded"
    );
}

/// An agent that says everything twice.
fn check_duplicates(case: &Case, new: &impl Fn() -> Box<dyn Translate>, what: &str) {
    let mut session = replay(case, &mut *new(), &case.messages, |message| vec![message.clone(), message]);
    session.exit(None);
    check_ends(&session, &format!("{what}, everything twice"));
}
