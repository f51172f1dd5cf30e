//! Simulates tabs that send commands over a faulty network, and compares the result with what was sent.
//!
//! Each seed is a world (`post_sim/world.rs`): a browser whose tabs share a storage, are reloaded, duplicated, hidden,
//! offline and logged out; a server that runs a command once, by its id, and whose sessions end and are restarted; a
//! network that loses, delays and doubles, with proxies and captive portals; a wall clock that jumps. Then the faults
//! stop, the user sends again what failed, and everything must have been run once, in order, or settled.
//!
//! `BOWLINE_SIM_SEED=n` replays one seed, `BOWLINE_SIM_SEEDS=n` runs the first n.
//!
//! To verify the checks, the queue was broken on purpose, one line at a time:
//!
//! | fault in the code | check that fails |
//! |---|---|
//! | a failed prompt, or one to be sent again, does not hold those behind it | prompts are run in their order |
//! | restored entries are not sorted, or the order is the time of the clock | prompts are run in their order |
//! | an entry is not stored by `send` | nothing is sent before it is stored |
//! | any 2xx counts | what is shown as delivered was run |
//! | a late refusal of a dropped request counts | the response to a dropped request changes nothing |
//! | a clock that is set back leaves the times as they were | everything is settled in time |
//! | requests are not dropped after 15 s, or waits never end | everything is settled in time |
//! | an entry that another tab removed is not unstored | nothing is stored at the end |
//! | the next try follows at once | tries are 400 ms apart |
//! | an entry whose ten minutes are over is sent when its turn comes | nothing is sent after its ten minutes |
//! | an event does not settle a failed entry | an event settles its entry |
//! | a login does not let entries go on | nothing waits for the login |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

mod post_sim;

use post_sim::{Tally, World, run_seeds};

const SEEDS: u64 = 3_000;

#[test]
fn r37_every_prompt_is_run_once_and_in_order() {
    let run = |seed| World::new(seed).run();
    let Some((seeds, sum)) = run_seeds("post", SEEDS, run, Tally::add) else { return };
    let Tally { sent, requests, duplicates, by_event, late_proofs, failed, reloads, jumps, removed, refused, left_out } =
        sum;
    let often = sent > 5 * seeds
        && requests > sent
        && [duplicates, by_event, failed, reloads, jumps].iter().all(|n| *n > seeds);
    let rarely = [late_proofs, removed, refused, left_out].iter().all(|count| *count > seeds / 50);
    assert!(seeds < 1000 || (often && rarely), "the faults must really occur: {sum:?}");
}
