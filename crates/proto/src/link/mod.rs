//! The link: the resumable exchange of messages between a session and its viewers, as two state machines without IO.
//!
//! [`Server`] is the session's end and serves all viewers of one epoch; [`Client`] is one viewer's end. A driver
//! reports what happened with `handle_*` and gets the resulting work from `poll_*`. After each `handle_*` it polls
//! until nothing is left (transmits only while the connection's buffer has room), then waits until `poll_timeout`.

pub(crate) mod client;
mod outbox;
mod reconnect;
pub(crate) mod server;

pub use client::{Client, ClientEvent, ClientState, ClientTransmit};
pub use outbox::{SubmitError, Unsent};
pub use reconnect::{Action, Reconnector, Status};
pub use server::{ConnId, InputFull, Server, ServerEvent, Snapshot, SnapshotKind, Transmit};

pub use crate::config::{ClientConfig, ServerConfig};
