//! Measures how fast the screen parses output, compared with the bare emulator: `cargo run --release -p
//! bowline-session --example screen_speed`.

use std::time::Instant;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::Config;
use alacritty_terminal::vte::ansi::Processor;
use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::Screen;

const TOTAL: usize = 64 << 20;
const READ: usize = 64 << 10;
const HISTORY: usize = 1000;

struct Area;

impl Dimensions for Area {
    fn total_lines(&self) -> usize {
        24
    }
    fn screen_lines(&self) -> usize {
        24
    }
    fn columns(&self) -> usize {
        80
    }
}

fn main() {
    let inputs = [
        (
            "plain",
            repeated(|n| format!("{n:>8} The quick brown fox jumps over the lazy dog, and so on and so forth.\r\n")),
        ),
        ("coloured", repeated(coloured)),
        (
            "links",
            repeated(|n| format!("see https://example.com/{}/{n} for more about it, it is all there\r\n", n % 7)),
        ),
        ("wide", repeated(|n| format!("{n:>8} 快速的棕色狐狸跳过懒狗 快速的棕色狐狸跳过懒狗 ─────\r\n"))),
    ];
    for (name, input) in &inputs {
        let emulator = best(|| {
            let mut term = Term::new(Config { scrolling_history: HISTORY, ..Config::default() }, &Area, VoidListener);
            let mut parser: Processor = Processor::new();
            input.chunks(READ).for_each(|bytes| parser.advance(&mut term, bytes));
        });
        let screen = best(|| {
            let mut screen = Screen::new(Size::default(), HISTORY);
            for bytes in input.chunks(READ) {
                screen.advance(bytes);
                let _ = (screen.take_replies(), screen.take_events());
            }
        });
        println!(
            "{name:10} emulator alone {emulator:6.1} MB/s, screen {screen:6.1} MB/s, {:.0} %",
            screen / emulator * 100.0
        );
    }
    let mut screen = Screen::new(Size::default(), HISTORY);
    screen.advance(&inputs[1].1[..1 << 20]);
    for scope in [Scope::Screen, Scope::All] {
        let start = Instant::now();
        let bytes = screen.snapshot(scope, HISTORY);
        println!("snapshot of {scope:?}: {} bytes in {:?}", bytes.len(), start.elapsed());
    }
}

fn repeated(line: impl Fn(usize) -> String) -> Vec<u8> {
    let lines: Vec<u8> = (0..10_000).flat_map(|n| line(n).into_bytes()).collect();
    lines.iter().copied().cycle().take(TOTAL).collect()
}

fn coloured(n: usize) -> String {
    let (a, b) = (31 + n % 6, 16 + n % 200);
    format!(
        "\x1b[{a}m{n:>8}\x1b[0m \x1b[1;38;5;{b}mThe quick brown\x1b[0m fox \x1b[4mjumps\x1b[24m over the \x1b[7mlazy\x1b[m dog\r\n"
    )
}

/// The best of four runs, in MB/s. The best is the one that other load on the machine affected least.
fn best(run: impl Fn()) -> f64 {
    let seconds = (0..4).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    TOTAL as f64 / 1e6 / seconds.fold(f64::MAX, f64::min)
}
