//! The screen: a real emulator folded over a session's output.
//!
//! It knows what the terminal shows and every mode a program set, answers the program's questions, reports what
//! viewers want to know, and writes all of it back as escape sequences, so that a viewer who comes later is in the
//! same state as one who saw every byte.

mod address;
mod command;
mod control;
mod device;
mod dump;
mod events;
mod half;
pub mod limits;
mod links;
mod modes;
mod paint;
mod palette;
mod perform;
mod print;
mod query;
mod render;
mod repair;
mod sgr;
mod snapshot;
mod state;
mod tell;
mod urls;
mod walk;

use std::fmt;

use alacritty_terminal::vte::{Parser, Perform};
use bowline_host::saved::Saved;
use bowline_proto::ids::Epoch;
use bowline_proto::size::Size;

pub use self::events::ScreenEvent;
pub use self::palette::Theme;
pub use alacritty_terminal::vte::ansi::Rgb;
pub use bowline_proto::message::Scope;

use self::half::{Half, Step, starts_char, unfinished_char};
use self::limits::{PIECE, SAVED_MAX, SAVED_SCROLLBACK};
use self::state::State;

/// One terminal, as far as its output has come.
pub struct Screen {
    parser: Parser,
    half: Half,
    state: State,
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("size", &self.state.size).finish_non_exhaustive()
    }
}

impl Screen {
    /// A blank terminal that keeps `history` lines after they scroll off, at most [`limits::HISTORY_MAX`].
    pub fn new(size: Size, history: usize) -> Screen {
        Screen { parser: Parser::new(), half: Half::default(), state: State::new(size, history) }
    }

    /// Sets what queries for the default colours answer.
    pub fn set_theme(&mut self, theme: Theme) {
        self.state.theme = theme;
    }

    /// Takes the next bytes of output. Any bytes are fine, cut anywhere.
    pub fn advance(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            self.state.expect_urls(piece);
            self.advance_piece(piece);
            self.state.find_urls();
        }
    }

    /// Changes the size; lines of the main screen are wrapped anew.
    pub fn resize(&mut self, size: Size) {
        self.state.resize(size);
    }

    /// The size in force.
    pub fn size(&self) -> Size {
        self.state.size
    }

    /// Answers to the program's questions since the last call, to be written to it; at most
    /// [`limits::REPLIES_MAX`] bytes, what came after is dropped.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.state.replies)
    }

    /// What happened since the last call; at most [`limits::EVENTS_MAX`] listed events, what came after is dropped.
    pub fn take_events(&mut self) -> Vec<ScreenEvent> {
        self.state.events.take()
    }

    /// The title a program set, or nothing.
    pub fn title(&self) -> &str {
        &self.state.title
    }

    /// Escape sequences that put a terminal of the same size into this state, with at most `scrollback` lines of
    /// history. For [`Scope::All`] the terminal may be in any state, since they start by resetting it.
    pub fn snapshot(&mut self, scope: Scope, scrollback: usize) -> Vec<u8> {
        let mut bytes = self.state.snapshot(scope, scrollback);
        bytes.extend_from_slice(self.half.bytes());
        bytes
    }

    /// The last `scrollback` lines of history and the visible screen as text, without trailing blanks.
    pub fn text(&mut self, scrollback: usize) -> String {
        self.state.text(scrollback)
    }

    /// The same lines with colours and links as escape sequences, and nothing else.
    pub fn ansi(&mut self, scrollback: usize) -> Vec<u8> {
        self.state.ansi(scrollback)
    }

    /// The same lines as JSON: `{"size":{"cols","rows"},"cursor":{"col","row","visible","pending_wrap"},"modes":{..},
    /// "title","alt","scrollback":N,"lines":[..]}`, where the first N lines are history and positions count from 0 at
    /// the visible screen's corner. A line is `{"text","wrapped","spans":[..]}`; `wrapped` says that it goes on in the
    /// next. A span is `{"col","text","fg"?,"bg"?,"bold"?,"dim"?,"italic"?,"blink"?,"inverse"?,"hidden"?,"strike"?,
    /// "underline"?,"overline"?,"underline_colour"?,"link"?}`; a colour is a palette number or `"#rrggbb"`, a missing one is the
    /// default.
    pub fn json(&mut self, scrollback: usize) -> serde_json::Value {
        self.state.json(scrollback)
    }

    /// What the file of a session's last screen holds. History is left out where that would be larger than
    /// [`limits::SAVED_MAX`].
    pub fn save(&mut self, epoch: &Epoch, offset: u64) -> Saved {
        let mut saved = Saved {
            offset,
            epoch: epoch.clone(),
            size: self.size(),
            all: Vec::new(),
            screen: self.snapshot(Scope::Screen, 0),
            text: self.text(0),
            ansi: String::from_utf8_lossy(&self.ansi(0)).into_owned(),
            json: self.json(0),
        };
        let mut scrollback = SAVED_SCROLLBACK;
        loop {
            saved.all = self.snapshot(Scope::All, scrollback);
            // The other forms are of the visible screen alone, and take a small part of the rest.
            if scrollback == 0 || saved.all.len() <= SAVED_MAX / 2 {
                return saved;
            }
            scrollback /= 4;
        }
    }

    /// Every part of the state as text, for tests: two screens are equal when their dumps are.
    pub fn dump(&mut self) -> String {
        let mut dump = self.state.dump();
        dump.push_str(&format!("half {:?}\n", String::from_utf8_lossy(self.half.bytes())));
        dump
    }

    fn advance_piece(&mut self, piece: &[u8]) {
        let resumed = if self.half.is_empty() { 0 } else { self.resume(piece) };
        let rest = &piece[resumed..];
        if rest.is_empty() {
            return;
        }
        let text_from = match memchr::memrchr(0x1b, rest) {
            None => 0,
            Some(escape) => escape + self.half.follow(&rest[escape..]),
        };
        if !self.half.is_ground() {
            self.parser.advance(&mut self.state, rest);
            return;
        }
        let (mut now, later) = rest.split_at(rest.len() - unfinished_char(&rest[text_from..]));
        // Starts of characters before a start that is held back are broken, but would look unfinished to the parser.
        let mut broken = 0;
        while !later.is_empty() && unfinished_char(&now[text_from.min(now.len())..]) > 0 {
            now = &now[..now.len() - unfinished_char(&now[text_from..])];
            broken += 1;
        }
        self.parser.advance(&mut self.state, now);
        (0..broken).for_each(|_| self.state.print(char::REPLACEMENT_CHARACTER));
        self.half.keep_char(later);
    }

    /// Goes on with what was unfinished; returns how much of `piece` that took.
    fn resume(&mut self, piece: &[u8]) -> usize {
        if self.half.is_ground() { self.resume_char(piece) } else { self.resume_sequence(piece) }
    }

    fn resume_char(&mut self, piece: &[u8]) -> usize {
        let mut bytes = self.half.bytes().to_vec();
        for (at, &byte) in piece.iter().enumerate() {
            bytes.push(byte);
            if starts_char(&bytes) {
                continue;
            }
            self.half.clear();
            return match std::str::from_utf8(&bytes) {
                Ok(_) => {
                    self.parser.advance(&mut self.state, &bytes);
                    at + 1
                }
                // The byte that broke the character starts something else.
                Err(_) => {
                    self.state.print(char::REPLACEMENT_CHARACTER);
                    at
                }
            };
        }
        self.half.keep_char(&bytes);
        piece.len()
    }

    fn resume_sequence(&mut self, piece: &[u8]) -> usize {
        let end = memchr::memchr(0x1b, piece).unwrap_or(piece.len());
        let mut fed = 0;
        for (at, &byte) in piece[..end].iter().enumerate() {
            match self.half.step(byte) {
                Step::Feed => {}
                step => {
                    self.parser.advance(&mut self.state, &piece[fed..at]);
                    fed = at + 1;
                    self.instruct(step);
                }
            }
            if self.half.is_ground() {
                self.parser.advance(&mut self.state, &piece[fed..=at]);
                return at + 1;
            }
        }
        self.parser.advance(&mut self.state, &piece[fed..end]);
        if end < piece.len() {
            self.half.clear();
        }
        end
    }

    fn instruct(&mut self, step: Step) {
        match step {
            Step::Feed | Step::Skip => {}
            Step::Ignore => self.parser.advance(&mut self.state, b"<"),
            Step::Discard => self.state.discard = true,
        }
    }
}
