//! Lines that the agent's standard input has not accepted yet.

/// While this many bytes wait beside the longest line, nothing more is read from the agent: what it says would only make
/// more. The longest line does not count, because a prompt with attachments has many megabytes. An agent that is reading
/// it may print something meanwhile, and would wait for ever if that was not read.
const MAX_WAITING: usize = 1 << 20;
/// Written bytes are not removed before there are as many as this, and as many as the others. So a long line is not moved
/// each time a part of it is written.
const MIN_REMOVED: usize = 1 << 20;

/// Lines in one buffer, of which a part may be written.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    bytes: Vec<u8>,
    /// How much of `bytes` is written.
    written: usize,
    /// The length of the longest line since the buffer was last empty.
    longest: usize,
}

impl Unwritten {
    /// Queues a line, without its line break.
    pub(super) fn push_line(&mut self, line: String) {
        self.longest = self.longest.max(line.len());
        match self.bytes.is_empty() {
            true => self.bytes = line.into_bytes(),
            false => self.bytes.extend_from_slice(line.as_bytes()),
        }
        self.bytes.push(b'\n');
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// These many bytes of the rest were written.
    pub(super) fn handle_written(&mut self, count: usize) {
        self.written = (self.written + count).min(self.bytes.len());
        if self.written == self.bytes.len() {
            *self = Unwritten::default();
        } else if self.written >= MIN_REMOVED.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    /// Whether so much waits that nothing more may be read from the agent.
    pub(super) fn is_full(&self) -> bool {
        self.rest().len() >= self.longest + MAX_WAITING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r32_every_byte_is_written_once_and_in_order() {
        let (mut unwritten, mut expected, mut written) = (Unwritten::default(), Vec::new(), Vec::new());
        for (n, len) in [3, 2 << 20, 0, 100, 5 << 20, 1].into_iter().enumerate() {
            let line = char::from(b'a' + n as u8).to_string().repeat(len);
            expected.extend_from_slice(line.as_bytes());
            expected.push(b'\n');
            unwritten.push_line(line);
            let part = unwritten.rest().get(..100_000.min(unwritten.rest().len())).unwrap().to_vec();
            written.extend_from_slice(&part);
            unwritten.handle_written(part.len());
        }
        while !unwritten.rest().is_empty() {
            let part = unwritten.rest().get(..65_536.min(unwritten.rest().len())).unwrap().to_vec();
            written.extend_from_slice(&part);
            unwritten.handle_written(part.len());
        }
        assert!(written == expected);
        assert_eq!(unwritten.bytes.capacity(), 0, "its memory is given back");
    }

    #[test]
    fn r52_a_long_prompt_does_not_stop_the_reading_but_what_comes_after_it_does() {
        let mut unwritten = Unwritten::default();
        unwritten.push_line("x".repeat(20 << 20));
        assert!(!unwritten.is_full());
        for _ in 0..(MAX_WAITING / 1024) {
            unwritten.push_line("y".repeat(1023));
        }
        assert!(unwritten.is_full());
        unwritten.handle_written((20 << 20) + 1);
        assert!(!unwritten.is_full());
        let mut unwritten = Unwritten::default();
        unwritten.push_line("x".repeat(20 << 20));
        unwritten.push_line("x".repeat(20 << 20));
        assert!(unwritten.is_full(), "an agent that reads none of its prompts");
    }
}
