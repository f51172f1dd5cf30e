//! Checks that the web app's table of character widths is the same as the session's.
//!
//! `BOWLINE_BLESS=1 cargo test -p bowline-session --test widths` updates the web app's table.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

use unicode_width::UnicodeWidthChar;

/// Runs of characters whose width is not 1: first, last, width.
fn widths() -> Vec<(u32, u32, usize)> {
    let mut runs: Vec<(u32, u32, usize)> = Vec::new();
    for c in (0xa0..=0x10_ffff).filter_map(char::from_u32) {
        let (code, width) = (c as u32, c.width().unwrap_or(0).min(2));
        match runs.last_mut() {
            Some(run) if run.1 + 1 == code && run.2 == width => run.1 = code,
            _ if width != 1 => runs.push((code, code, width)),
            _ => {}
        }
    }
    runs
}

#[test]
fn r29_the_web_app_has_the_same_character_widths_as_the_session() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packages/web/src/terminal/widths.json");
    let now = format!("{}\n", serde_json::to_string(&widths()).unwrap());
    if std::env::var_os("BOWLINE_BLESS").is_some() {
        std::fs::write(path, now).expect("cannot write widths.json");
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == now,
        "packages/web/src/terminal/widths.json differs from the session's table. To update it, run:\n\
         BOWLINE_BLESS=1 cargo test -p bowline-session --test widths"
    );
}
