//! A bounded, seeded version of the fuzz targets for agents, run with all other tests: whatever an agent prints, the
//! adapter answers each request at most once, in whole lines of JSON, and each run ends once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    unreachable_pub,
    reason = "a test may panic; the fuzz targets and the tests of the adapters include the same modules"
)]

mod hostile_agent;

use bowline_host::agents::Protocol;

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn run(protocol: Protocol) {
    for seed in 0..ROUNDS {
        hostile_agent::run_adapter(protocol, &bytes(seed, 600));
    }
}

const ROUNDS: u64 = 60;

#[test]
fn r52_hostile_claude_code() {
    run(Protocol::Claude);
}

#[test]
fn r52_hostile_codex() {
    run(Protocol::Codex);
}

#[test]
fn r52_hostile_acp_agents() {
    run(Protocol::Acp);
}

#[test]
fn r52_lines_do_not_depend_on_how_they_are_read() {
    for seed in 0..40 {
        hostile_agent::read_lines(&bytes(seed, 300));
    }
}
