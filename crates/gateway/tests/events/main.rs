//! The event stream of a gateway in this process, over real sockets: what it says, whom it refuses, how it ends.
//!
//! Sessions here are files, as ended sessions are. What living ones do is tested with the real program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod client;
mod refusals;
mod stream;
mod world;
