//! Pages of the history of an agent session, read from its files, whether it runs or not.

use std::collections::VecDeque;
use std::fs::File;
use std::io;

use serde::de::IgnoredAny;
use serde_json::json;

use super::ranges::{Range, Ranges};
use super::{TranscriptState, read_state, read_state_and_checkpoint};
use crate::files;
use crate::home::SessionDir;

/// The most events of a page, and how many it has if the caller does not say.
pub const MAX_EVENTS: usize = 1000;
pub const DEFAULT_EVENTS: usize = 200;
/// The most bytes of a page, unless a single event has more.
const MAX_PAGE: usize = 1 << 20;
/// What a page has besides its events and its state.
const ENVELOPE: usize = 1 << 10;

/// Which events a page should have. Without bounds: the last ones.
#[derive(Clone, Copy, Debug)]
pub struct PageQuery {
    /// Only events before this one: the last of them.
    pub before: Option<u64>,
    /// Only events after this one: the first of them, even if `before` is set, too.
    pub after: Option<u64>,
    pub limit: usize,
}

/// Reads a page. Returns it as the JSON of an [`EventPage`](bowline_proto::api::EventPage), with the lines of the journal as
/// they are: parsed, they would take many times the memory.
pub fn read_page(dir: &SessionDir, is_local: bool, query: PageQuery) -> io::Result<String> {
    // The files of another machine are never written.
    let state = if is_local { read_state_and_checkpoint(dir) } else { read_state(dir) }?;
    let file = files::open(&dir.events())?;
    let end = state.fold.next_seq;
    let before = query.before.unwrap_or(end).min(end);
    let after = query.after.map_or(0, |after| after.saturating_add(1).min(before));
    // The page may end where the journal does. Then it needs room for the state.
    let conversation = match before == end {
        true => serde_json::to_string(&state.fold.state())?,
        false => String::new(),
    };
    let mut page = Page {
        file: &file,
        state: &state,
        count: query.limit.clamp(1, MAX_EVENTS),
        bytes: (MAX_PAGE - ENVELOPE).saturating_sub(conversation.len()),
        events: VecDeque::new(),
    };
    let (start, next) = match query.after {
        Some(_) => (after, page.read_forwards(after, before)?),
        None => (page.read_backwards(before)?, before),
    };
    let more = if query.after.is_some() { next < before } else { start > 0 };
    let epoch = json!(state.fold.epoch().ok_or_else(damage)?);
    let mut events: Vec<&str> = Vec::with_capacity(page.events.len());
    for event in &page.events {
        serde_json::from_slice::<IgnoredAny>(event).map_err(|_| damage())?;
        events.push(std::str::from_utf8(event).map_err(|_| damage())?);
    }
    let events = events.join(",");
    let state = if next == end { format!(",\"state\":{conversation}") } else { String::new() };
    Ok(format!(r#"{{"epoch":{epoch},"start":{start},"next":{next},"events":[{events}],"more":{more}{state}}}"#))
}

fn damage() -> io::Error {
    files::damage("the journal is damaged")
}

/// A page that is being read.
struct Page<'a> {
    file: &'a File,
    state: &'a TranscriptState,
    /// How many more events, and how many more bytes of them, there is room for.
    count: usize,
    bytes: usize,
    events: VecDeque<Vec<u8>>,
}

impl Page<'_> {
    /// Reads from `from` on, at most to `to`. Returns the number after the last event.
    fn read_forwards(&mut self, from: u64, to: u64) -> io::Result<u64> {
        let (first, byte) = self.state.find(from);
        let mut ranges = Ranges::new(self.file, byte, first, from, to);
        let mut next = from;
        while next < to {
            let range = ranges.next()?.filter(|range| range.first == next).ok_or_else(damage)?;
            let seq = range.seq;
            if !self.has_room(&range) {
                break;
            }
            self.events.push_back(range.text);
            next = seq + 1;
        }
        Ok(next)
    }

    /// Reads the events before `to`, from the last part of the index to the first, until the page is full. Returns the
    /// number of the first event.
    fn read_backwards(&mut self, to: u64) -> io::Result<u64> {
        let mut start = to;
        while start > 0 {
            let (first, byte) = self.state.find(start - 1);
            let part = self.read_part(first, byte, start)?;
            for range in part.into_iter().rev() {
                let first = range.first;
                if !self.has_room(&range) {
                    return Ok(start);
                }
                self.events.push_front(range.text);
                start = first;
            }
        }
        Ok(start)
    }

    /// All events from `first` to `to`.
    fn read_part(&self, first: u64, byte: u64, to: u64) -> io::Result<Vec<Range>> {
        let mut ranges = Ranges::new(self.file, byte, first, first, to);
        let mut part: Vec<Range> = Vec::new();
        while let Some(range) = ranges.next()? {
            part.push(range);
        }
        // Nothing may be missing at its end.
        if part.last().map(|last| last.seq + 1) == Some(to) { Ok(part) } else { Err(damage()) }
    }

    /// Takes the room of one more event, if there is any. The first one always has it.
    fn has_room(&mut self, range: &Range) -> bool {
        let len = range.text.len() + 1;
        let has_room = self.events.is_empty() || (self.count > 0 && self.bytes >= len);
        if has_room {
            self.count = self.count.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(len);
        }
        has_room
    }
}
