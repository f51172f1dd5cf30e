//! Colours: the palette, the defaults that queries report, and the X11 notation for colours.

use alacritty_terminal::vte::ansi::{NamedColor, Rgb};

/// Index of the default foreground in the emulator's table of colours, after the 256 palette colours.
pub(super) const FOREGROUND: usize = NamedColor::Foreground as usize;
pub(super) const BACKGROUND: usize = NamedColor::Background as usize;
pub(super) const CURSOR: usize = NamedColor::Cursor as usize;

/// The default colours that queries report: those of a viewer's terminal, if it sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub fg: Rgb,
    pub bg: Rgb,
    pub cursor: Rgb,
}

impl Default for Theme {
    /// Light grey on near black, as in most terminals.
    fn default() -> Theme {
        let light = Rgb { r: 0xd8, g: 0xd8, b: 0xd8 };
        Theme { fg: light, bg: Rgb { r: 0x18, g: 0x18, b: 0x18 }, cursor: light }
    }
}

impl Theme {
    /// The colour at an index, if no program changed it.
    pub(super) fn colour(&self, index: usize) -> Rgb {
        match index {
            FOREGROUND => self.fg,
            BACKGROUND => self.bg,
            CURSOR => self.cursor,
            _ => standard(index as u8),
        }
    }

    /// Whether the background is darker than medium grey.
    pub(super) fn is_dark(&self) -> bool {
        u32::from(self.bg.r) * 299 + u32::from(self.bg.g) * 587 + u32::from(self.bg.b) * 114 < 128_000
    }
}

/// xterm's palette of 256 colours.
fn standard(index: u8) -> Rgb {
    const BASE: [u32; 16] = [
        0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5, 0x7f_7f7f, 0xff_0000,
        0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
    ];
    let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match index {
        0..=15 => {
            let [_, r, g, b] = BASE[usize::from(index)].to_be_bytes();
            Rgb { r, g, b }
        }
        16..=231 => {
            let n = index - 16;
            Rgb { r: level(n / 36), g: level(n / 6 % 6), b: level(n % 6) }
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            Rgb { r: grey, g: grey, b: grey }
        }
    }
}

/// Parses a colour in X11 notation: `rgb:r/g/b` or `#rgb`, with one to four digits for each component.
pub(super) fn parse(text: &[u8]) -> Option<Rgb> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(hex) = text.strip_prefix('#') {
        let n = hex.len() / 3;
        if !hex.is_ascii() || n == 0 || n > 4 || hex.len() % 3 != 0 {
            return None;
        }
        // In the `#` form the digits are the high bits of a component, not a fraction.
        let part = |i: usize| {
            let value = u32::from_str_radix(&hex[i * n..(i + 1) * n], 16).ok()?;
            Some(if n == 1 { value << 4 } else { value >> (4 * (n - 2)) } as u8)
        };
        return Some(Rgb { r: part(0)?, g: part(1)?, b: part(2)? });
    }
    let mut parts = text.strip_prefix("rgb:")?.split('/').map(|part| {
        let most = 16u32.checked_pow(part.len() as u32).filter(|_| (1..=4).contains(&part.len()))? - 1;
        Some((255 * u32::from_str_radix(part, 16).ok()? / most) as u8)
    });
    let rgb = Rgb { r: parts.next()??, g: parts.next()??, b: parts.next()?? };
    parts.next().is_none().then_some(rgb)
}

/// Writes a colour in X11 notation, for replies and snapshots.
pub(super) fn write(colour: Rgb) -> String {
    let Rgb { r, g, b } = colour;
    format!("rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}")
}
