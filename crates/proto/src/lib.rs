//! Bowline's shared language: what travels between a session and its viewers, and the rules both ends follow.
//!
//! Nothing here touches a socket, a file or a clock. In the order that data walks:
//!
//! - [`ids`], [`size`]: what things are called and how large a terminal may be;
//! - [`session`]: how a session is described;
//! - [`message`]: the text messages of an attach; [`hello`]: how the first of them is read;
//! - [`problem`]: why something is refused;
//! - [`api`]: the bodies of the HTTP API;
//! - [`board`]: the messages of the event stream;
//! - [`frame`]: how messages become bytes on a unix socket, and the binary payloads;
//! - [`control`]: what else the owner's socket is asked;
//! - [`link`]: the two machines that make a resumable conversation of disposable connections;
//! - [`close`], [`backoff`]: what the end of a connection means, and how long to wait for the next;
//! - [`config`]: every bound, and what happens on reaching it.

pub mod api;
pub mod backoff;
pub mod board;
pub mod close;
pub mod config;
pub mod control;
pub mod frame;
pub mod hello;
pub mod ids;
pub mod link;
pub mod message;
pub mod problem;
pub mod session;
pub mod size;
#[cfg(test)]
mod wire;

/// A position in a session's output (or in one client's input), in bytes since the session was created.
/// It never wraps and goes on over restarts.
pub type Offset = u64;
