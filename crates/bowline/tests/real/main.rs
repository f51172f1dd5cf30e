//! The real program: real processes, real PTYs, real sockets, in a state directory of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod birth;
mod crowd;
mod ending;
mod hostile;
mod listing;
mod lives;
mod resume;
mod tail;
mod terminal;
mod viewer;
#[path = "../support/wait.rs"]
mod wait;
mod world;
