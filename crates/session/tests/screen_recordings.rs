//! Recordings of real programs, cut at many points: the snapshot is the screen, and goes on like it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod screen_input;

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use screen_input::recordings;

const HISTORY: usize = 200;

/// Distance between cut points; prime, so that over all recordings every kind of cut happens.
const STRIDE: usize = 17;

fn fold(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(Size::default(), HISTORY);
    screen.advance(bytes);
    screen
}

#[test]
fn r22_recordings_cut_anywhere_come_back() {
    let every = std::env::var("SCREEN_EVERY_CUT").is_ok();
    for (name, bytes) in recordings() {
        let mut screen = fold(b"");
        for cut in 0..=bytes.len() {
            if cut > 0 {
                screen.advance(&bytes[cut - 1..cut]);
            }
            // Around the start of the program every cut, then some.
            if !every && cut > 100 && cut % STRIDE != 0 && cut != bytes.len() {
                continue;
            }
            let mut again = fold(&screen.snapshot(Scope::All, usize::MAX));
            assert_eq!(again.dump(), screen.dump(), "{name} cut at {cut}");
        }
        assert_eq!(fold(&bytes).dump(), screen.dump(), "{name} in one piece and byte by byte");
    }
}

#[test]
fn r22_a_replica_ends_like_the_original() {
    for (name, bytes) in recordings() {
        let end = fold(&bytes).dump();
        for cut in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
            let mut replica = fold(&fold(&bytes[..cut]).snapshot(Scope::All, usize::MAX));
            replica.advance(&bytes[cut..]);
            assert_eq!(replica.dump(), end, "{name} cut at {cut}");
        }
    }
}

/// Rows and modes of a dump, without history and the title stack, which a repaint leaves to the viewer.
fn visible(dump: &str) -> String {
    let kept = dump.lines().filter(|line| !line.starts_with("title") && !line.trim_start().starts_with('-'));
    kept.map(|line| line.split(" history ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn r22_a_repaint_reaches_the_screen_from_any_other() {
    for (name, bytes) in recordings() {
        for (was, is) in [(1, 2), (1, 8), (3, 8), (7, 8), (8, 3), (5, 5)] {
            let mut screen = fold(&bytes[..bytes.len() * is / 8]);
            let mut viewer = fold(&bytes[..bytes.len() * was / 8]);
            viewer.advance(&screen.snapshot(Scope::Screen, usize::MAX));
            assert_eq!(visible(&viewer.dump()), visible(&screen.dump()), "{name} from {was}/8 to {is}/8");
        }
    }
}

#[test]
fn r22_snapshots_are_small_and_fast() {
    for (name, bytes) in recordings() {
        let mut screen = fold(&bytes[..bytes.len() / 2]);
        let needed = screen.ansi(usize::MAX).len();
        let sent = screen.snapshot(Scope::All, usize::MAX).len();
        // The fixed part is a reset, the title and the modes.
        assert!(sent <= 3 * needed + 200, "{name}: {sent} bytes for {needed}");
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
