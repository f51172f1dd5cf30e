//! Simulates both ends of the link over faulty connections, and compares the result with a reference model.
//!
//! Each seed is a world (`sim/world.rs`): a session whose terminal is a hash over every byte and the size at which it
//! was printed, up to four viewers, and connections that delay, stall, and are cut at any byte. After every event, the
//! viewer's terminal must equal the session's at that offset, every skip must be announced with the range it misses,
//! and every typed byte must be read once or be reported unsent. Then the faults stop, and every viewer must be up to
//! date within 90 simulated seconds.
//!
//! `BOWLINE_SIM_SEED=n` replays one seed, `BOWLINE_SIM_SEEDS=n` runs the first n.
//!
//! To verify the checks, the state machines were broken on purpose, one line at a time, and run with 8,000 seeds each:
//!
//! | fault in the code | check that fails |
//! |---|---|
//! | input received before is typed again | the program read more than was typed, or twice |
//! | unwritten input is lost with its connection | read 0x48, expected 0x40; neither read nor reported unsent |
//! | `ack` covers input that is received, not written | typed bytes were neither read nor reported unsent |
//! | a forgotten client gets `input: null` only once | the program read more than was typed, or twice (1 in 6,000) |
//! | the older connection is not closed | it owns the size, but the terminal has another size |
//! | a lower `conn` is accepted | ended without an exit (a 4409 for the newest connection) |
//! | the epoch is not compared | an exact resume is in the same epoch |
//! | a trimmed log is noticed one byte late | the log has this output |
//! | a snapshot older than the log is accepted | a snapshot has the announced offset |
//! | a required snapshot before `sent` is accepted | the client refuses a snapshot of an earlier offset |
//! | a repaint before `sent` is accepted | its terminal stays behind the session's |
//! | two snapshots at a time | one snapshot at a time |
//! | `missed` is not sent | `missed` is the skipped output |
//! | `resize` is not sent, or output spans it | the terminal has the session's state |
//! | no snapshot after a change of width | no snapshot after a change of width |
//! | `exit` before the last byte | the client refuses an exit before the last byte |
//! | the window is ignored | 239 bytes in flight |
//! | presence is not sent when a viewer detaches | presence is .. |
//! | late viewers get no title | an old title |
//! | client: the cursor follows received output | the client refuses an exact resume from another offset |
//! | client: events of the old connection are kept | an exact resume continues where the viewer is |
//! | client: the cursor stays during a snapshot | an exact resume needs a complete terminal |
//! | client: resends from the last byte sent | a well-behaved viewer gets no errors: input_hole |
//! | client: a report of unsent bytes has only the newest | each report includes all unsent bytes |
//! | client: late input is dropped without a report | typed bytes were neither read nor reported unsent |
//! | client: no repaint is requested after a lost connection | no snapshot after a change of width |
//! | client: connections are not counted | reported unsent without doubt; ended without an exit |
//!
//! The simulation cannot find faults that the other end corrects: verdicts that are off by one byte (`tests/output.rs`
//! covers those), a snapshot of the wrong size (a `resize` follows it), and input typed offline that is sent into a
//! new epoch (a transcript in `fixtures/link/client.json` covers that).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

mod sim;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use sim::{Tally, World};

const SEEDS: u64 = 10_000;

#[test]
#[allow(clippy::disallowed_methods, reason = "the developer chooses the seeds")]
fn r9_r16_r19_r23_every_seed_ends_up_to_date() {
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
                        sum.grown += tally.grown;
                        sum.refused += tally.refused;
                        sum.resent += tally.resent;
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
    assert_eq!(failed.into_inner(), 0, "some seeds failed, see above");
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (skips, exacts, bytes) = (sum(|t| t.skips), sum(|t| t.exacts), sum(|t| t.bytes));
    let (grown, refused, resent) = (sum(|t| t.grown), sum(|t| t.refused), sum(|t| t.resent));
    println!(
        "{seeds} seeds: {exacts} exact resumes, {skips} skips, {grown} grown unsent reports, {refused} refused inputs, \
         {resent} resent inputs, {bytes} bytes"
    );
    let happened = exacts > seeds / 2 && skips > seeds / 2 && grown > seeds / 100;
    let bounded = refused > seeds / 10 && resent > seeds / 100;
    assert!(seeds < 1000 || (happened && bounded), "the faults must really occur");
}
