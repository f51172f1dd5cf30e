//! What one viewer typed, and the proof that each byte reached the program once or was reported unsent.

use bowline_proto::link::Unsent;

/// Viewers are told apart by the two top bits of what they type.
pub(crate) const VIEWERS: usize = 4;

#[derive(Default)]
pub(crate) struct Typist {
    index: u8,
    count: u8,
    /// What the client took and did not give back.
    expected: Vec<Key>,
    /// How much of it the program has seen.
    seen: usize,
    blocks: u32,
}

struct Key {
    byte: u8,
    /// Reported unsent, but some first part of its block may have been typed.
    doubtful: Option<u32>,
}

impl Typist {
    pub(crate) fn new(index: usize) -> Typist {
        Typist { index: index as u8, ..Typist::default() }
    }

    pub(crate) fn keys(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|i| self.index << 6 | (self.count.wrapping_add(i as u8) & 0x3f)).collect()
    }

    /// The client took these.
    pub(crate) fn typed(&mut self, bytes: &[u8]) {
        self.count = self.count.wrapping_add(bytes.len() as u8);
        self.expect(bytes);
    }

    /// The client will send these (again).
    pub(crate) fn expect(&mut self, bytes: &[u8]) {
        self.expected.extend(bytes.iter().map(|byte| Key { byte: *byte, doubtful: None }));
    }

    /// The client gave these back. More may have been typed before the viewer came to hear of it.
    pub(crate) fn unsent(&mut self, unsent: &Unsent) {
        let typed: Vec<u8> = self.expected.iter().map(|key| key.byte).collect();
        let len = unsent.bytes.len();
        let from = typed.windows(len).rposition(|keys| keys == unsent.bytes).expect("unsent, but never typed");
        self.blocks += 1;
        for key in &mut self.expected[from..from + unsent.doubtful] {
            key.doubtful = Some(self.blocks);
        }
        self.expected.drain(from + unsent.doubtful..from + len);
        assert!(self.seen <= from + unsent.doubtful, "typed, and reported as surely unsent");
    }

    /// The program read a byte of this viewer.
    pub(crate) fn read(&mut self, byte: u8) {
        loop {
            let key = self.expected.get(self.seen).expect("the program read more than was typed, or twice");
            if key.byte == byte {
                self.seen += 1;
                return;
            }
            let block = key.doubtful.unwrap_or_else(|| panic!("read {byte:#x}, expected {:#x}", key.byte));
            while self.expected.get(self.seen).is_some_and(|key| key.doubtful == Some(block)) {
                self.seen += 1;
            }
        }
    }

    /// Everything that was not given back has been read.
    pub(crate) fn is_done(&self) -> bool {
        self.expected[self.seen..].iter().all(|key| key.doubtful.is_some())
    }
}
