//! Ids of conversations and messages, in the shape that Claude Code requires.

/// Makes ids that differ from those of every other process.
#[derive(Debug)]
pub(super) struct Ids {
    random: [u8; 16],
    last: u64,
}

impl Ids {
    pub(super) fn new(random: [u8; 16]) -> Ids {
        Ids { random, last: 0 }
    }

    /// The id of the next message.
    pub(super) fn next(&mut self) -> String {
        self.last += 1;
        uuid(self.random, self.last)
    }
}

/// The id of a new conversation.
pub(super) fn conversation(random: [u8; 16]) -> String {
    uuid(random, 0)
}

/// A UUID of version 4, made from random bytes and a number. The number does not touch the byte of the variant.
fn uuid(random: [u8; 16], number: u64) -> String {
    let mut value = u128::from_be_bytes(random) ^ u128::from(number & 0x00ff_ffff_ffff_ffff);
    value = (value & !(0xf << 76)) | (4 << 76);
    value = (value & !(0x3 << 62)) | (2 << 62);
    let hex = format!("{value:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_shape_of_version_4_and_differ() {
        for random in [[0; 16], [255; 16], [0x5a; 16]] {
            let mut ids = Ids::new(random);
            let made: std::collections::BTreeSet<String> =
                std::iter::once(conversation(random)).chain((0..1000).map(|_| ids.next())).collect();
            assert_eq!(made.len(), 1001);
            for id in made {
                assert_eq!(id.len(), 36);
                assert_eq!(id.as_bytes()[14], b'4', "{id}");
                assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
            }
        }
    }
}
