//! Runs the adapters of agents and the reader of their lines on hostile input. Used by the fuzz targets and by the seeded
//! test `agent_fuzz.rs`.
//!
//! - `mutate.rs`: what becomes of a captured message; `script.rs`: the captured streams;
//! - `replay.rs`, of the crate itself: the adapter, with the machines of runs and approvals.

mod mutate;
#[path = "../../src/agent/replay.rs"]
mod replay;
mod script;

use std::collections::BTreeMap;

use bowline_host::agents::{ModePolicy, Protocol};
use bowline_proto::agent::approval::{Approval, Decision};
use bowline_proto::agent::config::{OptionValue, Settings};
use bowline_proto::agent::event::AgentEvent;
use bowline_session::agent::{
    Adapter, AdapterConfig, AdapterEvent, LineReader, MAX_LINE, ReadLine, adapter, merge_deltas,
};
use serde::Deserialize;
use serde_json::{Value, json};

use self::mutate::{mutate, mutate_bytes, rename_ids};
use self::replay::{Session, check_ends};
use self::script::{Script, Step, scripts};

/// The longest line of a journal, without its number and time.
const MAX_EVENT: usize = (512 << 10) - 128;
const MAX_DELTA: usize = 16 << 10;
/// The most bytes of an adapter's state, written out.
const MAX_STATE: usize = 24 << 20;
/// More steps are not made, however much data there is.
const MAX_STEPS: usize = 600;

/// Reads choices from the data until it is used up.
pub struct Source<'a>(pub &'a [u8]);

impl<'a> Source<'a> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % end.max(1)
    }

    fn bytes(&mut self) -> &'a [u8] {
        let len = self.below(300).min(self.0.len());
        self.0.split_off(..len).unwrap_or_default()
    }

    fn text(&mut self) -> String {
        match self.byte() % 8 {
            0 => "\u{2028}\u{0}\r\n\"\\ {}".to_owned(),
            1 => "x".repeat(self.below(40_000)),
            _ => String::from_utf8_lossy(self.bytes()).into_owned(),
        }
    }
}

/// Lets the data decide what an agent prints and what its users do, and checks what the adapter makes of it.
pub fn run_adapter(protocol: Protocol, data: &[u8]) {
    let source = &mut Source(data);
    let scripts = scripts(protocol);
    let script = &scripts[source.below(scripts.len())];
    let mut run = AdapterRun::new(protocol, script, source);
    for step in 0..MAX_STEPS {
        if source.0.is_empty() {
            break;
        }
        run.step(source);
        if step % 32 == 31 {
            run.check_size();
        }
    }
    run.check_size();
    // Prompts that wait while a program exits start the next one, which then exits, too.
    while run.is_running {
        run.exit();
    }
    check_ends(&run.session, "after the exit");
}

/// A session of an agent that prints what a captured one printed, more or less.
struct AdapterRun<'a> {
    protocol: Protocol,
    script: &'a Script,
    /// The next step of the script.
    at: usize,
    config: AdapterConfig,
    session: Session,
    /// How often the program was started.
    starts: usize,
    is_running: bool,
    /// How many lines that the adapter wrote, and how many events, were checked.
    written: usize,
    recorded: usize,
    /// Requests of the adapter that were not answered: their ids and methods.
    unanswered: Vec<(Value, String)>,
    /// How often the agent used an id for a request that is not answered.
    requests: BTreeMap<String, usize>,
}

impl<'a> AdapterRun<'a> {
    fn new(protocol: Protocol, script: &'a Script, source: &mut Source<'_>) -> AdapterRun<'a> {
        let flags = source.byte();
        let chosen = |bit: u8, text: &str| (flags & bit != 0).then(|| text.to_owned());
        let config = AdapterConfig {
            cwd: "/home/dev/project".into(),
            conversation: if flags & 1 == 0 { script.conversation.clone() } else { chosen(2, "other") },
            may_start_anew: flags & 4 != 0,
            mode: chosen(8, "plan"),
            model: chosen(16, "opus"),
            mode_policy: ModePolicy { modes: None, allow_bypass: flags & 32 != 0 },
            random: [7; 16],
            runs_as_root: flags & 64 != 0,
        };
        let session = Session::new(adapter(protocol, config.clone()));
        let mut run = AdapterRun {
            protocol,
            script,
            at: 0,
            config,
            session,
            starts: 1,
            is_running: true,
            written: 0,
            recorded: 0,
            unanswered: Vec::new(),
            requests: BTreeMap::new(),
        };
        run.check();
        run
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.byte() {
            0..=149 => self.follow_script(source),
            150..=159 => {
                let message = self.script.messages[source.below(self.script.messages.len())].clone();
                self.print(message, source, true);
            }
            160..=174 => self.respond(source, true),
            175..=189 => self.line(source.bytes()),
            190..=204 => self.session.prompt(&source.text()),
            205..=212 => self.session.abort(),
            213..=224 => self.decide(source),
            225..=229 => self.session.steer(&source.text()),
            230..=236 => self.set(source),
            237..=240 => self.flood(source),
            241..=243 => self.exit(),
            _ => {
                // The script again, or a later part of it.
                self.at = source.below(self.script.steps.len());
            }
        }
        self.check();
    }

    /// Does what the captured client or agent did next.
    fn follow_script(&mut self, source: &mut Source<'_>) {
        let is_changed = source.byte() < 24;
        if !self.unanswered.is_empty() && self.is_running {
            return self.respond(source, is_changed);
        }
        let step = self.script.steps.get(self.at).cloned();
        self.at += 1;
        match step {
            Some(Step::Prompt(text)) if self.session.current().is_some() => self.session.steer(&text),
            Some(Step::Prompt(text)) => self.session.prompt(&text),
            Some(Step::Abort) => self.session.abort(),
            Some(Step::Decide) => self.decide(source),
            Some(Step::Print(message)) => self.print(message, source, is_changed),
            Some(Step::Noise(line)) => self.line(line.as_bytes()),
            Some(Step::Exit) => self.exit(),
            None => self.session.prompt("again"),
        }
    }

    /// Answers a request of the adapter as the captured agent did.
    fn respond(&mut self, source: &mut Source<'_>, is_changed: bool) {
        if self.unanswered.is_empty() || !self.is_running {
            return;
        }
        let at = if is_changed { source.below(self.unanswered.len()) } else { 0 };
        let (id, method) = self.unanswered.remove(at);
        let message = self.script.response(&method, &id, source);
        self.print(message, source, is_changed);
    }

    /// The agent prints a message, which may be changed before.
    fn print(&mut self, mut message: Value, source: &mut Source<'_>, is_changed: bool) {
        self.refer_to_prompt(&mut message);
        if is_changed {
            for _ in 0..1 + source.below(3) {
                mutate(&mut message, source, &self.script.messages);
            }
        }
        let mut line = message.to_string().into_bytes();
        if is_changed && source.byte() < 64 {
            mutate_bytes(&mut line, source);
        }
        self.line(&line);
    }

    /// Claude Code names the message that it answers by an id that the adapter chose.
    fn refer_to_prompt(&self, message: &mut Value) {
        let ids = |line: &&Value| line["uuid"].is_string();
        let Some(id) = self.session.written.iter().rfind(ids).map(|line| line["uuid"].clone()) else { return };
        for key in ["command_uuid", "user_message_uuid"] {
            if let Some(place) = message.get_mut(key).filter(|place| place.is_string()) {
                *place = id.clone();
            }
        }
        if let Some(place) = message.get_mut("user_message_uuids").filter(|place| place.is_array()) {
            *place = json!([id]);
        }
    }

    /// Many similar messages: whatever the adapter keeps of each, it must not keep it for ever.
    fn flood(&mut self, source: &mut Source<'_>) {
        let message = self.script.messages[source.below(self.script.messages.len())].clone();
        for n in 0..400 {
            let mut message = message.clone();
            rename_ids(&mut message, n);
            self.line(message.to_string().as_bytes());
            self.check();
        }
        self.check_size();
    }

    fn line(&mut self, line: &[u8]) {
        if !self.is_running {
            return;
        }
        if let Some(id) = request_id(self.protocol, line) {
            *self.requests.entry(id).or_default() += 1;
        }
        self.session.handle_line(line);
    }

    fn decide(&mut self, source: &mut Source<'_>) {
        let open = &self.session.open;
        if open.is_empty() {
            return;
        }
        let approval = open[source.below(open.len())].1.clone();
        let decision = decision(&approval, source);
        self.session.decide(|other| other.id == approval.id, decision);
    }

    fn set(&mut self, source: &mut Source<'_>) {
        let mut value = |known: &[&str]| match source.byte() % 4 {
            0 => None,
            1 => Some(source.text()),
            _ => Some(known[source.below(known.len())].to_owned()),
        };
        let (mode, model) = (value(&["default", "plan", "yolo", "acceptEdits"]), value(&["opus", "gpt-5"]));
        let option = value(&["effort", "mode"]).zip(value(&["high", "low"]));
        self.session.set(&Settings { mode, model, option: option.map(|(id, value)| OptionValue { id, value }) });
    }

    fn exit(&mut self) {
        if self.is_running {
            self.is_running = false;
            self.session.exit(Some(1));
        }
        self.check();
    }

    /// Checks what the adapter wrote and what was recorded since the last time.
    fn check(&mut self) {
        self.check_written();
        for event in &self.session.journal[self.recorded..] {
            let len = serde_json::to_string(event).expect("an event is JSON").len();
            assert!(len <= MAX_EVENT, "an event of {len} bytes");
            if let AgentEvent::Text(delta) | AgentEvent::Thinking(delta) = event {
                assert!(delta.delta.len() <= MAX_DELTA);
            }
        }
        self.recorded = self.session.journal.len();
        if self.starts < self.session.starts {
            (self.starts, self.is_running) = (self.session.starts, true);
            self.unanswered.clear();
            self.requests.clear();
            self.session.restart(adapter(self.protocol, self.config.clone()));
            self.check();
        }
    }

    fn check_written(&mut self) {
        let lines: Vec<Value> = self.session.written[self.written..].to_vec();
        self.written += lines.len();
        for line in lines {
            assert!(line.is_object());
            if let Some((id, method)) = own_request(self.protocol, &line) {
                self.unanswered.push((id, method));
            } else if let Some(id) = answered_id(self.protocol, &line) {
                let open = self.requests.get_mut(&id).filter(|open| **open > 0);
                *open.unwrap_or_else(|| panic!("a second answer to {id}, or one without a request: {line}")) -= 1;
            }
        }
        // What is never answered is forgotten, as an agent may forget it.
        let surplus = self.unanswered.len().saturating_sub(1000);
        self.unanswered.drain(..surplus);
    }

    /// An adapter's memory is about as large as its state is when it is written out.
    fn check_size(&self) {
        let size = format!("{:?}", self.session.adapter).len();
        assert!(size <= MAX_STATE, "the adapter's state takes {size} bytes");
    }
}

/// What shows that a line is a request of the agent. The rest of it may be anything.
#[derive(Deserialize)]
struct RpcRequest {
    id: Value,
    method: String,
}

#[derive(Deserialize)]
struct ControlRequest {
    r#type: String,
    request_id: Value,
}

/// The id of a line that is a request of the agent.
fn request_id(protocol: Protocol, line: &[u8]) -> Option<String> {
    match protocol {
        Protocol::Claude => {
            let ControlRequest { r#type, request_id } = serde_json::from_slice(line).ok()?;
            (r#type == "control_request").then(|| request_id.to_string())
        }
        Protocol::Acp | Protocol::Codex => {
            let RpcRequest { id, method: _ } = serde_json::from_slice(line).ok()?;
            Some(id.to_string())
        }
    }
}

/// The id and the method of a line that is a request of the adapter.
fn own_request(protocol: Protocol, line: &Value) -> Option<(Value, String)> {
    let (id, method) = match protocol {
        Protocol::Claude => (&line["request_id"], &line["request"]["subtype"]),
        Protocol::Acp | Protocol::Codex => (&line["id"], &line["method"]),
    };
    Some((Some(id).filter(|id| !id.is_null())?.clone(), method.as_str()?.to_owned()))
}

/// The id of the request that a line answers.
fn answered_id(protocol: Protocol, line: &Value) -> Option<String> {
    let id = match protocol {
        Protocol::Claude => &line["response"]["request_id"],
        Protocol::Acp | Protocol::Codex => &line["id"],
    };
    (!id.is_null()).then(|| id.to_string())
}

fn decision(approval: &Approval, source: &mut Source<'_>) -> Decision {
    match source.byte() % 7 {
        0 => Decision::Approve { option: None },
        1 => Decision::Approve { option: Some(source.text()) },
        2 | 3 => {
            let at = source.below(approval.options.len());
            Decision::Approve { option: approval.options.get(at).map(|option| option.id.clone()) }
        }
        4 => Decision::Deny { option: None, reason: Some(source.text()) },
        5 => {
            let at = source.below(approval.options.len());
            Decision::Deny { option: approval.options.get(at).map(|option| option.id.clone()), reason: None }
        }
        _ => {
            let mut answer = |question: &bowline_proto::agent::approval::Question| {
                let label = question.options.first().map(|option| option.label.clone());
                let answer = label.filter(|_| source.byte() < 128).unwrap_or_else(|| source.text());
                (question.id.clone(), vec![answer])
            };
            Decision::Answer { answers: approval.questions.iter().flatten().map(&mut answer).collect() }
        }
    }
}

/// What a reader of lines returned.
#[derive(Debug, PartialEq)]
enum Found {
    /// Its length and a digest, because it may be long.
    Line(usize, u64),
    Skipped(u64),
}

/// Checks that lines are the same however the input is split, and that each line that is too long is reported once.
pub fn read_lines(data: &[u8]) {
    let source = &mut Source(data);
    let text = text_of_lines(source);
    let whole = lines_of(&text, |left| left);
    let (mut split, mut state) = (source.bytes().to_vec(), 0);
    split.push(1);
    let by_choice = lines_of(&text, |_| {
        state = (state + 1) % split.len();
        1 + usize::from(split[state]) * usize::from(split[state]) * 16
    });
    assert_eq!(whole, by_choice);
    let by_reads = lines_of(&text, |_| 64 << 10);
    assert_eq!(whole, by_reads);

    let mut expected: Vec<Found> = Vec::new();
    let (lines, rest) = text.rsplit_once_line();
    for line in lines.split(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > MAX_LINE {
            expected.push(Found::Skipped(line.len() as u64));
        } else if !text.is_empty() {
            expected.push(Found::Line(text.len(), digest(text)));
        }
    }
    assert_eq!(whole.0, expected);
    let rest = if rest.len() > MAX_LINE { &[][..] } else { rest };
    assert_eq!((whole.1, whole.2), (rest.len(), digest(rest)), "what has no line break");
}

/// Lines from the data; some of them about as long as the limit.
fn text_of_lines(source: &mut Source<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    let mut long = 0;
    while !source.0.is_empty() && text.len() < 3 * MAX_LINE {
        match source.byte() {
            0..=3 if long < 2 => {
                long += 1;
                let len = MAX_LINE - 4 + source.below(8);
                text.extend(std::iter::repeat_n(b'x', len));
            }
            4..=31 => text.extend_from_slice(b"\r\n"),
            32..=63 => text.push(b'\n'),
            64..=79 => text.extend(std::iter::repeat_n(b'y', source.below(70_000))),
            _ => text.extend_from_slice(source.bytes()),
        }
    }
    text
}

/// The lines, and the length and digest of what comes after the last line break.
fn lines_of(text: &[u8], mut len: impl FnMut(usize) -> usize) -> (Vec<Found>, usize, u64) {
    let (mut reader, mut found, mut rest) = (LineReader::default(), Vec::new(), text);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(len(rest.len()).min(rest.len()));
        rest = after;
        reader.handle_bytes(chunk, |line| {
            found.push(match line {
                ReadLine::Line(line) => Found::Line(line.len(), digest(line)),
                ReadLine::Skipped(bytes) => Found::Skipped(bytes),
            });
        });
    }
    let rest = reader.take_rest();
    (found, rest.len(), digest(&rest))
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

trait SplitLine {
    /// What comes before the last line break, and after it.
    fn rsplit_once_line(&self) -> (&[u8], &[u8]);
}

impl SplitLine for [u8] {
    fn rsplit_once_line(&self) -> (&[u8], &[u8]) {
        match self.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => (&self[..at], &self[at + 1..]),
            None => (&[], self),
        }
    }
}
