//! Tests the event stream of a gateway in this process, over real sockets.
//!
//! The sessions are files of ended sessions. `crates/bowline` tests running ones with the real program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod client;
mod refusals;
mod stream;
mod watch;
mod world;
