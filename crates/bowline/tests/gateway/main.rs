//! The gateway: the real program, real sockets, any free port; a client written by hand against the protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod chaos;
mod faults;
mod gateway;
mod http;
mod viewer;
mod ws;
