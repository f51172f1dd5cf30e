//! Real agent programs, through a real gateway and real session processes, against a stub of the model APIs.
//!
//! `BOWLINE_TEST_AGENTS` names the programs, separated by commas; [`selection`] says which run without it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

#[path = "../gateway/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of the gateway")]
mod gateway;
#[path = "../gateway/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the gateway")]
mod http;
mod processes;
mod programs;
mod scenarios;
mod selection;
mod stub;
#[path = "../support/wait.rs"]
mod wait;
#[path = "../gateway/ws.rs"]
#[allow(dead_code, reason = "shared with the tests of the gateway")]
mod ws;
