//! The texts of Claude Code: parts that the model is writing, and whole messages that repeat them.

use std::collections::BTreeMap;

use bowline_proto::agent::event::{AgentEvent, Delta, RunId};

use super::messages::{MessageUsage, StreamEvent};
use crate::agent::plain_text;

/// The most blocks of a message whose parts are recorded while they are written; later ones are recorded when they are whole.
const MAX_BLOCKS: usize = 256;
/// The longest id of a message in bytes; the parts of one with a longer id are recorded again when they are whole.
const MAX_ID: usize = 256;
/// The most bytes of a text that are compared with the whole one.
const MAX_START: usize = 16 << 10;
/// The most bytes of the id of a tool call.
const MAX_PARENT: usize = 4 << 10;

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
}

/// The message that the model is writing. Sub-agents are not streamed.
#[derive(Debug)]
pub(super) struct Stream {
    /// The name of blocks that belong to no run. It differs from that of other processes, which count from 1, too.
    late: String,
    message: String,
    /// The model that writes it.
    pub(super) model: String,
    /// What the request for it used.
    pub(super) usage: Option<MessageUsage>,
    blocks: BTreeMap<u64, Block>,
    /// The number of the last text, counted over the whole process.
    last: u64,
}

/// A text that was recorded in parts.
#[derive(Debug)]
struct Block {
    number: u64,
    kind: Kind,
    /// The bytes that were recorded.
    len: usize,
    /// The first of them, by which the whole text is recognized.
    start: Vec<u8>,
    /// The whole text has come.
    is_whole: bool,
}

impl Block {
    /// Whether what was recorded is the beginning of this text, or the text that of what was recorded.
    fn is_part_of(&self, whole: &str) -> bool {
        let common = self.start.len().min(whole.len());
        self.start.get(..common) == whole.as_bytes().get(..common) && whole.is_char_boundary(self.len.min(whole.len()))
    }
}

impl Stream {
    pub(super) fn new(random: [u8; 16]) -> Stream {
        let late = format!("late{:08x}", u128::from_be_bytes(random) >> 96);
        let (message, model) = (String::new(), String::new());
        Stream { late, message, model, usage: None, blocks: BTreeMap::new(), last: 0 }
    }

    /// What to record of a part.
    pub(super) fn handle(&mut self, run: Option<RunId>, event: StreamEvent) -> Option<AgentEvent> {
        match event.kind.as_str() {
            "message_start" => {
                self.blocks.clear();
                self.message = Some(event.message.id).filter(|id| id.len() <= MAX_ID).unwrap_or_default();
                self.model = Some(event.message.model).filter(|model| model.len() <= MAX_ID).unwrap_or_default();
                self.usage = Some(event.message.usage);
                None
            }
            "content_block_delta" => {
                let (kind, delta) = match (event.delta.text, event.delta.thinking) {
                    (Some(text), _) => (Kind::Text, text),
                    (None, Some(thinking)) => (Kind::Thinking, thinking),
                    (None, None) => return None,
                };
                if delta.is_empty() || (self.blocks.len() >= MAX_BLOCKS && !self.blocks.contains_key(&event.index)) {
                    return None;
                }
                let last = &mut self.last;
                let block = self.blocks.entry(event.index).or_insert_with(|| {
                    *last += 1;
                    Block { number: *last, kind, len: 0, start: Vec::new(), is_whole: false }
                });
                // A block has one kind.
                if block.kind != kind {
                    return None;
                }
                block.len += delta.len();
                let room = MAX_START - block.start.len();
                block.start.extend(delta.bytes().take(room));
                let number = block.number;
                Some(self.text(kind, run, None, number, delta))
            }
            _ => None,
        }
    }

    /// What to record of a whole text: only what was not recorded in parts.
    pub(super) fn whole(
        &mut self,
        message: &str,
        kind: Kind,
        run: Option<RunId>,
        parent: Option<&str>,
        whole: String,
    ) -> Option<AgentEvent> {
        if whole.is_empty() {
            return None;
        }
        let is_streamed = parent.is_none() && !message.is_empty() && message == self.message;
        let mut blocks = self.blocks.values_mut();
        let is_meant = |block: &&mut Block| block.kind == kind && !block.is_whole && block.is_part_of(&whole);
        let block = if is_streamed { blocks.find(is_meant) } else { None };
        if let Some(block) = block {
            block.is_whole = true;
            let rest = whole.get(block.len..).filter(|rest| !rest.is_empty())?.to_owned();
            let number = block.number;
            return Some(self.text(kind, run, None, number, rest));
        }
        self.last += 1;
        Some(self.text(kind, run, parent, self.last, whole))
    }

    fn text(&self, kind: Kind, run: Option<RunId>, parent: Option<&str>, number: u64, delta: String) -> AgentEvent {
        let name = run.map_or_else(|| self.late.clone(), |run| run.to_string());
        let parent = parent.map(|parent| plain_text(parent.as_bytes(), MAX_PARENT));
        let delta = Delta { run, block: format!("{name}.{number}"), parent, delta };
        match kind {
            Kind::Text => AgentEvent::Text(delta),
            Kind::Thinking => AgentEvent::Thinking(delta),
        }
    }
}
