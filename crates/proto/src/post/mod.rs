//! Sends commands until each is settled, over a network that loses requests and responses.
//!
//! Each command becomes an [`Entry`] of a [`PostQueue`], which decides when to send it, and what the response means
//! ([`classify_response`]). A command has an id, and a session runs it once, however often it arrives; so an entry is
//! sent again until a response, or an event of the session, proves that it arrived. Entries stay in the queue until
//! then; only their [`State`] changes.
//!
//! The queue is a state machine: facts go in through `handle_*`, work comes out of `poll_*`. Times are milliseconds
//! since 1970, by the wall clock, because entries are kept over reloads of a page.

mod entry;
mod item;
mod queue;
mod response;
mod stored;
mod turns;

pub use entry::{Delivery, Entry, Failure, FailureReason, Lane, State, WaitReason};
pub use queue::{Action, PostQueue, SendError};
pub use response::{Response, ResponseClass, classify_response};

use std::time::Duration;

use crate::backoff::Backoff;

/// Entries of one session in each lane; [`PostQueue::send`] refuses another.
pub const MAX_SESSION_ENTRIES: usize = 64;
/// Entries of all sessions in each lane; [`PostQueue::send`] refuses another.
pub const MAX_ENTRIES: usize = 256;
/// Bytes of all commands of a lane, as JSON; [`PostQueue::send`] refuses a command that does not fit.
pub const MAX_BYTES: usize = 2 << 20;
/// An entry that is not settled this long after it was made fails, and the user decides.
pub const SEND_WITHIN: Duration = Duration::from_secs(600);
/// A request without a response for this long is dropped, and the entry is sent again.
pub const RESPONSE_WITHIN: Duration = Duration::from_secs(15);
/// When to send again.
pub const RETRY: Backoff = Backoff { tries: None, ..Backoff::BROWSER };
/// The longest message of a failure, in characters; a longer one is cut.
pub const MAX_MESSAGE: usize = 1000;
/// The longest id of a session, in bytes; [`PostQueue::send`] refuses a longer one.
pub const MAX_SESSION: usize = 256;
