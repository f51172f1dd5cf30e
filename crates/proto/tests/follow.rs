//! Simulates both ends of following a journal over faulty connections, and compares the result with the journal.
//!
//! Each seed is a world (`follow_sim/world.rs`): a journal that grows, is cut and begins epochs; a server that is
//! restarted; up to four followers; and connections that delay, stall, and are cut at any byte. After every event, a
//! follower must have exactly the events of its cursor's epoch, each once and in order. Then the faults stop, and every
//! follower must be up to date within 120 simulated seconds.
//!
//! `BOWLINE_SIM_SEED=n` replays one seed, `BOWLINE_SIM_SEEDS=n` runs the first n.
//!
//! To verify the checks, the state machines were broken on purpose, one line at a time:
//!
//! | fault in the code | check that fails |
//! |---|---|
//! | an epoch ends at the next start, not at the lowest later one | an exact resume continues what the follower has |
//! | epochs are not compared, or a verdict is one too far | an exact resume continues what the follower has |
//! | a repair does not close those that have events of the cut tail | a follower stays behind |
//! | the end stays past the cut | the journal has the events |
//! | all events offered count as sent | the client refuses: events are missing |
//! | `exit` before the last event | the client refuses an exit before the last event |
//! | the older connection is not closed | a client counts only once |
//! | a lower `conn` is accepted | a follower stays behind |
//! | client: the epoch of `attached`, or one in the stream, is ignored | the follower has the events of its epoch |
//! | client: events of the old connection are kept | an exact resume continues what the follower has |
//! | client: connections are not counted | a follower stays behind |
//!
//! It cannot find a client that accepts a gap, since the server sends none; `tests/follow_client.rs` covers that.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

mod follow_sim;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use follow_sim::{Tally, World};

const SEEDS: u64 = 4_000;

#[test]
#[allow(clippy::disallowed_methods, reason = "the developer chooses the seeds")]
fn every_follower_gets_every_event_once_and_in_order() {
    if let Ok(seed) = std::env::var("BOWLINE_SIM_SEED") {
        let tally = World::new(seed.parse().unwrap()).run();
        println!("{tally:?}");
        return;
    }
    let seeds = std::env::var("BOWLINE_SIM_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Tally::default();
    std::thread::scope(|scope| {
        let run = || {
            let mut sum = Tally::default();
            while failed.load(Ordering::Relaxed) < 3 {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds {
                    break;
                }
                match catch_unwind(|| World::new(seed).run()) {
                    Ok(tally) => sum.add(&tally),
                    Err(_) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        eprintln!("replay with: BOWLINE_SIM_SEED={seed} cargo test -p bowline-proto --test follow");
                    }
                }
            }
            sum
        };
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        runs.into_iter().for_each(|run| sum.add(&run.join().unwrap()));
    });
    assert_eq!(failed.into_inner(), 0, "some seeds failed, see above");
    println!("{seeds} seeds: {sum:?}");
    let Tally { events, merged, exacts, fresh, unknown_epochs, ahead, cut, lost, exits } = sum;
    let often = events > 10 * seeds && merged > seeds && exacts > seeds && fresh > seeds / 2;
    let rarely = [unknown_epochs, ahead, cut, lost, exits].iter().all(|count| *count > seeds / 50);
    assert!(seeds < 1000 || (often && rarely), "the faults must really occur: {sum:?}");
}
