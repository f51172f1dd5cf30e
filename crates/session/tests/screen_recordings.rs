//! Recordings of real programs, cut at many points: a snapshot restores the screen, and further output has
//! the same effect on both.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

mod screen_input;

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use screen_input::recordings;

const HISTORY: usize = 200;

/// Distance between cut points. It is prime, so that cuts fall at all kinds of places.
const STRIDE: usize = 17;

fn screen_after(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(Size::default(), HISTORY);
    screen.advance(bytes);
    screen
}

#[test]
fn r22_a_snapshot_restores_recordings_cut_anywhere() {
    let every = std::env::var("SCREEN_EVERY_CUT").is_ok();
    for (name, bytes) in recordings() {
        let mut screen = screen_after(b"");
        for cut in 0..=bytes.len() {
            if cut > 0 {
                screen.advance(&bytes[cut - 1..cut]);
            }
            // Every cut near the start, where programs set up the terminal, then some.
            if !every && cut > 100 && cut % STRIDE != 0 && cut != bytes.len() {
                continue;
            }
            let mut again = screen_after(&screen.snapshot(Scope::All, usize::MAX));
            assert_eq!(again.dump(), screen.dump(), "{name} cut at {cut}");
        }
        assert_eq!(screen_after(&bytes).dump(), screen.dump(), "{name}: in one piece and byte by byte differ");
    }
}

#[test]
fn r22_a_replica_ends_in_the_same_state_as_the_original() {
    for (name, bytes) in recordings() {
        let end = screen_after(&bytes).dump();
        for cut in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
            let mut replica = screen_after(&screen_after(&bytes[..cut]).snapshot(Scope::All, usize::MAX));
            replica.advance(&bytes[cut..]);
            assert_eq!(replica.dump(), end, "{name} cut at {cut}");
        }
    }
}

/// The rows and modes of a dump, without history and title stack, which a snapshot of [`Scope::Screen`]
/// does not cover.
fn visible(dump: &str) -> String {
    let kept = dump.lines().filter(|line| !line.starts_with("title") && !line.trim_start().starts_with('-'));
    kept.map(|line| line.split(" history ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn r22_a_snapshot_of_the_screen_works_from_any_earlier_or_later_screen() {
    for (name, bytes) in recordings() {
        for (was, is) in [(1, 2), (1, 8), (3, 8), (7, 8), (8, 3), (5, 5)] {
            let mut screen = screen_after(&bytes[..bytes.len() * is / 8]);
            let mut viewer = screen_after(&bytes[..bytes.len() * was / 8]);
            viewer.advance(&screen.snapshot(Scope::Screen, usize::MAX));
            assert_eq!(visible(&viewer.dump()), visible(&screen.dump()), "{name} from {was}/8 to {is}/8");
        }
    }
}

#[test]
fn r22_snapshots_are_small_and_fast() {
    for (name, bytes) in recordings() {
        let mut screen = screen_after(&bytes[..bytes.len() / 2]);
        let needed = screen.ansi(usize::MAX).len();
        let sent = screen.snapshot(Scope::All, usize::MAX).len();
        // The fixed part is a reset, the title and the modes.
        assert!(sent <= 3 * needed + 200, "{name}: a snapshot of {sent} bytes for {needed} bytes of text");
    }
    let mut screen = Screen::new(Size::default(), 1000);
    for line in 0..1500 {
        let colour = 31 + line % 6;
        screen.advance(format!("\x1b[{colour}mline {line}\x1b[m of some \x1b[1mcoloured\x1b[m output\r\n").as_bytes());
    }
    let best = (0..5)
        .map(|_| {
            let start = std::time::Instant::now();
            let bytes = screen.snapshot(Scope::All, 1000);
            assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
            start.elapsed()
        })
        .min()
        .unwrap();
    // The target is 10 ms; tests run without optimisation.
    assert!(best.as_millis() < 100, "{best:?}");
}
