//! The gateway: the real program, real sockets, any free port; a client written by hand against the protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod api;
mod chaos;
mod counts;
mod elsewhere;
mod events;
mod faults;
mod flood;
mod gateway;
mod generated;
mod gone;
mod hostile;
mod http;
mod login;
mod older;
mod refusals;
mod slow;
mod viewer;
#[path = "../support/wait.rs"]
mod wait;
mod ws;
