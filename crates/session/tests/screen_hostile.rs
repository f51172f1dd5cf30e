//! Hostile output uses bounded memory and time, and the screen works afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

mod screen_input;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::{Screen, ScreenEvent, limits};
use screen_input::{Rng, output, recordings, small_size};

/// Counts the bytes in use by each thread, so that a test can measure the memory that an input takes.
struct CountingAllocator;

thread_local! {
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // Fails for bytes that are freed after the thread's variables are destroyed; those do not matter.
    let _ = IN_USE.try_with(|used| used.set(used.get() + bytes));
}

// SAFETY: every call is passed unchanged to the system allocator.
#[allow(unsafe_code, reason = "measuring memory needs an allocator that counts")]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The memory that a screen with `history` lines uses after `feed`, in bytes.
fn memory_after(history: usize, feed: impl FnOnce(&mut Screen)) -> usize {
    let before = IN_USE.get();
    let mut screen = Screen::new(Size::default(), history);
    feed(&mut screen);
    usize::try_from(IN_USE.get() - before).unwrap_or(0)
}

#[test]
fn r52_hostile_output_is_bounded_in_memory_and_time() {
    let new = memory_after(10_000, |_| {});
    assert!(new < 200 << 10, "a new screen uses {new} bytes");
    let repeated = |text: &str, times: usize| text.repeat(times).into_bytes();
    let mut links = Vec::new();
    for n in 0..6_000 {
        links.extend_from_slice(format!("\x1b]8;;http://x.y/{n}{}\x1b\\a", "p".repeat(1500)).as_bytes());
    }
    let mut unique_ids = Vec::new();
    for n in 0..50_000 {
        unique_ids.extend_from_slice(format!("\x1b]8;id={n};http://x.y/\x1b\\a").as_bytes());
    }
    let inputs: Vec<(&str, Vec<u8>)> = vec![
        ("kitty keyboard pushes", repeated("\x1b[>1u", 10_000)),
        ("an endless OSC", [b"\x1b]2;".to_vec(), repeated("x", 1 << 20)].concat()),
        ("an endless OSC of separators", [b"\x1b]4;".to_vec(), repeated(";", 1 << 20)].concat()),
        ("an endless DCS", [b"\x1bP$q".to_vec(), repeated("x", 1 << 20)].concat()),
        ("an endless DCS header", [b"\x1bP".to_vec(), repeated("1", 1 << 20)].concat()),
        ("an endless APC", [b"\x1b_G".to_vec(), repeated("x", 1 << 20)].concat()),
        ("an endless CSI", [b"\x1b[".to_vec(), repeated("1;", 1 << 20)].concat()),
        ("endless intermediates", [b"\x1b".to_vec(), repeated("(", 1 << 20)].concat()),
        ("many marks on one character", [b"a".to_vec(), repeated("\u{301}", 1 << 20)].concat()),
        ("marks on nothing", repeated("\u{200b}", 1 << 18)),
        ("title pushes", repeated("\x1b]2;some title\x07\x1b[22;0t", 20_000)),
        ("long titles", repeated(&format!("\x1b]2;{}\x07\x1b[22t", "t".repeat(50_000)), 40)),
        ("repeats", repeated("x\x1b[65535b", 200)),
        ("repeats of a wide character with marks", repeated("宽\u{301}\u{301}\x1b[65535b", 100)),
        ("a synchronised update without end", [b"\x1b[?2026h".to_vec(), repeated("text\r\n", 100_000)].concat()),
        ("many parameters", repeated(&format!("\x1b[{}m", "38;2;1;2;3;".repeat(100)), 2_000)),
        (
            "huge counts",
            repeated("\x1b[65535@\x1b[65535P\x1b[65535X\x1b[65535L\x1b[65535M\x1b[65535S\x1b[65535T", 2_000),
        ),
        (
            "huge moves and tabs",
            repeated("\x1b[3g\x1b[65535Z\x1b[65535I\x1b[65535A\x1b[65535B\x1b[99999999999;5H", 10_000),
        ),
        ("DECALN", repeated("\x1b#8", 5_000)),
        ("resets", repeated("\x1bcx\r\n", 20_000)),
        ("switching screens", repeated("\x1b[?1049h\x1b[?1049l", 10_000)),
        ("queries", repeated("\x1b[c\x1b[6n\x1b]4;1;?\x07\x1bP+q544e\x1b\\", 50_000)),
        ("bells and notifications", repeated("\x07\x1b]9;hey\x07\x1b]99;i=1:d=0;part\x1b\\", 50_000)),
        ("URLs", repeated("http://a.b/c http://d.e/f http://::: ", 30_000)),
        ("colons", repeated("://:://http:http://", 50_000)),
        ("8-bit controls and bad UTF-8", (0..1 << 18).map(|n| 0x80 | (n % 127) as u8).collect()),
        ("links", links),
        ("links with unique ids", unique_ids),
    ];
    for (name, input) in &inputs {
        let start = Instant::now();
        let used = memory_after(100, |screen| {
            screen.advance(input);
            let replies = screen.take_replies();
            assert!(replies.len() <= limits::REPLIES_MAX, "{name}: {} bytes of replies", replies.len());
            assert!(screen.take_events().len() <= limits::EVENTS_MAX + 3, "{name}: too many events");
            assert!(screen.snapshot(Scope::All, usize::MAX).len() < 4 << 20, "{name}: a huge snapshot");
        });
        let took = start.elapsed();
        if std::env::var("SCREEN_COSTS").is_ok() {
            eprintln!("{name}: {} KB used, {took:?} for {} KB", used / 1024, input.len() / 1024);
        }
        // The emulator allocates 2 MB for the first thousand rows of history. Combining marks take more
        // than that again; links may take 4 MB.
        let most = if name.contains("links") || name.contains("marks") { 10 << 20 } else { 4 << 20 };
        assert!(used < most, "{name}: {used} bytes used");
        assert!(took < Duration::from_secs(20), "{name}: {took:?} for {} bytes", input.len());
    }
}

#[test]
fn r52_the_screen_works_after_hostile_output() {
    for start in ["\x1b]2;", "\x1bP$q", "\x1b_G", "\x1b[", "\x1b(", "\x1bPq", "\x1bP"] {
        let mut screen = Screen::new(Size::default(), 100);
        screen.advance(start.as_bytes());
        screen.advance(&vec![b'1'; 200_000]);
        let mut replica = Screen::new(Size::default(), 100);
        replica.advance(&screen.snapshot(Scope::All, usize::MAX));
        assert_eq!(replica.dump(), screen.dump(), "{start:?}");
        for screen in [&mut screen, &mut replica] {
            screen.advance(b"\x1b\\\r\nstill here");
            assert!(screen.text(0).contains("still here"), "{start:?}");
            assert_eq!(screen.title(), "", "{start:?}: a title that is too long is not ignored");
        }
    }
}

#[test]
fn r52_no_bytes_break_the_screen() {
    let recordings = recordings();
    for seed in 0..100 {
        let mut rng = Rng(seed);
        let mut screen = Screen::new(small_size(&mut rng), [0, 5, 50][rng.below(3)]);
        for _ in 0..40 {
            let bytes: Vec<u8> = match rng.below(4) {
                0 => (0..rng.below(300)).map(|_| rng.next() as u8).collect(),
                1 => output(&mut rng),
                _ => mutated(&recordings[rng.below(recordings.len())].1, &mut rng),
            };
            screen.advance(&bytes);
            if rng.below(8) == 0 {
                screen.resize(small_size(&mut rng));
            }
        }
        let _ = (screen.text(9), screen.ansi(9), screen.json(9), screen.take_events(), screen.take_replies());
        let mut replica = Screen::new(screen.size(), 50);
        replica.advance(&screen.snapshot(Scope::All, 0));
        assert_eq!(replica.text(0), screen.text(0), "seed {seed}");
    }
}

/// A part of a recording, with a few bytes changed.
fn mutated(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let start = rng.below(bytes.len());
    let mut part = bytes[start..(start + rng.below(2000)).min(bytes.len())].to_vec();
    for _ in 0..rng.below(8) {
        if !part.is_empty() {
            let at = rng.below(part.len());
            part[at] = b"\x1b[]P;?0123456789hlmHJKr\x07\x9c\xff\x00"[rng.below(27)];
        }
    }
    part
}

#[test]
fn r52_titles_and_notifications_have_no_control_characters() {
    let mut screen = Screen::new(Size::default(), 10);
    screen.advance("\x1b]2;a\u{9b}31mb\u{202e}c\x07\x1b]777;notify;t\u{85}x;b\u{7f}y\x07".as_bytes());
    let events = screen.take_events();
    let notify = ScreenEvent::Notify { title: "tx".into(), body: "by".into() };
    assert_eq!(events, [ScreenEvent::Title("a31mbc".into()), notify]);
    screen.advance(b"\x1b]2;secret\x07\x1b[21t\x1b[20t");
    assert_eq!(screen.take_replies(), b"\x1b]l\x1b\\\x1b]L\x1b\\", "a title would be typed into the shell");
}

/// Each cell has colours of its own, which is about as long as a snapshot of text gets.
#[test]
fn r52_snapshots_and_renderings_of_coloured_scrollback_are_bounded() {
    const LINES: u32 = 18_000;
    let mut screen = Screen::new(Size::new(20, 10).unwrap(), LINES as usize);
    for line in 0..LINES {
        let cell = |col: u32| format!("\x1b[38;2;{};1;{col};48;2;{col};200;{}mx", line % 256, line / 256);
        screen.advance((0..20).map(cell).chain([format!("\x1b[m\r{line}\r\n")]).collect::<String>().as_bytes());
    }
    let snapshot = screen.snapshot(Scope::All, usize::MAX);
    let len = snapshot.len();
    assert!((limits::PAINTED_SCROLLBACK_MAX / 2..limits::PAINTED_SCROLLBACK_MAX + 100_000).contains(&len), "{len}");
    let mut replica = Screen::new(screen.size(), LINES as usize);
    replica.advance(&snapshot);
    assert_eq!(replica.text(1000), screen.text(1000), "the newest lines are kept, in order");
    let rendered = [screen.ansi(usize::MAX).len(), screen.json(usize::MAX).len()];
    assert!(rendered.iter().all(|len| (1 << 20..limits::RENDERED_MAX + 100_000).contains(len)), "{rendered:?}");
}

/// Two long links in alternating cells, so that a snapshot changes the link at each cell.
#[test]
fn r52_a_snapshot_does_not_repeat_long_links_without_end() {
    let mut screen = Screen::new(Size::new(500, 20).unwrap(), 100);
    for (first, name) in [(1, "a"), (2, "b")] {
        screen.advance(format!("\x1b]8;;https://example.org/{}\x1b\\", name.repeat(1900)).as_bytes());
        for row in 1..=20 {
            screen.advance(format!("\x1b[{row};{first}H{}", "x\x1b[C".repeat(250)).as_bytes());
        }
    }
    let len = screen.snapshot(Scope::All, usize::MAX).len();
    assert!((1 << 20..limits::PAINTED_LINKS_MAX + 500_000).contains(&len), "{len}");
}

#[test]
fn r52_the_links_of_the_scrollback_and_the_screen_have_one_limit() {
    let mut screen = Screen::new(Size::new(500, 20).unwrap(), 20);
    for _ in 0..2 {
        screen.advance(&b"\n".repeat(20));
        for (first, name) in [(1, "a"), (2, "b")] {
            screen.advance(format!("\x1b]8;;https://example.org/{}\x1b\\", name.repeat(1900)).as_bytes());
            for row in 1..=20 {
                screen.advance(format!("\x1b[{row};{first}H{}", "x\x1b[C".repeat(250)).as_bytes());
            }
        }
    }
    let len = screen.snapshot(Scope::All, usize::MAX).len();
    assert!((1 << 20..limits::PAINTED_LINKS_MAX + 500_000).contains(&len), "{len}");
}
