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

use follow_sim::{Tally, World, run_seeds};

const SEEDS: u64 = 4_000;

#[test]
fn every_follower_gets_every_event_once_and_in_order() {
    let run = |seed| World::new(seed).run();
    let Some((seeds, sum)) = run_seeds("follow", SEEDS, run, Tally::add) else { return };
    let Tally { events, merged, exacts, fresh, unknown_epochs, ahead, cut, lost, exits } = sum;
    let often = events > 10 * seeds && merged > seeds && exacts > seeds && fresh > seeds / 2;
    let rarely = [unknown_epochs, ahead, cut, lost, exits].iter().all(|count| *count > seeds / 50);
    assert!(seeds < 1000 || (often && rarely), "the faults must really occur: {sum:?}");
}
