//! A bounded, seeded version of the fuzz target `sse_cursor`, run with all other tests.
#![allow(unreachable_pub, reason = "the fuzz target includes the same module")]

mod hostile_cursor;

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
fn r46_a_cursor_that_is_accepted_means_the_same_when_it_comes_back() {
    for seed in 0..20_000 {
        hostile_cursor::parse(&bytes(seed, (seed % 40) as usize));
    }
}
