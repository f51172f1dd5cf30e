//! A snapshot puts a new terminal into the state of the original, after any output that is cut anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

mod screen_input;

use bowline_host::saved::SavedScreen;
use bowline_proto::ids::Epoch;
use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use screen_input::{Op, Rng, output, small_size};

fn replica(screen: &mut Screen, history: usize) -> (Screen, Vec<u8>) {
    let bytes = screen.snapshot(Scope::All, usize::MAX);
    let mut again = Screen::new(screen.size(), history);
    again.advance(&bytes);
    (again, bytes)
}

/// The first line in which two dumps differ.
fn difference(a: &str, b: &str) -> Option<String> {
    let line = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    match line {
        Some((a, b)) => Some(format!("actual    {a}\nexpected  {b}")),
        None if a.lines().count() != b.lines().count() => Some("the number of lines differs".into()),
        None => None,
    }
}

fn apply(screen: &mut Screen, op: &Op) {
    match op {
        Op::Output(bytes) => screen.advance(bytes),
        Op::Resize(size) => screen.resize(*size),
    }
}

/// The operations of one seed. Every output is applied in two parts, so that cut points vary, too.
fn ops(rng: &mut Rng) -> Vec<Op> {
    let mut ops = Vec::new();
    for _ in 0..30 + rng.below(60) {
        if rng.below(30) == 0 {
            ops.push(Op::Resize(small_size(rng)));
            continue;
        }
        let bytes = output(rng);
        let cut = rng.below(bytes.len() + 1);
        ops.push(Op::Output(bytes[..cut].to_vec()));
        ops.push(Op::Output(bytes[cut..].to_vec()));
    }
    ops
}

/// Applies the operations, and compares the screen with a replica from its snapshot after each.
fn run(size: Size, history: usize, ops: &[Op]) -> Result<(), String> {
    let mut screen = Screen::new(size, history);
    let mut follower = Screen::new(size, history);
    for (at, op) in ops.iter().enumerate() {
        apply(&mut screen, op);
        apply(&mut follower, op);
        let dump = screen.dump();
        if let Some(difference) = difference(&follower.dump(), &dump) {
            return Err(format!("after op {at} {op:?} a replica differs from the screen:\n{difference}"));
        }
        let (mut again, bytes) = replica(&mut screen, history);
        let _ = screen.take_replies();
        let _ = screen.take_events();
        if let Some(difference) = difference(&again.dump(), &dump) {
            let bytes = String::from_utf8_lossy(&bytes).into_owned();
            return Err(format!(
                "after op {at} {op:?} the snapshot {bytes:?} does not restore the screen:\n{difference}\n{dump}"
            ));
        }
        assert!(again.take_replies().is_empty(), "a snapshot contains a query");
        follower = again;
    }
    Ok(())
}

/// Removes operations as long as the failure remains, so that it is easier to read.
fn shrink(size: Size, history: usize, mut ops: Vec<Op>) -> (Vec<Op>, String) {
    let mut failure = String::new();
    let mut step = ops.len() / 2;
    while step > 0 {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + step).min(ops.len()));
            match run(size, history, &fewer) {
                Err(message) => (ops, failure) = (fewer, message),
                Ok(()) => at += step,
            }
        }
        step /= 2;
    }
    (ops, failure)
}

/// The number of seeds to try: `SCREEN_SEEDS`, or `default`.
fn seeds(default: u64) -> u64 {
    std::env::var("SCREEN_SEEDS").map_or(default, |n| n.parse().unwrap())
}

#[test]
fn r22_a_snapshot_restores_random_output_cut_anywhere() {
    let only = std::env::var("SCREEN_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    for seed in only.map_or(0..seeds(800), |seed| seed..seed + 1) {
        let mut rng = Rng(seed);
        let size = small_size(&mut rng);
        let history = [0, 3, 40][rng.below(3)];
        let ops = ops(&mut rng);
        if run(size, history, &ops).is_err() {
            let (ops, failure) = shrink(size, history, ops);
            panic!("SCREEN_SEED={seed} size {size:?} history {history} ops {ops:#?}\n{failure}");
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
fn r22_a_snapshot_of_the_screen_works_in_any_terminal_state() {
    for seed in 0..seeds(400) {
        let mut rng = Rng(seed);
        let size = small_size(&mut rng);
        let mut screen = Screen::new(size, 20);
        let mut viewer = Screen::new(size, 20);
        (0..40).for_each(|_| screen.advance(&output(&mut rng)));
        (0..20).for_each(|_| viewer.advance(&output(&mut rng)));
        let bytes = screen.snapshot(Scope::Screen, usize::MAX);
        let _ = viewer.take_replies();
        viewer.advance(&bytes);
        let (actual, expected) = (visible(&viewer.dump()), visible(&screen.dump()));
        if let Some(difference) = difference(&actual, &expected) {
            panic!("SCREEN_SEED={seed} after {:?}:\n{difference}", String::from_utf8_lossy(&bytes));
        }
    }
}

/// The file with a session's last screen has it in every format, and reads back as it was written.
#[test]
fn r22_a_saved_screen_reads_back_as_written() {
    let mut screen = Screen::new(Size::default(), 100);
    screen.advance(b"one\r\n\x1b[31mtwo\x1b[m\r\n");
    let saved = screen.save(&Epoch::from_random([7; 4]), 42);
    assert_eq!(SavedScreen::decode(&saved.encode()), Ok(saved.clone()));
    assert_eq!((saved.text.as_str(), saved.offset), ("one\ntwo\n", 42));
    assert_eq!(saved.ansi, "one\n\x1b[31mtwo\x1b[m\n");
}
