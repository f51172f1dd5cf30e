//! Reads and continues arbitrary and damaged journals: `cargo fuzz run --sanitizer none journal`.
#![no_main]

#[path = "../../crates/host/tests/hostile_journal/mod.rs"]
mod hostile_journal;

use std::sync::LazyLock;

use bowline_host::home::SessionDir;

static DIR: LazyLock<SessionDir> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("bowline-fuzz-{}", std::process::id()));
    hostile_journal::session_dir(&root)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile_journal::read_journal(&DIR, data));
