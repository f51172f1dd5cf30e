//! The screen: a terminal emulator that parses a session's output.
//!
//! It holds what the terminal shows and every mode that a program set, replies to the program's queries,
//! reports events such as a new title, and writes its state as a snapshot: escape sequences that put a
//! viewer who attaches late into the same state as one who saw every byte. The emulator is
//! `alacritty_terminal`; the modules here parse the output for it, and add what it does not do.

mod csi;
mod dcs;
mod dump;
mod events;
pub mod limits;
mod links;
mod modes;
mod notify;
mod osc;
mod paint;
mod palette;
mod partial;
mod perform;
mod print;
mod query;
mod render;
mod repair;
mod sgr;
mod snapshot;
mod state;
mod url;
mod url_finder;
mod url_reader;

use std::fmt;

use alacritty_terminal::vte::{Parser, Perform};
use bowline_host::saved::SavedScreen;
use bowline_proto::ids::Epoch;
use bowline_proto::size::Size;
use bytes::Bytes;

pub use self::events::ScreenEvent;
pub use self::palette::Theme;
pub use alacritty_terminal::vte::ansi::Rgb;
pub use bowline_proto::message::Scope;

use self::limits::{PIECE, SAVED_MAX, SAVED_SCROLLBACK};
use self::partial::{PartialInput, Step, starts_char, unfinished_char};
use self::state::State;

/// The state of one terminal.
pub struct Screen {
    parser: Parser,
    partial: PartialInput,
    state: State,
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("size", &self.state.size).finish_non_exhaustive()
    }
}

impl Screen {
    /// A blank terminal that keeps up to `scrollback` lines, at most [`limits::SCROLLBACK_MAX`].
    pub fn new(size: Size, scrollback: usize) -> Screen {
        Screen { parser: Parser::new(), partial: PartialInput::default(), state: State::new(size, scrollback) }
    }

    /// Sets the default colours that queries report.
    pub fn set_theme(&mut self, theme: Theme) {
        self.state.theme = theme;
    }

    /// Parses the next bytes of output. They may be anything, and may be split anywhere, even inside a character.
    pub fn advance(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            self.state.scan_for_urls(piece);
            self.advance_piece(piece);
            self.state.find_urls();
        }
    }

    /// Changes the size. Lines of the main screen are wrapped to the new width.
    pub fn resize(&mut self, size: Size) {
        self.state.resize(size);
    }

    pub fn size(&self) -> Size {
        self.state.size
    }

    /// Takes the replies to the program's queries since the last call, to be written to the program. There
    /// are at most [`limits::REPLIES_MAX`] bytes; further replies are dropped.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.state.replies)
    }

    /// Takes the events since the last call: the last title, the last directory, a bell, and at most
    /// [`limits::EVENTS_MAX`] notifications and URLs; further ones are dropped.
    pub fn take_events(&mut self) -> Vec<ScreenEvent> {
        self.state.events.take()
    }

    /// The title that a program set, or an empty string.
    pub fn title(&self) -> &str {
        &self.state.title
    }

    /// Escape sequences that put a terminal of the same size, in any state, into this screen's state. With
    /// [`Scope::All`] they reset the terminal first and include up to `scrollback` lines above the screen; with
    /// [`Scope::Screen`] they keep its scrollback.
    ///
    /// There are at most [`limits::PAINTED_SCROLLBACK_MAX`] bytes of scrollback.
    pub fn snapshot(&mut self, scope: Scope, scrollback: usize) -> Vec<u8> {
        self.snapshot_pieces(scope, scrollback).concat()
    }

    /// [`Screen::snapshot`] in pieces, so that no long buffer is copied while it grows.
    pub fn snapshot_pieces(&mut self, scope: Scope, scrollback: usize) -> Vec<Bytes> {
        let mut pieces = self.state.snapshot(scope, scrollback);
        pieces.push(Bytes::copy_from_slice(self.partial.bytes()));
        pieces
    }

    /// The last `scrollback` lines above the screen and the visible screen as text, without trailing blanks on each line.
    pub fn text(&mut self, scrollback: usize) -> String {
        self.state.text(scrollback)
    }

    /// The same lines, with escape sequences for attributes and links only.
    pub fn ansi(&mut self, scrollback: usize) -> Vec<u8> {
        self.state.ansi(scrollback)
    }

    /// The same lines as JSON:
    ///
    /// ```text
    /// {"size": {"cols", "rows"}, "cursor": {"col", "row", "visible", "pending_wrap"}, "modes": {..},
    ///  "title", "alt", "scrollback": N, "lines": [{"text", "wrapped", "spans": [..]}, ..]}
    /// ```
    ///
    /// The first N lines are scrollback. Positions count from 0 at the top left of the visible screen. `wrapped`
    /// means that the next line continues this one. A span has `col`, `text`, and the attributes that differ
    /// from the default: `fg`, `bg`, `bold`, `dim`, `italic`, `blink`, `inverse`, `hidden`, `strike`,
    /// `underline`, `overline`, `underline_colour`, `link`. A colour is a palette number or `"#rrggbb"`.
    pub fn json(&mut self, scrollback: usize) -> String {
        self.state.json(scrollback)
    }

    /// The contents of the file that holds a session's last screen. Old scrollback is left out if the file
    /// would otherwise be larger than [`limits::SAVED_MAX`].
    pub fn save(&mut self, epoch: &Epoch, offset: u64) -> SavedScreen {
        let mut saved = SavedScreen {
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
            // The other forms cover only the visible screen, and fit into the other half.
            if scrollback == 0 || saved.all.len() <= SAVED_MAX / 2 {
                return saved;
            }
            scrollback /= 4;
        }
    }

    /// The whole state as text, for tests: two screens are equal if their dumps are.
    pub fn dump(&mut self) -> String {
        let mut dump = self.state.dump();
        dump.push_str(&format!("partial {:?}\n", String::from_utf8_lossy(self.partial.bytes())));
        dump
    }

    fn advance_piece(&mut self, piece: &[u8]) {
        let resumed = if self.partial.is_empty() { 0 } else { self.resume(piece) };
        let rest = &piece[resumed..];
        if rest.is_empty() {
            return;
        }
        let text_from = match memchr::memrchr(0x1b, rest) {
            None => 0,
            Some(escape) => escape + self.partial.follow(&rest[escape..]),
        };
        if !self.partial.is_ground() {
            self.parser.advance(&mut self.state, rest);
            return;
        }
        let (mut now, later) = rest.split_at(rest.len() - unfinished_char(&rest[text_from..]));
        // The end of `rest` is held back as an unfinished character. Unfinished characters before it can no
        // longer be completed, but the parser would wait for the rest of them: print a replacement
        // character for each.
        let mut broken = 0;
        while !later.is_empty() && unfinished_char(&now[text_from.min(now.len())..]) > 0 {
            now = &now[..now.len() - unfinished_char(&now[text_from..])];
            broken += 1;
        }
        self.parser.advance(&mut self.state, now);
        (0..broken).for_each(|_| self.state.print(char::REPLACEMENT_CHARACTER));
        self.partial.keep_char(later);
    }

    /// Continues the unfinished character or sequence. Returns how many bytes of `piece` belong to it.
    fn resume(&mut self, piece: &[u8]) -> usize {
        if self.partial.is_ground() { self.resume_char(piece) } else { self.resume_sequence(piece) }
    }

    fn resume_char(&mut self, piece: &[u8]) -> usize {
        let mut bytes = self.partial.bytes().to_vec();
        for (at, &byte) in piece.iter().enumerate() {
            bytes.push(byte);
            if starts_char(&bytes) {
                continue;
            }
            self.partial.clear();
            return match std::str::from_utf8(&bytes) {
                Ok(_) => {
                    self.parser.advance(&mut self.state, &bytes);
                    at + 1
                }
                // The byte that does not continue the character is parsed on its own.
                Err(_) => {
                    self.state.print(char::REPLACEMENT_CHARACTER);
                    at
                }
            };
        }
        self.partial.keep_char(&bytes);
        piece.len()
    }

    fn resume_sequence(&mut self, piece: &[u8]) -> usize {
        let end = memchr::memchr(0x1b, piece).unwrap_or(piece.len());
        let mut fed = 0;
        for (at, &byte) in piece[..end].iter().enumerate() {
            match self.partial.step(byte) {
                Step::Feed => {}
                step => {
                    self.parser.advance(&mut self.state, &piece[fed..at]);
                    fed = at + 1;
                    self.apply_step(step);
                }
            }
            if self.partial.is_ground() {
                self.parser.advance(&mut self.state, &piece[fed..=at]);
                return at + 1;
            }
        }
        self.parser.advance(&mut self.state, &piece[fed..end]);
        if end < piece.len() {
            self.partial.clear();
        }
        end
    }

    fn apply_step(&mut self, step: Step) {
        match step {
            Step::Feed | Step::Skip => {}
            Step::Ignore => self.parser.advance(&mut self.state, b"<"),
            Step::Discard => self.state.discard_osc = true,
        }
    }
}
