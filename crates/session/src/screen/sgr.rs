//! Text attributes: reads them from SGR sequences, and writes the shortest sequence from one set to another.

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};
use alacritty_terminal::vte::{Params, ParamsIter};

/// Blinking, which the emulator does not support. It uses the only free bit of a cell's flags.
const BLINK: Flags = Flags::from_bits_retain(1 << 15);

/// Attributes that are on or off: the flag, the SGR code that sets it, and its name in the screen's JSON.
pub(super) const ATTRIBUTES: [(Flags, &str, &str); 7] = [
    (Flags::BOLD, "1", "bold"),
    (Flags::DIM, "2", "dim"),
    (Flags::ITALIC, "3", "italic"),
    (BLINK, "5", "blink"),
    (Flags::INVERSE, "7", "inverse"),
    (Flags::HIDDEN, "8", "hidden"),
    (Flags::STRIKEOUT, "9", "strike"),
];

/// Underline styles, by the subparameter of SGR 4. Each is one bit of a cell's flags.
const UNDERLINES: [Flags; 6] = [
    Flags::empty(),
    Flags::UNDERLINE,
    Flags::DOUBLE_UNDERLINE,
    Flags::UNDERCURL,
    Flags::DOTTED_UNDERLINE,
    Flags::DASHED_UNDERLINE,
];

const DEFAULT_FG: Color = Color::Named(NamedColor::Foreground);
const DEFAULT_BG: Color = Color::Named(NamedColor::Background);

const NAMED: [NamedColor; 16] = [
    NamedColor::Black,
    NamedColor::Red,
    NamedColor::Green,
    NamedColor::Yellow,
    NamedColor::Blue,
    NamedColor::Magenta,
    NamedColor::Cyan,
    NamedColor::White,
    NamedColor::BrightBlack,
    NamedColor::BrightRed,
    NamedColor::BrightGreen,
    NamedColor::BrightYellow,
    NamedColor::BrightBlue,
    NamedColor::BrightMagenta,
    NamedColor::BrightCyan,
    NamedColor::BrightWhite,
];

/// Applies an SGR sequence to the template for new cells.
pub(super) fn apply(template: &mut Cell, params: &Params) {
    let mut params = params.iter();
    while let Some(param) = params.next() {
        let Some(&code) = param.first() else { continue };
        let rest = &param[1..];
        let flags = &mut template.flags;
        match code {
            0 => {
                template.fg = DEFAULT_FG;
                template.bg = DEFAULT_BG;
                *flags = Flags::empty();
                template.set_underline_color(None);
            }
            1 => flags.insert(Flags::BOLD),
            2 => flags.insert(Flags::DIM),
            3 => flags.insert(Flags::ITALIC),
            4 => set_lines(flags, rest.first().copied().unwrap_or(1), lines(*flags).1),
            5 | 6 => flags.insert(BLINK),
            7 => flags.insert(Flags::INVERSE),
            8 => flags.insert(Flags::HIDDEN),
            9 => flags.insert(Flags::STRIKEOUT),
            21 => set_lines(flags, 2, lines(*flags).1),
            22 => flags.remove(Flags::BOLD | Flags::DIM),
            23 => flags.remove(Flags::ITALIC),
            24 => set_lines(flags, 0, lines(*flags).1),
            25 => flags.remove(BLINK),
            27 => flags.remove(Flags::INVERSE),
            28 => flags.remove(Flags::HIDDEN),
            29 => flags.remove(Flags::STRIKEOUT),
            30..=37 => template.fg = Color::Named(NAMED[usize::from(code - 30)]),
            38 => template.fg = colour(rest, &mut params).unwrap_or(template.fg),
            39 => template.fg = DEFAULT_FG,
            40..=47 => template.bg = Color::Named(NAMED[usize::from(code - 40)]),
            48 => template.bg = colour(rest, &mut params).unwrap_or(template.bg),
            49 => template.bg = DEFAULT_BG,
            53 => set_lines(flags, lines(*flags).0, true),
            55 => set_lines(flags, lines(*flags).0, false),
            58 => {
                if let Some(colour) = colour(rest, &mut params) {
                    template.set_underline_color(Some(colour));
                }
            }
            59 => template.set_underline_color(None),
            90..=97 => template.fg = Color::Named(NAMED[usize::from(code - 82)]),
            100..=107 => template.bg = Color::Named(NAMED[usize::from(code - 92)]),
            _ => {}
        }
    }
}

/// The underline style and whether there is an overline, which the emulator does not support and has no bit
/// for. A cell without an overline has at most one of the underline bits set; with one, all of the others
/// are set instead.
pub(super) fn lines(flags: Flags) -> (u16, bool) {
    let bits = flags & Flags::ALL_UNDERLINES;
    let over = bits.bits().count_ones() > 1;
    let under = if over { Flags::ALL_UNDERLINES - bits } else { bits };
    (UNDERLINES.iter().position(|&line| line == under).unwrap_or(0) as u16, over)
}

fn set_lines(flags: &mut Flags, under: u16, over: bool) {
    let under = UNDERLINES.get(usize::from(under)).copied().unwrap_or(Flags::UNDERLINE);
    flags.remove(Flags::ALL_UNDERLINES);
    flags.insert(if over { Flags::ALL_UNDERLINES - under } else { under });
}

/// Reads the colour after 38, 48 or 58, from the subparameters (`same`) or from the parameters that follow
/// (`next`).
fn colour(same: &[u16], next: &mut ParamsIter<'_>) -> Option<Color> {
    let byte = |n: Option<u16>| n.and_then(|n| u8::try_from(n).ok());
    if same.is_empty() {
        let mut next = next.map(|param| param.first().copied().unwrap_or(0));
        return match next.next()? {
            2 => {
                let (r, g, b) = (next.next(), next.next(), next.next());
                Some(Color::Spec(Rgb { r: byte(r)?, g: byte(g)?, b: byte(b)? }))
            }
            5 => Some(Color::Indexed(byte(next.next())?)),
            _ => None,
        };
    }
    match same {
        // The longer form has a colour space id before the components.
        [2, _, r, g, b, ..] | [2, r, g, b] => {
            Some(Color::Spec(Rgb { r: byte(Some(*r))?, g: byte(Some(*g))?, b: byte(Some(*b))? }))
        }
        [5, n, ..] => Some(Color::Indexed(byte(Some(*n))?)),
        _ => None,
    }
}

/// The attributes that text is printed with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pen {
    pub(super) fg: Color,
    pub(super) bg: Color,
    pub(super) flags: Flags,
    pub(super) underline: Option<Color>,
    pub(super) link: Option<Hyperlink>,
}

impl Default for Pen {
    fn default() -> Pen {
        Pen { fg: DEFAULT_FG, bg: DEFAULT_BG, flags: Flags::empty(), underline: None, link: None }
    }
}

impl Pen {
    pub(super) fn of(cell: &Cell) -> Pen {
        let layout = Flags::WRAPLINE | Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
        Pen {
            fg: cell.fg,
            bg: cell.bg,
            flags: cell.flags.difference(layout),
            underline: cell.underline_color(),
            link: cell.hyperlink(),
        }
    }

    /// The SGR codes that change `from` into this. They do not cover links.
    pub(super) fn codes(&self, from: &Pen) -> Vec<String> {
        let plain = Pen::default();
        let mut codes = Vec::new();
        let mut from = from;
        let ((under, over), (was_under, was_over)) = (lines(self.flags), lines(from.flags));
        let removed = from.flags - self.flags - Flags::ALL_UNDERLINES;
        if !removed.is_empty() || (was_under != 0 && under == 0) || (was_over && !over) {
            codes.push("0".to_owned());
            from = &plain;
        }
        let added = self.flags - from.flags;
        codes.extend(
            ATTRIBUTES.iter().filter(|(flag, ..)| added.contains(*flag)).map(|(_, code, _)| (*code).to_owned()),
        );
        let (was_under, was_over) = lines(from.flags);
        if under != was_under {
            codes.push(if under == 1 { "4".to_owned() } else { format!("4:{under}") });
        }
        if over && !was_over {
            codes.push("53".to_owned());
        }
        if self.fg != from.fg {
            codes.push(ground_code(self.fg, 30));
        }
        if self.bg != from.bg {
            codes.push(ground_code(self.bg, 40));
        }
        if self.underline != from.underline {
            codes.push(match self.underline {
                None | Some(Color::Named(_)) => "59".to_owned(),
                Some(Color::Indexed(n)) => format!("58:5:{n}"),
                Some(Color::Spec(Rgb { r, g, b })) => format!("58:2::{r}:{g}:{b}"),
            });
        }
        codes
    }

    /// Writes the change from `from` to this, including the link.
    pub(super) fn write(&self, from: &Pen, out: &mut Vec<u8>) {
        if self.link != from.link {
            write_link(self.link.as_ref(), out);
        }
        let same =
            self.fg == from.fg && self.bg == from.bg && self.flags == from.flags && self.underline == from.underline;
        if same {
            return;
        }
        out.extend_from_slice(b"\x1b[");
        let plain = Pen { link: self.link.clone(), ..Pen::default() };
        if *self != plain {
            out.extend_from_slice(self.codes(from).join(";").as_bytes());
        }
        out.push(b'm');
    }
}

fn ground_code(colour: Color, base: u8) -> String {
    match colour {
        Color::Named(name) => match NAMED.iter().position(|&n| n == name) {
            Some(n @ 0..=7) => (usize::from(base) + n).to_string(),
            Some(n) => (usize::from(base) + 52 + n).to_string(),
            None => (base + 9).to_string(),
        },
        Color::Indexed(n) => format!("{};5;{n}", base + 8),
        Color::Spec(Rgb { r, g, b }) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

fn write_link(link: Option<&Hyperlink>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b]8;");
    if let Some(link) = link {
        if !link.id().is_empty() {
            out.extend_from_slice(b"id=");
            out.extend_from_slice(link.id().as_bytes());
        }
        out.push(b';');
        out.extend_from_slice(link.uri().as_bytes());
    } else {
        out.push(b';');
    }
    out.extend_from_slice(b"\x1b\\");
}
