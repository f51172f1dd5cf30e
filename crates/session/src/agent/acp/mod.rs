//! The adapter for agents that speak ACP, version 1: JSON-RPC, one message per line.

mod elicitation;
mod messages;
mod permission;

use std::collections::{BTreeMap, VecDeque};

use bowline_proto::agent::approval::{Answer, Approval, RequestKey};
use bowline_proto::agent::event::{AgentEvent, Delta, Level, RunError, RunId, ToolCall};
use bowline_proto::agent::run::{End, Prompt};
use serde::Deserialize;
use serde_json::{Value, json};

use self::elicitation::Elicitation;
use self::messages::{
    Call, CancelRequest, Chunk, Envelope, Failure, Id, Initialized, NewSession, Permission, Plan, Prompted, Response,
    RpcError, SessionTitle, Tool, ToolHead, Update, UpdateKind,
};
use self::permission::OpenRequest;
use super::{AdapterConfig, AdapterEvent};

/// The version of ACP that is requested.
const PROTOCOL_VERSION: u64 = 1;
/// The longest line whose details, which may be any JSON, are parsed: a parsed value takes up to 100 times as much memory.
/// Of a longer line, texts are used, and details are left out.
const MAX_CONTENT: usize = 512 << 10;
/// Details that are nested deeper become text, so that every client can parse the event that contains them.
const MAX_DEPTH: usize = 64;
/// The most bytes of a tool's input or output in an event, as JSON; more is cut.
const MAX_DETAIL: usize = 32 << 10;
/// The most bytes of an error message, a stop reason or the name of a conversation.
const MAX_SHORT: usize = 1 << 10;
/// The most bytes that are kept of a line that is not a message.
const MAX_NOISE: usize = 4 << 10;
/// The error code of an agent that needs a login.
const NOT_LOGGED_IN: i64 = -32000;
/// The error code for a method that Bowline does not offer.
const NO_METHOD: i64 = -32601;
/// The error code for parameters that make no sense.
const BAD_PARAMS: i64 = -32602;
/// The error code for a request that its sender took back.
const CANCELLED: i64 = -32800;

/// The adapter of one ACP agent.
#[derive(Debug)]
pub struct Acp {
    config: AdapterConfig,
    next_id: i64,
    /// Requests that the agent has not answered.
    pending: BTreeMap<i64, Request>,
    /// The agent's name for the conversation.
    session: Option<String>,
    /// The agent may still send the history of a conversation that it loaded, which the journal has already.
    replays: bool,
    /// The run that is in the agent.
    run: Option<RunId>,
    /// Requests of the agent that wait for an answer of the user.
    open: BTreeMap<RequestKey, OpenRequest>,
    next_request: u64,
    block: Block,
    writes: VecDeque<String>,
    events: VecDeque<AdapterEvent>,
}

/// A request to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Initialize,
    New,
    Load,
    SetMode,
    Prompt(RunId),
}

/// The text that the agent is writing. Another kind of text, another message or a tool call begins the next one.
#[derive(Debug, Default)]
struct Block {
    number: u64,
    current: Option<(Kind, Option<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Acp {
    pub(super) fn new(config: AdapterConfig) -> Acp {
        let mut acp = Acp {
            config,
            next_id: 0,
            pending: BTreeMap::new(),
            session: None,
            replays: false,
            run: None,
            open: BTreeMap::new(),
            next_request: 0,
            block: Block::default(),
            writes: VecDeque::new(),
            events: VecDeque::new(),
        };
        // Without the first two, agents read files and run commands themselves. Their questions need the last one.
        let capabilities = json!({
            "fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false,
            "elicitation": {"form": {}, "url": {}},
        });
        let client = json!({"name": "bowline", "title": "Bowline", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities, "clientInfo": client
        });
        acp.request(Request::Initialize, "initialize", &params);
        acp
    }

    pub(super) fn handle_line(&mut self, line: &[u8]) {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(line) else {
            let start = line.get(..line.len().min(MAX_NOISE)).unwrap_or_default();
            return self.events.push_back(AdapterEvent::Noise(start.to_vec()));
        };
        match (envelope.method, envelope.id) {
            (Some(method), Some(id)) => self.handle_request(&method, id, line),
            (Some(method), None) => self.handle_notification(&method, line),
            (None, Some(id)) => self.handle_response(&id, envelope.error.is_some(), line),
            (None, None) => self.raw(line),
        }
    }

    pub(super) fn prompt(&mut self, run: RunId, prompt: &Prompt) {
        (self.run, self.replays) = (Some(run), false);
        self.block.current = None;
        let content = json!([{"type": "text", "text": prompt.text}]);
        let params = json!({"sessionId": self.session, "prompt": content});
        self.request(Request::Prompt(run), "session/prompt", &params);
    }

    pub(super) fn cancel(&mut self) {
        let params = json!({"sessionId": self.session});
        self.write(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    }

    pub(super) fn poll_write(&mut self) -> Option<String> {
        self.writes.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<AdapterEvent> {
        self.events.pop_front()
    }

    // ---- responses ----

    fn handle_response(&mut self, id: &Id, is_error: bool, line: &[u8]) {
        let number = if let Id::Number(number) = id { Some(number) } else { None };
        let Some(request) = number.and_then(|number| self.pending.remove(number)) else {
            return self.notice(Level::Debug, "the agent answered a request that was not open".to_owned());
        };
        if is_error {
            let error = read::<Failure>(line).map_or(RpcError { code: 0, message: String::new() }, |read| read.error);
            return self.handle_failure(request, &error);
        }
        match request {
            Request::Initialize => self.handle_initialized(read::<Response<Initialized>>(line)),
            Request::New => match read::<Response<NewSession>>(line) {
                // A longer one could not be recorded.
                Some(new) if new.result.session_id.len() > MAX_SHORT => {
                    self.unusable("agent_failed", "the agent's name for the conversation is too long".to_owned());
                }
                Some(new) => self.handle_session(new.result.session_id),
                None => self.unusable("agent_failed", "the agent started no conversation".to_owned()),
            },
            Request::Load => {
                let loaded = self.config.conversation.clone().unwrap_or_default();
                self.handle_session(loaded);
            }
            Request::SetMode => self.events.push_back(AdapterEvent::Ready),
            Request::Prompt(run) => {
                let stop_reason = read::<Response<Prompted>>(line).map(|prompted| short(&prompted.result.stop_reason));
                let success = stop_reason.as_deref() == Some("end_turn");
                self.end(run, End { success, stop_reason, error: None });
            }
        }
    }

    fn handle_initialized(&mut self, initialized: Option<Response<Initialized>>) {
        let Some(Response { result }) = initialized else {
            return self.unusable("agent_failed", "the agent answered `initialize` with something else".to_owned());
        };
        if result.protocol_version != PROTOCOL_VERSION {
            let version = result.protocol_version;
            let message =
                format!("the agent speaks version {version} of ACP; Bowline speaks version {PROTOCOL_VERSION}");
            return self.unusable("agent_failed", message);
        }
        let cwd = self.config.cwd.to_string_lossy().into_owned();
        match &self.config.conversation {
            None => self.request_new(),
            Some(id) if result.agent_capabilities.load_session => {
                let params = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
                self.replays = true;
                self.request(Request::Load, "session/load", &params);
            }
            Some(_) => self.unusable("cannot_resume", "this agent cannot continue a conversation".to_owned()),
        }
    }

    fn request_new(&mut self) {
        let cwd = self.config.cwd.to_string_lossy().into_owned();
        self.request(Request::New, "session/new", &json!({"cwd": cwd, "mcpServers": []}));
    }

    fn handle_session(&mut self, id: String) {
        self.record(AgentEvent::Conversation { id: id.clone() });
        self.session = Some(id.clone());
        match &self.config.mode {
            Some(mode) => {
                let params = json!({"sessionId": id, "modeId": mode});
                self.request(Request::SetMode, "session/set_mode", &params);
            }
            None => self.events.push_back(AdapterEvent::Ready),
        }
    }

    fn handle_failure(&mut self, request: Request, error: &RpcError) {
        let said = short(&error.message);
        let (code, message) = match error.code {
            NOT_LOGGED_IN | 401 => ("not_logged_in", format!("the agent is not logged in: {said}")),
            _ => ("agent_error", said),
        };
        match request {
            Request::Prompt(run) => {
                let error = Some(RunError::new(code, message));
                self.end(run, End { success: false, stop_reason: None, error });
            }
            Request::SetMode => {
                self.notice(Level::Error, format!("the agent refused the mode: {message}"));
                self.events.push_back(AdapterEvent::Ready);
            }
            Request::Load if error.code != NOT_LOGGED_IN && self.config.may_start_anew => {
                // It crashed, perhaps, before it stored the conversation.
                let text = "the agent does not know the conversation, so a new one was started".to_owned();
                self.notice(Level::Warning, text);
                (self.config.conversation, self.replays) = (None, false);
                self.request_new();
            }
            Request::Load if error.code != NOT_LOGGED_IN => {
                self.unusable("unknown_conversation", format!("the agent cannot continue the conversation: {message}"));
            }
            Request::Initialize | Request::New | Request::Load => self.unusable(code, message),
        }
    }

    fn end(&mut self, run: RunId, end: End) {
        if self.run == Some(run) {
            self.run = None;
            self.block.current = None;
        }
        self.events.push_back(AdapterEvent::Ended { run, end });
    }

    // ---- what the agent says by itself ----

    /// Every request is answered, some of them by the user: an agent may wait for it without end.
    fn handle_request(&mut self, method: &str, id: Id, line: &[u8]) {
        match method {
            "session/request_permission" | "elicitation/create" if line.len() > MAX_CONTENT => {
                self.notice(
                    Level::Warning,
                    format!("a request of {} bytes was too large (limit {MAX_CONTENT})", line.len()),
                );
                self.refuse(&id, BAD_PARAMS, "the request is too large");
            }
            "session/request_permission" => match read::<Call<Permission>>(line) {
                Some(Call { params }) => {
                    let approval = permission::approval(self.run, &params);
                    let open = OpenRequest::permission(id, &params);
                    self.tool(params.tool_call, true);
                    self.open_request(open, approval);
                }
                None => self.refuse(&id, BAD_PARAMS, "the parameters are not those of a permission request"),
            },
            "elicitation/create" => match read::<Call<Elicitation>>(line) {
                Some(Call { params })
                    if params.mode.as_deref() == Some("url") || params.requested_schema.is_empty() =>
                {
                    let text = super::plain_text(params.message.as_bytes(), 4 << 10);
                    self.notice(
                        Level::Warning,
                        format!("the agent asked something that has no form; declined: {text}"),
                    );
                    self.write(&json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}}));
                }
                Some(Call { params }) => {
                    let approval = permission::question(self.run, &params);
                    self.open_request(OpenRequest::elicitation(id, params.requested_schema), approval);
                }
                None => self.refuse(&id, BAD_PARAMS, "the parameters are not those of a question"),
            },
            _ => self.refuse(&id, NO_METHOD, "this method is not supported"),
        }
    }

    fn open_request(&mut self, open: OpenRequest, approval: Approval) {
        let request = RequestKey(self.next_request);
        self.next_request += 1;
        self.open.insert(request, open);
        self.events.push_back(AdapterEvent::Requested { request, approval: Box::new(approval) });
    }

    pub(super) fn answer(&mut self, request: RequestKey, answer: &Answer) {
        if let Some(open) = self.open.remove(&request) {
            self.write(&json!({"jsonrpc": "2.0", "id": open.id, "result": open.result(answer)}));
        }
    }

    fn handle_withdrawal(&mut self, line: &[u8]) {
        let Some(Call { params: CancelRequest { request_id } }) = read(line) else { return self.raw(line) };
        let open = self.open.iter().find(|(_, open)| open.id == request_id).map(|(request, _)| *request);
        let Some(request) = open else { return };
        self.open.remove(&request);
        self.refuse(&request_id, CANCELLED, "the request was cancelled");
        self.events.push_back(AdapterEvent::Withdrawn(request));
    }

    fn handle_notification(&mut self, method: &str, line: &[u8]) {
        match method {
            "session/update" => {}
            "$/cancel_request" => return self.handle_withdrawal(line),
            _ => return self.raw(line),
        }
        let kind =
            read::<Call<Update<UpdateKind<'_>>>>(line).map(|call| call.params.update.session_update.into_owned());
        let is_history = |kind: &str| kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        match kind.as_deref() {
            Some(kind) if self.replays && is_history(kind) => {}
            Some("agent_message_chunk") => self.chunk(Kind::Text, line),
            Some("agent_thought_chunk") => self.chunk(Kind::Thinking, line),
            // The prompt itself: the journal has it.
            Some("user_message_chunk") => {}
            Some(kind @ ("tool_call" | "tool_call_update")) if line.len() > MAX_CONTENT => {
                self.update(line, |acp, tool: ToolHead| acp.tool(tool.into(), kind == "tool_call"));
            }
            Some("tool_call") => self.update(line, |acp, tool| acp.tool(tool, true)),
            Some("tool_call_update") => self.update(line, |acp, tool| acp.tool(tool, false)),
            Some("plan") if line.len() > MAX_CONTENT => self.raw(line),
            Some("plan") => self.update(line, |acp, plan: Plan| {
                let entries = bounded(plan.entries).0;
                acp.record(AgentEvent::Plan { run: acp.run, entries });
            }),
            Some("session_info_update") => self.update(line, |acp, info: SessionTitle| {
                if let Some(title) = info.title {
                    acp.record(AgentEvent::Title { title: super::plain_text(title.as_bytes(), 1 << 10) });
                }
            }),
            Some(_) | None => self.raw(line),
        }
    }

    /// Parses an update of this type; one that is of another becomes a `raw` event.
    fn update<'a, T: Deserialize<'a>>(&mut self, line: &'a [u8], handle: impl FnOnce(&mut Acp, T)) {
        match read::<Call<Update<T>>>(line) {
            Some(call) => handle(self, call.params.update),
            None => self.raw(line),
        }
    }

    fn chunk(&mut self, kind: Kind, line: &[u8]) {
        let Some(Call { params: Update { update: Chunk { content, message_id } } }) = read::<Call<Update<Chunk>>>(line)
        else {
            return self.raw(line);
        };
        // An image or a link is not text.
        let Some(delta) = content.text else { return self.raw(line) };
        let current = Some((kind, message_id));
        if self.block.current != current {
            self.block.number += 1;
            self.block.current = current;
        }
        let run = self.run.map_or_else(|| "late".to_owned(), |run| run.to_string());
        let block = format!("{run}.{}", self.block.number);
        let delta = Delta { run: self.run, block, parent: None, delta };
        self.record(match kind {
            Kind::Text => AgentEvent::Text(delta),
            Kind::Thinking => AgentEvent::Thinking(delta),
        });
    }

    fn tool(&mut self, tool: Tool, is_call: bool) {
        self.block.current = None;
        let Tool { tool_call_id, title, name, kind, status, raw_input, content, locations, mut truncated } = tool;
        let mut bound = |value: Option<Value>| {
            value.map(|value| {
                let (value, cut) = bounded(value);
                truncated |= cut;
                value
            })
        };
        let (input, content, locations) = (bound(raw_input), bound(content), bound(locations));
        let line = |text: String| super::plain_text(text.as_bytes(), 4 << 10);
        let call = ToolCall {
            run: self.run,
            call: line(tool_call_id),
            parent: None,
            name: name.map(line),
            kind: kind.map(line),
            title: title.map(line),
            status: status.map(line),
            input,
            content,
            locations,
            truncated,
        };
        self.record(if is_call { AgentEvent::ToolCall(call) } else { AgentEvent::ToolUpdate(call) });
    }

    // ---- out ----

    fn request(&mut self, request: Request, method: &str, params: &Value) {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, request);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn refuse(&mut self, id: &Id, code: i64, message: &str) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn write(&mut self, message: &Value) {
        self.writes.push_back(message.to_string());
    }

    fn record(&mut self, event: AgentEvent) {
        self.events.push_back(AdapterEvent::Event(event));
    }

    fn notice(&mut self, level: Level, text: String) {
        self.record(AgentEvent::Notice { level, text });
    }

    fn unusable(&mut self, code: &str, message: String) {
        self.events.push_back(AdapterEvent::Unusable(RunError::new(code, message)));
    }

    /// Records a message that this version does not understand.
    fn raw(&mut self, line: &[u8]) {
        let (message, truncated) = match line.len() {
            len if len > MAX_DETAIL => {
                let start = line.get(..MAX_DETAIL).unwrap_or_default();
                (Value::String(String::from_utf8_lossy(start).into_owned()), true)
            }
            _ => bounded(read(line).unwrap_or(Value::Null)),
        };
        self.record(AgentEvent::Raw { source: "acp".to_owned(), message, truncated });
    }
}

/// One line of the agent's words, for people.
fn short(text: &str) -> String {
    super::plain_text(text.as_bytes(), MAX_SHORT)
}

fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// The value, or the beginning of its text if it is too large; and whether it was.
fn bounded(value: Value) -> (Value, bool) {
    let text = value.to_string();
    if text.len() <= MAX_DETAIL && depth(&value) <= MAX_DEPTH {
        return (value, false);
    }
    let cut = text.get(..text.floor_char_boundary(MAX_DETAIL)).unwrap_or_default();
    (Value::String(cut.to_owned()), true)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
