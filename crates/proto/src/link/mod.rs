//! The link: the resumable conversation between a session and its viewers, as two machines without IO.
//!
//! [`Server`] is the session's end and serves all viewers of one life; [`Client`] is a viewer's end. Both take
//! facts by `handle_*` and give work by `poll_*`. After any `handle_*`, the driver polls until there is nothing
//! more (transmits only while the connection's own buffer has room), then waits until `poll_timeout`.

mod client;
mod outbox;
mod reconnect;
mod server;

pub use client::{Client, ClientEvent, ClientState, ClientTransmit};
pub use outbox::{NotTaken, Unsent};
pub use reconnect::{Action, Reconnector, Status};
pub use server::{ConnId, InputFull, Server, ServerEvent, Snapshot, Transmit};

pub use crate::config::{ClientConfig, ServerConfig};
