//! Two ends, one virtual wire, seeded faults, a reference model.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may stop at the first surprise"
)]

mod sim;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use sim::{Tally, World};

const SEEDS: u64 = 10_000;

#[test]
#[allow(clippy::disallowed_methods, reason = "the test itself may be told which seed to replay")]
fn r9_r16_r19_r23_every_seed_comes_right() {
    if let Ok(seed) = std::env::var("BOWLINE_SIM_SEED") {
        let tally = World::new(seed.parse().unwrap()).run();
        println!("{tally:?}");
        return;
    }
    let seeds = std::env::var("BOWLINE_SIM_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let run = || {
            let mut sum = Tally::default();
            while failed.load(Ordering::Relaxed) < 3 {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds {
                    break;
                }
                match catch_unwind(|| World::new(seed).run()) {
                    Ok(tally) => {
                        sum.skips += tally.skips;
                        sum.exacts += tally.exacts;
                        sum.bytes += tally.bytes;
                    }
                    Err(_) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        eprintln!("replay with: BOWLINE_SIM_SEED={seed} cargo test -p bowline-proto --test simulation");
                    }
                }
            }
            sum
        };
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(failed.into_inner(), 0, "seeds failed, see above");
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (skips, exacts, bytes) = (sum(|t| t.skips), sum(|t| t.exacts), sum(|t| t.bytes));
    println!("{seeds} seeds: {exacts} exact resumes, {skips} skips, {bytes} bytes");
    assert!(seeds < 1000 || (exacts > seeds / 2 && skips > seeds / 2), "the faults must really happen");
}
