//! A bounded, seeded version of the fuzz targets, for every test run: hostile bytes get an error or a close, never a
//! panic, a wrong byte or unbounded memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test may stop at the first surprise; the fuzz targets include the same file"
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
fn r52_hostile_frames_decode_or_fail() {
    for seed in 0..20_000 {
        let mut data = bytes(seed, (seed % 300) as usize);
        // Lengths that fit are rare by chance.
        if let Some(length) = data.first_chunk_mut::<4>() {
            *length = ((seed % 64) as u32).to_be_bytes();
        }
        hostile::decode(&data);
    }
}

#[test]
fn r52_hostile_talk_leaves_the_server_right() {
    for seed in 0..4_000 {
        hostile::talk(&bytes(seed, 1500));
    }
}
