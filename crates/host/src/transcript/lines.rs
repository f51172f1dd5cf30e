//! Reads the lines of a transcript, and turns them into the messages that viewers get, without parsing them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bowline_proto::agent::event::AgentEvent;
use bowline_proto::frame;
use bowline_proto::journal::Record;
use serde_json::Value;

use super::MAX_LINE;

/// Bytes that are read at a time, if a line is not longer.
const READ: usize = 32 << 10;

/// The lines of a transcript from a position on, as long as they are whole and in sequence.
#[derive(Debug)]
pub struct Lines<'a> {
    file: &'a File,
    /// The position of `buffer` in the file.
    at: u64,
    buffer: Vec<u8>,
    /// How much of `buffer` was returned.
    used: usize,
    /// The number that the next line must begin with.
    next: u64,
}

/// A line of a transcript: one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its position in the file.
    pub byte: u64,
    /// The first number that it stands for, and the last.
    pub first: u64,
    pub seq: u64,
    /// Without the line break.
    pub text: &'a [u8],
}

impl Line<'_> {
    /// The position of the next line.
    pub fn end(&self) -> u64 {
        self.byte + self.text.len() as u64 + 1
    }

    /// The record; `None` if the line is damaged. An event of a shape that this version does not know is `unknown`.
    pub fn parse(&self) -> Option<Record<AgentEvent>> {
        // What is skipped is not checked for valid characters, but every line is sent as text.
        let text = std::str::from_utf8(self.text).ok()?;
        serde_json::from_str(text).ok().or_else(|| {
            let Record::<Value> { seq, from, at, .. } = serde_json::from_str(text).ok()?;
            Some(Record { seq, from, at, event: AgentEvent::Unknown })
        })
    }
}

impl<'a> Lines<'a> {
    /// Reads from `byte` on, where a line begins with the number `next`.
    pub fn new(file: &'a File, byte: u64, next: u64) -> Lines<'a> {
        Lines { file, at: byte, buffer: Vec::new(), used: 0, next }
    }

    /// The next line; `None` at the end of the file, or where a line is incomplete, damaged or out of sequence.
    // Not an iterator: a line borrows the buffer.
    #[allow(clippy::should_implement_trait, reason = "it lends its items")]
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let len = loop {
            let unread = self.buffer.get(self.used..).unwrap_or_default();
            if let Some(len) = unread.iter().position(|byte| *byte == b'\n') {
                break len;
            }
            if unread.len() > MAX_LINE || !self.fill()? {
                return Ok(None);
            }
        };
        let (start, byte) = (self.used, self.at + self.used as u64);
        let Some(text) = self.buffer.get(start..start + len) else { return Ok(None) };
        let Some((first, seq)) = numbers(text).filter(|(first, seq)| *first == self.next && seq >= first) else {
            return Ok(None);
        };
        (self.used, self.next) = (start + len + 1, seq + 1);
        Ok(Some(Line { byte, first, seq, text }))
    }

    /// Reads more. Returns whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.used);
        self.at += self.used as u64;
        self.used = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + READ.max(len), 0);
        let read = self.file.read_at(&mut self.buffer[len..], self.at + len as u64)?;
        self.buffer.truncate(len + read);
        Ok(read > 0)
    }
}

/// The first and the last number of a line. They come first in every line that Bowline writes.
fn numbers(text: &[u8]) -> Option<(u64, u64)> {
    let (seq, rest) = number(text.strip_prefix(br#"{"seq":"#)?)?;
    let first = match rest.strip_prefix(br#","from":"#) {
        Some(rest) => number(rest)?.0,
        None => seq,
    };
    text.ends_with(b"}").then_some((first, seq))
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    // Larger numbers count as damage: JavaScript cannot represent them.
    let number = std::str::from_utf8(number).ok()?.parse().ok().filter(|number| *number < 1 << 53)?;
    Some((number, rest))
}

/// Appends a record, in the form of a line, as the frame of an `event` message. Returns whether it could: a damaged one is
/// not text.
pub(super) fn put_event(frames: &mut Vec<u8>, record: &[u8]) -> bool {
    let Some(fields) = std::str::from_utf8(record).ok().and_then(|text| text.strip_prefix('{')) else {
        return false;
    };
    frame::put_text_parts(frames, &[r#"{"type":"event","#, fields]);
    true
}
