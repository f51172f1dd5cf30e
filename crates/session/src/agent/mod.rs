//! Adapters: how agent programs talk, as state machines without IO.
//!
//! An adapter gets the lines that an agent prints ([`Adapter::handle_line`]) and what the session wants of it. It
//! returns lines to write ([`Adapter::poll_write`]) and news ([`Adapter::poll_event`]). Everything that an agent
//! prints is untrusted: a line that makes no sense becomes a notice or a `raw` event, never an error.

mod acp;
mod line_reader;
mod text;

use std::path::PathBuf;

use bowline_host::agents::Protocol;
use bowline_proto::agent::approval::{Answer, Approval, RequestKey};
use bowline_proto::agent::event::{AgentEvent, RunError, RunId};
use bowline_proto::agent::run::{End, Prompt};

use self::acp::Acp;
pub use self::line_reader::{LineReader, MAX_LINE, ReadLine};
pub(crate) use self::text::{merge_deltas, plain_text, shown_text};

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
}

/// News from the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AdapterEvent {
    /// It takes prompts.
    Ready,
    /// It cannot be used.
    Unusable(RunError),
    /// To be recorded.
    Event(AgentEvent),
    /// It says that a run ended.
    Ended { run: RunId, end: End },
    /// It asks, and waits for [`Adapter::answer`].
    Requested { request: RequestKey, approval: Box<Approval> },
    /// It printed a line that is not a message.
    Noise(Vec<u8>),
    /// It took a request back.
    Withdrawn(RequestKey),
}

/// The adapter of one agent program, from its start to its exit.
#[derive(Debug)]
pub enum Adapter {
    Acp(Box<Acp>),
}

impl Adapter {
    /// The adapter of a program that has just been started.
    pub fn new(protocol: Protocol, config: AdapterConfig) -> Adapter {
        match protocol {
            Protocol::Acp => Adapter::Acp(Box::new(Acp::new(config))),
        }
    }

    /// The agent printed this line.
    pub fn handle_line(&mut self, line: &[u8]) {
        let Adapter::Acp(acp) = self;
        acp.handle_line(line);
    }

    /// Give this prompt to the agent, which is ready and has no other.
    pub fn prompt(&mut self, run: RunId, prompt: &Prompt) {
        let Adapter::Acp(acp) = self;
        acp.prompt(run, prompt);
    }

    /// Tell the agent to stop its run.
    pub fn cancel(&mut self) {
        let Adapter::Acp(acp) = self;
        acp.cancel();
    }

    /// Whether an approval can outlive its run, because the agent still waits for the answer.
    pub fn awaits_after_run(&self) -> bool {
        match self {
            Adapter::Acp(_) => false,
        }
    }

    /// Answers a request of the agent.
    pub fn answer(&mut self, request: RequestKey, answer: &Answer) {
        let Adapter::Acp(acp) = self;
        acp.answer(request, answer);
    }

    /// The next line to write, without its line break: always valid JSON.
    pub fn poll_write(&mut self) -> Option<String> {
        let Adapter::Acp(acp) = self;
        acp.poll_write()
    }

    pub fn poll_event(&mut self) -> Option<AdapterEvent> {
        let Adapter::Acp(acp) = self;
        acp.poll_event()
    }
}
