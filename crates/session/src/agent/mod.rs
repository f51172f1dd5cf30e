//! Adapters: how agent programs talk, as state machines without IO.
//!
//! An adapter gets the lines that an agent prints ([`Adapter::handle_line`]) and what the session wants of it. It
//! returns lines to write ([`Adapter::poll_write`]) and news ([`Adapter::poll_event`]). Everything that an agent
//! prints is untrusted: a line that makes no sense becomes a notice or a `raw` event, never an error.
//!
//! - `acp/`, `claude/`, `codex/`: the protocols; `rpc.rs`: the messages of JSON-RPC, which two of them use;
//! - `news.rs`: what every adapter queues; `attachment.rs`: the files that go with prompts;
//! - `details.rs`, `output.rs`, `output_text.rs`, `text.rs`: what agents say and what their tools print, cut to what can
//!   be recorded;
//! - `line_reader.rs`, `bounded_list.rs`: lines and lists of a bounded length.

mod acp;
mod attachment;
mod bounded_list;
mod claude;
mod codex;
mod details;
mod line_reader;
mod news;
mod output;
mod output_text;
#[cfg(test)]
mod replay;
mod rpc;
mod text;

use std::fmt;
use std::path::PathBuf;

use bowline_host::agents::{ModePolicy, Protocol};
use bowline_proto::agent::approval::{Answer, RequestKey};
use bowline_proto::agent::config::Settings;
use bowline_proto::agent::event::RunId;
use bowline_proto::agent::run::Prompt;

pub use self::attachment::Attachment;
pub use self::line_reader::{LineReader, MAX_LINE, ReadLine};
pub use self::news::{AdapterEvent, News};
pub use self::output::BlobText;
pub use self::text::merge_deltas;
pub(crate) use self::text::{plain_text, shown_text};

/// What an adapter needs to know to begin.
#[derive(Clone, Debug)]
pub struct AdapterConfig {
    pub cwd: PathBuf,
    /// The conversation to continue; a new one if absent.
    pub conversation: Option<String>,
    /// If the agent does not know that conversation, it may start a new one instead.
    pub may_start_anew: bool,
    /// The mode to set.
    pub mode: Option<String>,
    /// The model to set.
    pub model: Option<String>,
    /// The modes that a client may choose. Others are not shown.
    pub mode_policy: ModePolicy,
    /// Random bytes, for ids that must differ from those of every other process of an agent.
    pub random: [u8; 16],
    /// The agent's program runs as root. Claude Code then refuses to skip approvals.
    pub runs_as_root: bool,
}

/// The adapter of one agent program, from its start to its exit.
pub trait Adapter: fmt::Debug {
    /// The agent printed this line.
    fn handle_line(&mut self, line: &[u8]);

    /// Give this prompt to the agent, which is ready and has no other, with the attachments that are left of it. One that
    /// the agent cannot take is mentioned by its path.
    fn prompt(&mut self, run: RunId, prompt: &Prompt, attachments: &[Attachment]);

    /// The turn that the agent began by itself is this run.
    fn handle_own_turn(&mut self, run: RunId);

    /// Tell the agent to stop its run.
    fn cancel(&mut self);

    /// Answers a request of the agent.
    fn answer(&mut self, request: RequestKey, answer: &Answer);

    /// Whether the run in the agent can be given more instructions.
    fn can_steer(&self) -> bool;

    /// Gives more instructions to the run in the agent.
    fn steer(&mut self, text: &str);

    /// Changes settings. The agent's answer becomes a `config` event; if it refuses, also a notice.
    fn set(&mut self, settings: &Settings);

    /// Whether the agent still waits for the answer to this request of its when the run has ended.
    fn awaits_after_run(&self, request: RequestKey) -> bool;

    /// What the adapter has queued.
    fn news(&mut self) -> &mut News;

    /// The next line to write, without its line break: always valid JSON.
    fn poll_write(&mut self) -> Option<String> {
        self.news().poll_write()
    }

    fn poll_event(&mut self) -> Option<AdapterEvent> {
        self.news().poll_event()
    }
}

/// The adapter of a program that has just been started.
pub fn adapter(protocol: Protocol, config: AdapterConfig) -> Box<dyn Adapter> {
    match protocol {
        Protocol::Acp => Box::new(acp::Acp::new(config)),
        Protocol::Claude => Box::new(claude::Claude::new(config)),
        Protocol::Codex => Box::new(codex::Codex::new(config)),
    }
}

/// The arguments that a program gets after those in the table of agents.
pub fn arguments(protocol: Protocol, config: &AdapterConfig) -> Vec<String> {
    match protocol {
        Protocol::Acp => Vec::new(),
        Protocol::Claude => claude::arguments(config),
        Protocol::Codex => codex::arguments(config),
    }
}
