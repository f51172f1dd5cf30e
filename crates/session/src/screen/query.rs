//! Terminal queries in control sequences. The session replies to each once, however many viewers are attached.

use alacritty_terminal::vte::Params;

use super::csi::number;
use super::state::State;

/// DA1: a VT220 with colour.
pub(super) const PRIMARY: &str = "\x1b[?62;22c";
/// DA2: the same as Alacritty's, since programs derive a terminal's features from it.
const SECONDARY: &str = "\x1b[>0;2600;1c";
/// DA3: a unit id of zero.
const TERTIARY: &str = "\x1bP!|00000000\x1b\\";
/// Reported width and height of a cell in pixels. The real ones differ between viewers; most fonts are
/// twice as high as wide.
const CELL: (usize, usize) = (10, 20);

impl State {
    /// Replies to a control sequence if it is a query. Others are ignored.
    pub(super) fn query(&mut self, params: &Params, intermediates: &[u8], action: char) {
        let first = number(params, 0, 0);
        match (intermediates, action) {
            ([], 'c') if first == 0 => self.reply(PRIMARY),
            ([b'>'], 'c') if first == 0 => self.reply(SECONDARY),
            ([b'='], 'c') if first == 0 => self.reply(TERTIARY),
            ([b'>'], 'q') if first == 0 => {
                self.reply(concat!("\x1bP>|bowline(", env!("CARGO_PKG_VERSION"), ")\x1b\\"));
            }
            ([], 'n') => self.status(first),
            ([b'?'], 'n') => self.private_status(first),
            ([b'$'], 'p') => {
                let state = match first {
                    4 => 2 - u8::from(self.modes.insert),
                    20 => 2 - u8::from(self.modes.newline),
                    _ => 0,
                };
                self.reply(&format!("\x1b[{first};{state}$y"));
            }
            ([b'?', b'$'], 'p') => {
                let state = match first {
                    47 | 1047 | 1049 => 2 - u8::from(self.is_alt()),
                    _ => self.modes.report(first as u16),
                };
                self.reply(&format!("\x1b[?{first};{state}$y"));
            }
            ([], 't') => self.window(first),
            _ => {}
        }
    }

    fn status(&mut self, code: usize) {
        match code {
            5 => self.reply("\x1b[0n"),
            6 => {
                let (row, col) = self.position();
                self.reply(&format!("\x1b[{row};{col}R"));
            }
            _ => {}
        }
    }

    fn private_status(&mut self, code: usize) {
        match code {
            6 => {
                let (row, col) = self.position();
                self.reply(&format!("\x1b[?{row};{col};1R"));
            }
            // No printer, no locked keys, an unknown keyboard.
            15 => self.reply("\x1b[?13n"),
            25 => self.reply("\x1b[?20n"),
            26 => self.reply("\x1b[?27;1;0;0n"),
            996 => {
                let scheme = if self.theme.is_dark() { 1 } else { 2 };
                self.reply(&format!("\x1b[?997;{scheme}n"));
            }
            _ => {}
        }
    }

    /// The cursor as CPR reports it: from 1, and in origin mode relative to the top of the scroll region.
    fn position(&self) -> (usize, usize) {
        let (row, col) = self.cursor();
        (row.saturating_sub(self.addressable_rows().0) + 1, col + 1)
    }

    fn window(&mut self, code: usize) {
        let (cols, rows) = (self.cols(), self.rows());
        let (width, height) = CELL;
        match code {
            11 => self.reply("\x1b[1t"),
            13 => self.reply("\x1b[3;0;0t"),
            14 => self.reply(&format!("\x1b[4;{};{}t", rows * height, cols * width)),
            16 => self.reply(&format!("\x1b[6;{height};{width}t")),
            18 => self.reply(&format!("\x1b[8;{rows};{cols}t")),
            19 => self.reply(&format!("\x1b[9;{rows};{cols}t")),
            // The shell would read a title as typed input, so the reported title is always empty.
            20 => self.reply("\x1b]L\x1b\\"),
            21 => self.reply("\x1b]l\x1b\\"),
            _ => {}
        }
    }
}
