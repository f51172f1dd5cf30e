//! Checks that each byte that a viewer typed reached the program once or was reported unsent.

use bowline_proto::link::Unsent;

/// The two top bits of each typed byte identify its viewer.
pub(crate) const VIEWERS: usize = 4;

#[derive(Default)]
pub(crate) struct InputCheck {
    index: u8,
    count: u8,
    /// The bytes that the client accepted and did not report unsent.
    expected: Vec<Key>,
    /// How many of them the program has read.
    read: usize,
    blocks: u32,
}

struct Key {
    byte: u8,
    /// Reported unsent as part of this block, of which the program may have read a prefix.
    doubtful: Option<u32>,
}

impl InputCheck {
    pub(crate) fn new(index: usize) -> InputCheck {
        InputCheck { index: index as u8, ..InputCheck::default() }
    }

    pub(crate) fn keys(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|i| self.index << 6 | (self.count.wrapping_add(i as u8) & 0x3f)).collect()
    }

    /// The client accepted these bytes.
    pub(crate) fn handle_accepted(&mut self, bytes: &[u8]) {
        self.count = self.count.wrapping_add(bytes.len() as u8);
        self.expect(bytes);
    }

    /// The client will send these bytes.
    pub(crate) fn expect(&mut self, bytes: &[u8]) {
        self.expected.extend(bytes.iter().map(|byte| Key { byte: *byte, doubtful: None }));
    }

    /// The client reported these bytes unsent. The user may have typed more before seeing the report.
    pub(crate) fn handle_unsent(&mut self, unsent: &Unsent) {
        let typed: Vec<u8> = self.expected.iter().map(|key| key.byte).collect();
        let len = unsent.bytes.len();
        let from = typed.windows(len).rposition(|keys| keys == unsent.bytes).expect("reported unsent, but never typed");
        self.blocks += 1;
        for key in &mut self.expected[from..from + unsent.doubtful] {
            key.doubtful = Some(self.blocks);
        }
        self.expected.drain(from + unsent.doubtful..from + len);
        assert!(self.read <= from + unsent.doubtful, "read by the program, and reported unsent without doubt");
    }

    /// The program read a byte of this viewer.
    pub(crate) fn handle_read(&mut self, byte: u8) {
        loop {
            let key = self.expected.get(self.read).expect("the program read more than was typed, or twice");
            if key.byte == byte {
                self.read += 1;
                return;
            }
            let block = key.doubtful.unwrap_or_else(|| panic!("read {byte:#x}, expected {:#x}", key.byte));
            while self.expected.get(self.read).is_some_and(|key| key.doubtful == Some(block)) {
                self.read += 1;
            }
        }
    }

    /// Whether the program has read everything that was not reported unsent.
    pub(crate) fn is_done(&self) -> bool {
        self.expected[self.read..].iter().all(|key| key.doubtful.is_some())
    }
}
