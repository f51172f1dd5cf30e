//! Lets an ACP agent print captured, changed and arbitrary lines: `cargo fuzz run --sanitizer none agent_acp`.
#![no_main]
#![allow(dead_code, reason = "the other targets use the rest of the module")]

#[path = "../../crates/session/tests/hostile_agent/mod.rs"]
mod hostile_agent;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile_agent::run_adapter(bowline_host::agents::Protocol::Acp, data));
