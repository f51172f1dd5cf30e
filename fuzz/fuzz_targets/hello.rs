//! Feeds arbitrary client messages to a server: `cargo fuzz run --sanitizer none hello`.
#![no_main]
#![allow(dead_code, reason = "the other target uses the rest of the module")]

#[path = "../../crates/proto/tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::run_server(data));
