//! The Bowline protocol: the messages between a session and its viewers, and the state machines at both ends.
//!
//! Nothing here touches a socket, a file or a clock. From the smallest types to the state machines:
//!
//! - [`ids`], [`size`]: checked ids, names and terminal sizes;
//! - [`session`]: the description of a session;
//! - [`message`]: the text messages of an attach; [`hello`]: how the first of them is validated;
//! - [`problem`]: error codes, and the body of an HTTP error;
//! - [`api`], [`files`]: the request and response bodies of the HTTP API;
//! - [`board`]: the messages of the event stream;
//! - [`frame`]: the encoding of messages on a unix socket, and of binary payloads on every transport;
//! - [`control`]: the requests that a session's socket answers besides attaching;
//! - [`link`]: the two state machines that keep an exchange of messages going over unreliable connections;
//! - [`journal`]: a line of a session's journal;
//! - [`agent`]: the events of an agent session, its run machine and its fold; [`follow`]: how viewers follow them;
//! - [`post`]: sends commands until each is settled;
//! - [`close`], [`backoff`]: whether to reconnect after a connection ends, and how long to wait first;
//! - [`config`]: every limit, and what happens when it is reached.

pub mod agent;
pub mod api;
pub mod backoff;
pub mod board;
pub mod close;
pub mod config;
pub mod control;
pub mod files;
pub mod follow;
pub mod frame;
pub mod hello;
pub mod ids;
pub mod journal;
pub mod link;
pub mod message;
pub mod post;
pub mod problem;
pub mod session;
pub mod size;
#[cfg(test)]
mod wire;

/// A position in a session's output, in bytes since the session was created, or in one client's input.
///
/// An output offset never wraps, and it continues to grow when the session is restarted.
pub type Offset = u64;
