//! A snapshot puts a fresh terminal into the state of the one it was taken from, at any cut of any output.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod screen_input;

use bowline_host::saved::Saved;
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
        Some((a, b)) => Some(format!("is   {a}\nwas  {b}")),
        None if a.lines().count() != b.lines().count() => Some("another number of lines".into()),
        None => None,
    }
}

fn apply(screen: &mut Screen, op: &Op) {
    match op {
        Op::Output(bytes) => screen.advance(bytes),
        Op::Resize(size) => screen.resize(*size),
    }
}

/// What one seed does; cut points are part of it, since every output is applied in two parts.
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

/// The operations that lead to a difference, and what differs.
fn run(size: Size, history: usize, ops: &[Op]) -> Result<(), String> {
    let mut screen = Screen::new(size, history);
    let mut follower = Screen::new(size, history);
    for (at, op) in ops.iter().enumerate() {
        apply(&mut screen, op);
        apply(&mut follower, op);
        let dump = screen.dump();
        if let Some(difference) = difference(&follower.dump(), &dump) {
            return Err(format!("after op {at} {op:?} a replica went another way:\n{difference}"));
        }
        let (mut again, bytes) = replica(&mut screen, history);
        let _ = screen.take_replies();
        let _ = screen.take_events();
        if let Some(difference) = difference(&again.dump(), &dump) {
            let bytes = String::from_utf8_lossy(&bytes).into_owned();
            return Err(format!(
                "after op {at} {op:?} the snapshot {bytes:?} is not the screen:\n{difference}\n{dump}"
            ));
        }
        assert!(again.take_replies().is_empty(), "a snapshot makes a terminal answer");
        follower = again;
    }
    Ok(())
}

/// Leaves out operations as long as the failure stays, so that it can be read.
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

/// How many seeds to try, unless `SCREEN_SEEDS` says otherwise.
fn seeds(usual: u64) -> u64 {
    std::env::var("SCREEN_SEEDS").map_or(usual, |n| n.parse().unwrap())
}

#[test]
fn r22_random_output_cut_anywhere_comes_back() {
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

/// Rows and modes of a dump, without history and the title stack, which a repaint leaves to the viewer.
fn visible(dump: &str) -> String {
    let kept = dump.lines().filter(|line| !line.starts_with("title") && !line.trim_start().starts_with('-'));
    kept.map(|line| line.split(" history ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn r22_a_repaint_reaches_any_screen_from_any_other() {
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
        let (shown, wanted) = (visible(&viewer.dump()), visible(&screen.dump()));
        if let Some(difference) = difference(&shown, &wanted) {
            panic!("SCREEN_SEED={seed} after {:?}:\n{difference}", String::from_utf8_lossy(&bytes));
        }
    }
}

/// The file with a session's last screen has it in every form, and comes back as it was written.
#[test]
fn r22_a_saved_screen_comes_back() {
    let mut screen = Screen::new(Size::default(), 100);
    screen.advance(b"one\r\n\x1b[31mtwo\x1b[m\r\n");
    let saved = screen.save(&Epoch::from_random([7; 4]), 42);
    assert_eq!(Saved::decode(&saved.encode()), Ok(saved.clone()));
    assert_eq!((saved.text.as_str(), saved.offset), ("one\ntwo\n", 42));
    assert_eq!(saved.ansi, "one\n\x1b[31mtwo\x1b[m\n");
}
