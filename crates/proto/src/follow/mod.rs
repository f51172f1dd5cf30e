//! Following an agent session: events in one numbered sequence, resumed after any disconnect.
//!
//! [`Server`] is the session's end and serves all followers of its journal; [`Client`] is one follower's end. Each
//! keeps one number per connection, that of the next event: there is no queue, no window and no acknowledgement.
//! [`Position`] has the rules by which a follower's number moves. A driver reports what happened with `handle_*` and
//! gets the resulting work from `poll_*`, as with [`link`](crate::link).

mod client;
mod message;
mod position;
mod server;

pub use client::{Client, ClientEvent, ClientState, ClientTransmit, FollowerConfig};
pub use message::{FollowAttached, FollowMessage, FollowPermissions};
pub use position::{Position, epoch_begun};
pub use server::{EpochStart, FollowConfig, Server, ServerEvent, Transmit};
