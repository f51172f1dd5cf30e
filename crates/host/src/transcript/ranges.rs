//! Reads a transcript with fewer events: adjacent pieces of one text become one event that stands for all their numbers.
//!
//! Agents write a few words at a time, and an event takes many more bytes than they do. A viewer that follows closely gets
//! each event as it is. This is for pages of history, and for viewers that come back and have much to read.

use std::fs::File;
use std::io;

use serde::{Deserialize, Serialize};

use super::lines::{Line, Lines};

/// The most bytes of a text that several pieces become.
const MAX_TEXT: usize = 16 << 10;
/// The numbers and the time of a line take at most this many bytes.
const MAX_START: usize = 128;
/// How the events begin that are pieces of a text.
const PIECES: [&[u8]; 2] = [br#""event":{"type":"text","#, br#""event":{"type":"thinking","#];

/// The events from a number on, up to another.
pub(super) struct Ranges<'a> {
    lines: Lines<'a>,
    from: u64,
    /// Exclusive.
    to: u64,
    /// An event that was read, but does not belong to the text before it.
    next: Option<Event>,
}

/// One event, or several that became one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The first number that it stands for, and the last.
    pub(super) first: u64,
    pub(super) seq: u64,
    /// The position in the file after it.
    pub(super) end: u64,
    /// The record as JSON, in the form of a line.
    pub(super) text: Vec<u8>,
}

enum Event {
    Piece(Piece, u64),
    Other(Range),
}

/// A piece of a text.
// A piece with a field that this version does not know is left alone, so that the field is not lost.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    at: String,
    event: PieceEvent,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PieceEvent {
    r#type: String,
    run: Option<String>,
    block: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    delta: String,
}

impl Piece {
    fn parse(line: &Line<'_>) -> Option<Piece> {
        let start = line.text.get(..MAX_START.min(line.text.len()))?;
        let is_piece = |kind: &&[u8]| start.windows(kind.len()).any(|part| part == *kind);
        PIECES.iter().find(|kind| is_piece(kind))?;
        serde_json::from_slice(line.text).ok()
    }

    fn is_followed_by(&self, next: &Piece) -> bool {
        let PieceEvent { r#type, run, block, parent, delta } = &self.event;
        (r#type, run, block, parent) == (&next.event.r#type, &next.event.run, &next.event.block, &next.event.parent)
            && delta.len() + next.event.delta.len() <= MAX_TEXT
    }

    fn append(&mut self, next: &Piece) {
        self.from.get_or_insert(self.seq);
        self.seq = next.seq;
        self.at.clone_from(&next.at);
        self.event.delta.push_str(&next.event.delta);
    }
}

impl<'a> Ranges<'a> {
    /// Reads from `byte` on, where a line begins with the number `first`, and returns what comes from the number `from` on.
    pub(super) fn new(file: &'a File, byte: u64, first: u64, from: u64, to: u64) -> Ranges<'a> {
        Ranges { lines: Lines::new(file, byte, first), from, to, next: None }
    }

    /// The next event; `None` at `to`, or where the file ends or is damaged.
    pub(super) fn next(&mut self) -> io::Result<Option<Range>> {
        let (mut text, mut end) = match self.read()? {
            Some(Event::Piece(piece, end)) => (piece, end),
            Some(Event::Other(range)) => return Ok(Some(range)),
            None => return Ok(None),
        };
        loop {
            match self.read()? {
                Some(Event::Piece(piece, piece_end)) if text.is_followed_by(&piece) => {
                    text.append(&piece);
                    end = piece_end;
                }
                next => {
                    self.next = next;
                    break;
                }
            }
        }
        let first = text.from.unwrap_or(text.seq);
        Ok(Some(Range { first, seq: text.seq, end, text: serde_json::to_vec(&text)? }))
    }

    /// The next line. A range never begins before `from` or ends after `to`: these are cursors.
    fn read(&mut self) -> io::Result<Option<Event>> {
        if self.next.is_some() {
            return Ok(self.next.take());
        }
        loop {
            let Some(line) = self.lines.next()?.filter(|line| line.seq < self.to) else { return Ok(None) };
            if line.seq < self.from {
                continue;
            }
            if line.first < self.from {
                return Ok(None);
            }
            return Ok(Some(match Piece::parse(&line) {
                Some(piece) => Event::Piece(piece, line.end()),
                None => {
                    Event::Other(Range { first: line.first, seq: line.seq, end: line.end(), text: line.text.to_vec() })
                }
            }));
        }
    }
}
