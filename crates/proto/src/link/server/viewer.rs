//! An attached client, and the messages to send to it besides its output.

use std::collections::VecDeque;
use std::time::Duration;

use super::caller::ClientKey;
use super::input_queue::Serial;
use super::stream::Stream;
use crate::Offset;
use crate::config::NOTICES;
use crate::ids::ClientId;
use crate::message::{ServerMessage, Theme};
use crate::problem::Code;
use crate::size::Size;

/// An attached client.
#[derive(Debug)]
pub(super) struct Viewer {
    pub(super) serial: Serial,
    pub(super) client: ClientKey,
    /// The id that other viewers see. The client's own would let others with the same caller take its place.
    pub(super) public_id: ClientId,
    /// May type, send commands and own the size.
    pub(super) write: bool,
    pub(super) window: Option<Size>,
    pub(super) theme: Option<Theme>,
    pub(super) scrollback: u32,
    /// Viewers are numbered in the order in which they attached.
    pub(super) rank: u64,
    /// `attached` was sent.
    pub(super) announced: bool,
    /// The value of `input` in `attached`.
    pub(super) input: Option<Offset>,
    pub(super) stream: Stream,
    pub(super) pending: PendingMessages,
    pub(super) unanswered_commands: usize,
    /// The viewer was sent an error for the current hole in its input.
    pub(super) gap_reported: bool,
}

/// The messages to send to a viewer besides its output.
#[derive(Debug, Default)]
pub(super) struct PendingMessages {
    pub(super) title: bool,
    pub(super) cwd: bool,
    pub(super) bell: bool,
    /// When to send the list of attached clients.
    pub(super) presence: Option<Duration>,
    /// When to acknowledge written input, unless output is sent earlier.
    pub(super) ack: Option<Duration>,
    /// The last frame was output, so an acknowledgement can be sent with it.
    pub(super) sent_output: bool,
    pub(super) notices: VecDeque<ServerMessage>,
    pub(super) dropped_notices: u64,
}

impl PendingMessages {
    /// Queues a notice; past [`NOTICES`] the oldest one is dropped.
    pub(super) fn push_notice(&mut self, notice: ServerMessage) {
        if self.notices.len() >= NOTICES {
            self.notices.pop_front();
            self.dropped_notices += 1;
        }
        self.notices.push_back(notice);
    }

    pub(super) fn next_notice(&mut self) -> Option<ServerMessage> {
        match std::mem::take(&mut self.dropped_notices) {
            0 => self.notices.pop_front(),
            n => Some(ServerMessage::Error {
                code: Code::TooMany,
                message: format!("{n} notices were dropped because the viewer was too slow"),
                fatal: false,
            }),
        }
    }
}
