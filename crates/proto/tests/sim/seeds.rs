//! Runs the seeds of a simulation on all cores.
//!
//! `BOWLINE_SIM_SEED=n` replays one seed, `BOWLINE_SIM_SEEDS=n` runs the first n.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that fail before the others are not run any more.
const MAX_FAILED: u64 = 3;

/// Runs each seed of the simulation in the test file `test`, and adds up what happened. Returns how many seeds were run,
/// and the sum; `None` if the developer replayed one seed. Panics if a seed fails.
#[allow(clippy::disallowed_methods, reason = "the developer chooses the seeds")]
pub(crate) fn run_seeds<T: Default + Debug + Send>(
    test: &str,
    seeds: u64,
    run: impl Fn(u64) -> T + Sync + RefUnwindSafe,
    add: impl Fn(&mut T, &T) + Sync,
) -> Option<(u64, T)> {
    if let Ok(seed) = std::env::var("BOWLINE_SIM_SEED") {
        println!("{:?}", run(seed.parse().unwrap()));
        return None;
    }
    let seeds = std::env::var("BOWLINE_SIM_SEEDS").map_or(seeds, |seeds| seeds.parse().unwrap());
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let run_some = || {
        let mut sum = T::default();
        while failed.load(Ordering::Relaxed) < MAX_FAILED {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                break;
            }
            match catch_unwind(|| run(seed)) {
                Ok(tally) => add(&mut sum, &tally),
                Err(_) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    eprintln!("replay with: BOWLINE_SIM_SEED={seed} cargo test -p bowline-proto --test {test}");
                }
            }
        }
        sum
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = T::default();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(run_some)).collect();
        runs.into_iter().for_each(|run| add(&mut sum, &run.join().unwrap()));
    });
    assert_eq!(failed.into_inner(), 0, "some seeds failed, see above");
    println!("{seeds} seeds: {sum:?}");
    Some((seeds, sum))
}
