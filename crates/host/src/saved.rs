//! The file `screen`: the last screen of a session, for readers that run no emulator.
//!
//! The format is `BWLS`, a version byte, a checksum (u64) and the body: offset (u64), columns and rows (u16 each),
//! then the epoch and the five renderings, each as a u32 length and bytes. Numbers are big-endian. The checksum
//! covers the whole body, so that a damaged file is rejected as a whole.

use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::Epoch;
use bowline_proto::size::Size;
use serde::de::IgnoredAny;

use crate::log::MAX_OFFSET;

const MAGIC: &[u8; 4] = b"BWLS";
/// Increased when readers of the old format could misread the new one.
const VERSION: u8 = 1;

/// Cancels an unfinished sequence, then resets the terminal, its cursor and its colours. (The cursor, because xterm.js
/// keeps it hidden over a reset.)
pub const RESET: &str = "\x18\x1bc\x1b[?25h\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\";

/// Blanks the visible screen and resets its modes, but keeps the viewer's scrollback.
const BLANK_SCREEN: &str = "\x18\x1b[!p\x1b[?1049l\x1b[!p\x1b[m\x1b[r\x1b[H\x1b[J";

/// A screen at one offset of the log, in every format that readers use.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedScreen {
    pub offset: u64,
    pub epoch: Epoch,
    pub size: Size,
    /// The screen and its scrollback as escape sequences, for a viewer that shows nothing yet.
    pub all: Vec<u8>,
    /// The visible screen as escape sequences.
    pub screen: Vec<u8>,
    /// The visible screen as text.
    pub text: String,
    /// The visible screen as text with colours.
    pub ansi: String,
    /// The visible screen as JSON.
    pub json: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadScreen {
    #[error("not a screen file, or of an unsupported version")]
    Foreign,
    #[error("the screen file is damaged")]
    Damaged,
}

impl SavedScreen {
    /// The screen of a session that never saved one: a blank terminal.
    pub fn blank(epoch: &Epoch, offset: u64, size: Size) -> SavedScreen {
        SavedScreen {
            offset,
            epoch: epoch.clone(),
            size,
            all: RESET.into(),
            screen: BLANK_SCREEN.into(),
            text: String::new(),
            ansi: String::new(),
            json: "null".into(),
        }
    }

    /// The visible screen in one format.
    pub fn into_format(self, format: ScreenFormat) -> String {
        match format {
            ScreenFormat::Text => self.text,
            ScreenFormat::Ansi => self.ansi,
            ScreenFormat::Json => self.json,
        }
    }

    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.all.len() + self.screen.len() + self.text.len() * 4 + 1024);
        body.extend_from_slice(&self.offset.to_be_bytes());
        body.extend_from_slice(&self.size.cols().to_be_bytes());
        body.extend_from_slice(&self.size.rows().to_be_bytes());
        let fields = [
            self.epoch.as_str().as_bytes(),
            &self.all,
            &self.screen,
            self.text.as_bytes(),
            self.ansi.as_bytes(),
            self.json.as_bytes(),
        ];
        for field in fields {
            body.extend_from_slice(&(field.len() as u32).to_be_bytes());
            body.extend_from_slice(field);
        }
        let mut file = Vec::with_capacity(body.len() + 16);
        file.extend_from_slice(MAGIC);
        file.push(VERSION);
        file.extend_from_slice(&checksum(&body).to_be_bytes());
        file.append(&mut body);
        file
    }

    /// Decodes a file with untrusted content.
    pub fn decode(file: &[u8]) -> Result<SavedScreen, BadScreen> {
        let rest = file.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(&[VERSION])).ok_or(BadScreen::Foreign)?;
        let mut body = Reader(rest);
        let sum = u64::from_be_bytes(body.array()?);
        if checksum(body.0) != sum {
            return Err(BadScreen::Damaged);
        }
        let offset =
            Some(u64::from_be_bytes(body.array()?)).filter(|at| *at <= MAX_OFFSET).ok_or(BadScreen::Damaged)?;
        let (cols, rows) = (u16::from_be_bytes(body.array()?), u16::from_be_bytes(body.array()?));
        let size = Size::new(cols.into(), rows.into()).map_err(|_| BadScreen::Damaged)?;
        let epoch = body.text()?.parse().map_err(|_| BadScreen::Damaged)?;
        let (all, screen) = (body.field()?.to_vec(), body.field()?.to_vec());
        let (text, ansi) = (body.text()?.to_owned(), body.text()?.to_owned());
        let json = body.text()?.to_owned();
        serde_json::from_str::<IgnoredAny>(&json).map_err(|_| BadScreen::Damaged)?;
        Ok(SavedScreen { offset, epoch, size, all, screen, text, ansi, json })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], BadScreen> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BadScreen::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadScreen> {
        self.take(N)?.try_into().map_err(|_| BadScreen::Damaged)
    }

    fn field(&mut self) -> Result<&'a [u8], BadScreen> {
        let len = u32::from_be_bytes(self.array()?);
        self.take(usize::try_from(len).map_err(|_| BadScreen::Damaged)?)
    }

    fn text(&mut self) -> Result<&'a str, BadScreen> {
        std::str::from_utf8(self.field()?).map_err(|_| BadScreen::Damaged)
    }
}

/// FNV-1a over 8-byte words. It detects damage, not an attacker, who could write any screen anyway.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum ^ u64::from_be_bytes(word) ^ ((chunk.len() as u64) << 56)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SavedScreen {
        SavedScreen {
            offset: 42,
            epoch: Epoch::from_random([7; 4]),
            size: Size::default(),
            all: b"\x1bcone\r\n\x1b[31mtwo\x1b[m\r\n".to_vec(),
            screen: b"\x1b[Hone".to_vec(),
            text: "one\ntwo\n".into(),
            ansi: "one\n\x1b[31mtwo\x1b[m\n".into(),
            json: r#"{"lines":["one","two"]}"#.into(),
        }
    }

    #[test]
    fn r22_a_saved_screen_round_trips() {
        let saved = sample();
        assert_eq!(SavedScreen::decode(&saved.encode()), Ok(saved.clone()));
    }

    #[test]
    fn r52_a_hostile_screen_file_is_rejected() {
        let file = sample().encode();
        assert_eq!(SavedScreen::decode(b""), Err(BadScreen::Foreign));
        assert_eq!(SavedScreen::decode(b"BWLS\x02"), Err(BadScreen::Foreign));
        for len in 5..file.len() {
            assert_eq!(SavedScreen::decode(&file[..len]), Err(BadScreen::Damaged), "cut to {len}");
        }
        for at in 5..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 0x40;
            assert_eq!(SavedScreen::decode(&changed), Err(BadScreen::Damaged), "changed at {at}");
        }
        // A valid checksum over a length that exceeds the file, and over an offset that no log reaches.
        for (at, bytes) in [(12, &u32::MAX.to_be_bytes()[..]), (0, &(1u64 << 60).to_be_bytes())] {
            let mut body = file[13..].to_vec();
            body[at..at + bytes.len()].copy_from_slice(bytes);
            let mut forged = b"BWLS\x01".to_vec();
            forged.extend_from_slice(&checksum(&body).to_be_bytes());
            forged.extend_from_slice(&body);
            assert_eq!(SavedScreen::decode(&forged), Err(BadScreen::Damaged), "{bytes:?} at {at}");
        }
    }
}
