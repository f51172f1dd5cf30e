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

use sim::{Tally, World, run_seeds};

const SEEDS: u64 = 10_000;

#[test]
fn r9_r16_r19_r23_every_seed_ends_up_to_date() {
    let run = |seed| World::new(seed).run();
    let Some((seeds, sum)) = run_seeds("simulation", SEEDS, run, Tally::add) else { return };
    let Tally { skips, exacts, grown, refused, resent, bytes: _ } = sum;
    let happened = exacts > seeds / 2 && skips > seeds / 2 && grown > seeds / 100;
    let bounded = refused > seeds / 10 && resent > seeds / 100;
    assert!(seeds < 1000 || (happened && bounded), "the faults must really occur: {sum:?}");
}
