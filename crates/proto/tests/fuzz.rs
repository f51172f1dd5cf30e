//! A bounded, seeded version of the fuzz targets, run with all other tests: hostile bytes cause an error or a close,
//! never a panic, wrong output or unbounded memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test may panic; the fuzz targets include the same module"
)]

mod hostile;

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
fn r52_hostile_frames_decode_or_return_an_error() {
    for seed in 0..20_000 {
        let mut data = bytes(seed, (seed % 300) as usize);
        // Random bytes rarely have a valid length.
        if let Some(length) = data.first_chunk_mut::<4>() {
            *length = ((seed % 64) as u32).to_be_bytes();
        }
        hostile::decode(&data);
    }
}

#[test]
fn r52_hostile_clients_do_not_corrupt_the_server() {
    for seed in 0..4_000 {
        hostile::run_server(&bytes(seed, 1500));
    }
}
