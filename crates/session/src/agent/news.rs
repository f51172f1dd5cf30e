//! What an adapter has queued: lines for the agent, and news for the session.

use std::collections::VecDeque;

use bowline_proto::agent::approval::{Approval, RequestKey};
use bowline_proto::agent::event::{AgentEvent, Level, RunError, RunId};
use bowline_proto::agent::run::End;
use serde::Serialize;
use serde_json::Value;

use super::details::{MAX_CONTENT, MAX_DETAIL, bounded, read};
use super::output::BlobText;

/// The most bytes that are kept of a line that is not a message.
pub(super) const MAX_NOISE: usize = 4 << 10;

/// News from the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AdapterEvent {
    /// It takes prompts.
    Ready,
    /// It cannot be used.
    Unusable(RunError),
    /// It does not know the conversation, so its program has to be started again without.
    UnknownConversation,
    /// To be recorded.
    Event(AgentEvent),
    /// A tool call to be recorded, which has only the beginning and the end of its output.
    LongOutput { event: AgentEvent, blob: BlobText },
    /// It began a turn by itself. What it says next belongs to the run that it is then told.
    OwnTurn,
    /// It says that a run ended.
    Ended { run: RunId, end: End },
    /// It asks, and waits for [`Adapter::answer`](super::Adapter::answer).
    Requested { request: RequestKey, approval: Box<Approval> },
    /// It printed a line that is not a message.
    Noise(Vec<u8>),
    /// It took a request back.
    Withdrawn(RequestKey),
}

/// Lines and news, oldest first.
#[derive(Debug)]
pub struct News {
    /// The name of the protocol, for `raw` events.
    source: &'static str,
    writes: VecDeque<String>,
    events: VecDeque<AdapterEvent>,
}

impl News {
    pub(super) fn new(source: &'static str) -> News {
        News { source, writes: VecDeque::new(), events: VecDeque::new() }
    }

    pub(super) fn poll_write(&mut self) -> Option<String> {
        self.writes.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<AdapterEvent> {
        self.events.pop_front()
    }

    /// Queues a line for the agent.
    pub(super) fn write(&mut self, message: &impl Serialize) {
        // It cannot fail: all keys of messages are texts.
        self.writes.extend(serde_json::to_string(message));
    }

    pub(super) fn push(&mut self, news: AdapterEvent) {
        self.events.push_back(news);
    }

    pub(super) fn record(&mut self, event: AgentEvent) {
        self.push(AdapterEvent::Event(event));
    }

    /// Records a tool call, with the blob of its output if that is long.
    pub(super) fn record_tool(&mut self, event: AgentEvent, blob: Option<BlobText>) {
        self.push(match blob {
            Some(blob) => AdapterEvent::LongOutput { event, blob },
            None => AdapterEvent::Event(event),
        });
    }

    pub(super) fn notice(&mut self, level: Level, text: String) {
        self.record(AgentEvent::Notice { level, text });
    }

    pub(super) fn unusable(&mut self, code: &str, message: String) {
        self.push(AdapterEvent::Unusable(RunError::new(code, message)));
    }

    /// A line that is not a message.
    pub(super) fn noise(&mut self, line: &[u8]) {
        let start = line.get(..line.len().min(MAX_NOISE)).unwrap_or_default();
        self.push(AdapterEvent::Noise(start.to_vec()));
    }

    /// Records a message that this version does not understand.
    pub(super) fn raw(&mut self, line: &[u8]) {
        let (message, truncated) = match line.len() {
            len if len > MAX_CONTENT => {
                let start = line.get(..MAX_DETAIL).unwrap_or_default();
                (Value::String(String::from_utf8_lossy(start).into_owned()), true)
            }
            _ => bounded(read(line).unwrap_or(Value::Null)),
        };
        self.record(AgentEvent::Raw { source: self.source.to_owned(), message, truncated });
    }
}
