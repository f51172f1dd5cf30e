//! A bounded, seeded version of the fuzz target `journal`, run with all other tests: of a damaged journal, the events
//! before the damage are read, and no others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    unreachable_pub,
    reason = "the fuzz target includes the same module"
)]

mod hostile_journal;

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

#[test]
fn r40_of_a_damaged_journal_the_events_before_the_damage_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let dir = hostile_journal::session_dir(temp.path());
    for seed in 0..200 {
        hostile_journal::read_journal(&dir, &bytes(seed, 1500));
    }
}
