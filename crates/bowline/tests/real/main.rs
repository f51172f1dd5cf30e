//! Tests of the real binary, with real processes, PTYs and sockets. Each test has its own state directory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod crowd;
mod ending;
mod hostile;
mod lifecycle;
mod listing;
mod resume;
mod stalled;
mod start;
mod tail;
mod terminal;
mod viewer;
#[path = "../support/wait.rs"]
mod wait;
mod world;
