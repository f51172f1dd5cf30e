//! A minimal reference terminal: its state is a hash over each byte and the size at which it was printed.
//!
//! So a lost, repeated or misplaced byte, or a resize at the wrong offset, changes the state for good.

use bowline_proto::size::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub(crate) hash: u64,
    pub(crate) size: Size,
    pub(crate) offset: u64,
}

impl Terminal {
    pub(crate) fn new(offset: u64, size: Size) -> Terminal {
        Terminal { hash: 0xcbf2_9ce4_8422_2325, size, offset }
    }

    pub(crate) fn print(&mut self, bytes: &[u8]) {
        let size = u64::from(self.size.cols()) << 8 | u64::from(self.size.rows()) << 24;
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte) ^ size).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5);
        }
        self.offset += bytes.len() as u64;
    }

    /// The state as bytes, padded to `len`.
    pub(crate) fn snapshot(&self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len.max(20));
        bytes.extend_from_slice(&self.offset.to_be_bytes());
        bytes.extend_from_slice(&self.hash.to_be_bytes());
        bytes.extend_from_slice(&self.size.cols().to_be_bytes());
        bytes.extend_from_slice(&self.size.rows().to_be_bytes());
        while bytes.len() < len {
            bytes.push((bytes.len() as u64 ^ self.hash) as u8);
        }
        bytes
    }

    /// Restores a terminal from a snapshot.
    pub(crate) fn from_snapshot(bytes: &[u8]) -> Terminal {
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let short = |at: usize| u32::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        let terminal = Terminal { offset: number(0), hash: number(8), size: Size::new(short(16), short(18)).unwrap() };
        assert_eq!(bytes, terminal.snapshot(bytes.len()), "a snapshot arrives unchanged");
        terminal
    }
}
