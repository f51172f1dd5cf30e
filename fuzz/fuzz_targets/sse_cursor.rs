//! Parses arbitrary cursors of event streams: `cargo fuzz run --sanitizer none sse_cursor`.
#![no_main]

#[path = "../../crates/gateway/tests/hostile_cursor/mod.rs"]
mod hostile_cursor;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile_cursor::parse(data));
