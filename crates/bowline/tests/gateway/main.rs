//! Tests of the gateway: the real binary on a free port, with a client that implements the protocol independently.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod agents;
mod api;
mod callers;
mod chaos;
mod damage;
mod damaged;
mod ended;
mod events;
mod faults;
mod flood;
mod folders;
mod full_disk;
mod gateway;
mod generated;
mod gone;
mod hostile;
mod http;
mod login;
mod memory;
mod metrics;
mod older;
mod other_machine;
mod refusal_log;
mod refusals;
mod slow;
mod strangers;
mod stuck;
mod viewer;
#[path = "../support/wait.rs"]
mod wait;
mod ws;
