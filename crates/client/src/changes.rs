//! Records what a session's output changed on the real terminal, and undoes exactly that.
//!
//! A full reset (RIS) would also discard the user's own state, on some terminals even the scrollback. So the filter
//! records every sequence with a lasting effect, and detaching resets each of these to its default.

use std::collections::BTreeMap;

use crate::filter::{Csi, split_code};

/// The most modes that are recorded. Real programs use about thirty; modes beyond the limit are not undone.
const MAX_MODES: usize = 256;
/// The most entries of a stack (titles, keyboard flags) that are undone; further pushes are not counted.
const MAX_STACK: u32 = 32;

/// Private modes that are on by default: autowrap, autorepeat, the cursor, alternate scroll, Meta and Alt keys.
const ON_BY_DEFAULT: [u32; 7] = [7, 8, 25, 1007, 1034, 1036, 1039];
/// The three modes that switch to the alternate screen.
const ALTERNATE: [u32; 3] = [47, 1047, 1049];
/// VT52 mode; undone before the other modes, by a sequence of its own.
const VT52: u32 = 2;
/// Saves the cursor; not a lasting mode.
const SAVE_CURSOR: u32 = 1048;

/// The lasting changes that a session's output made on the terminal.
#[derive(Clone, Debug, Default)]
pub struct TerminalChanges {
    /// Private modes that were set or reset, with their current value.
    private: BTreeMap<u32, bool>,
    /// Standard modes that were set or reset, with their current value.
    ansi: BTreeMap<u32, bool>,
    keypad: bool,
    cursor_style: bool,
    region: bool,
    tabs: bool,
    charset: bool,
    protected: bool,
    link: bool,
    eight_bit_keys: bool,
    progress: bool,
    pointer: bool,
    palette: bool,
    special_palette: bool,
    /// Dynamic colours (OSC 10 to 19), one bit each.
    colours: u16,
    /// Titles pushed and not popped.
    titles: u32,
    /// Key modifier resources (XTMODKEYS), one bit each.
    key_modifiers: u8,
    /// Keyboard flags pushed on the main and the alternate screen.
    keyboard: [u32; 2],
    /// Keyboard flags changed in place.
    keyboard_set: [bool; 2],
}

impl TerminalChanges {
    /// Whether the alternate screen is active.
    pub fn is_alternate(&self) -> bool {
        ALTERNATE.iter().any(|mode| self.private.get(mode) == Some(&true))
    }

    /// Whether a synchronised update is in progress, which stops the terminal from redrawing.
    pub fn is_synchronised(&self) -> bool {
        self.private.get(&2026) == Some(&true)
    }

    /// Whether [`TerminalChanges::undo`] moves the cursor away from where the program left it.
    pub fn moves_cursor(&self) -> bool {
        self.is_alternate()
            || self.region
            || self.tabs
            || self.private.contains_key(&6)
            || self.private.contains_key(&69)
    }

    /// Whether the terminal reports mouse or focus events.
    pub fn reports_input(&self) -> bool {
        [9, 1000, 1001, 1002, 1003, 1004].iter().any(|mode| self.private.get(mode) == Some(&true))
    }

    /// Whether the colour that OSC `code` resets was changed.
    pub(crate) fn has_colour(&self, code: u32) -> bool {
        match code {
            104 => self.palette,
            105 => self.special_palette,
            110..=119 => self.colours & (1 << (code - 110)) != 0,
            _ => true,
        }
    }

    /// Records a control sequence.
    pub(crate) fn csi(&mut self, csi: &Csi) {
        match (csi.prefix, csi.intermediate, csi.action) {
            (b'?', 0, b'h' | b'l') => csi.numbers().for_each(|mode| self.private_mode(mode, csi.action == b'h')),
            (0, 0, b'h' | b'l') => csi.numbers().for_each(|mode| {
                if self.ansi.len() < MAX_MODES {
                    self.ansi.insert(mode, csi.action == b'h');
                }
            }),
            (0, 0, b'r') => self.region = true,
            (0, 0, b'g') | (b'?', 0, b'W') => self.tabs = true,
            (0, b' ', b'q') => self.cursor_style = true,
            (0, b'"', b'q') => self.protected = true,
            (0, 0, b't') if csi.first() == 22 => self.titles = (self.titles + 1).min(MAX_STACK),
            (0, 0, b't') if csi.first() == 23 => self.titles = self.titles.saturating_sub(1),
            (b'>', 0, b'm' | b'n') => self.key_modifiers |= 1 << csi.first().min(7),
            (b'>', 0, b'u') => *self.stack() = (*self.stack() + 1).min(MAX_STACK),
            (b'<', 0, b'u') => *self.stack() = self.stack().saturating_sub(csi.first().max(1)),
            (b'=', 0, b'u') => self.keyboard_set[usize::from(self.is_alternate())] = true,
            _ => {}
        }
    }

    /// Records an escape sequence, given its intermediate byte (or 0) and its final byte.
    pub(crate) fn escape(&mut self, intermediate: u8, action: u8) {
        match (intermediate, action) {
            // A full reset by the program undoes everything but the title stack.
            (0, b'c') => *self = TerminalChanges { titles: self.titles, ..TerminalChanges::default() },
            (0, b'=') => self.keypad = true,
            (0, b'>') => self.keypad = false,
            (0, b'H') => self.tabs = true,
            (b'('..=b'/', _) | (0, b'n' | b'o' | b'|' | b'}' | b'~') => self.charset = true,
            (b' ', b'F' | b'G') => self.eight_bit_keys = action == b'G',
            _ => {}
        }
    }

    /// Records an operating system command.
    pub(crate) fn osc(&mut self, text: &[u8]) {
        let (code, rest) = split_code(text);
        match code {
            Some(4) => self.palette = true,
            Some(5 | 6) => self.special_palette = true,
            Some(8) => self.link = true,
            Some(9) if rest.starts_with(b"4;") => self.progress = !rest.starts_with(b"4;0"),
            Some(code @ 10..=19) => self.colours |= 1 << (code - 10),
            // Kitty's sequence for the same colours.
            Some(21) => self.colours |= 0b1111,
            Some(22) => self.pointer = true,
            _ => {}
        }
    }

    /// Appends the sequences that undo all changes, and clears the record. `cols` is the window's width, for the tab
    /// stops. The cursor moves.
    pub fn undo(&mut self, cols: u16, out: &mut Vec<u8>) {
        let put = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
        let was = std::mem::take(self);
        if was.private.get(&VT52) == Some(&false) {
            put(out, "\x1b<");
        }
        if was.is_synchronised() {
            put(out, "\x1b[?2026l");
        }
        was.undo_keyboard(1, out);
        for mode in ALTERNATE.iter().filter(|mode| was.private.get(mode) == Some(&true)) {
            put(out, &format!("\x1b[?{mode}l"));
        }
        was.undo_keyboard(0, out);
        for (mode, on) in &was.private {
            let default = ON_BY_DEFAULT.contains(mode);
            if *on != default && !ALTERNATE.contains(mode) && ![VT52, SAVE_CURSOR, 2026].contains(mode) {
                put(out, &format!("\x1b[?{mode}{}", if default { 'h' } else { 'l' }));
            }
        }
        for (mode, on) in &was.ansi {
            // Local echo off (mode 12 set) is the default; everything else is reset.
            let default = *mode == 12;
            if *on != default {
                put(out, &format!("\x1b[{mode}{}", if default { 'h' } else { 'l' }));
            }
        }
        for resource in (0..8).filter(|bit| was.key_modifiers & (1 << bit) != 0) {
            put(out, &format!("\x1b[>{resource}m"));
        }
        for code in (10..20).filter(|code| was.colours & (1 << (code - 10)) != 0) {
            put(out, &format!("\x1b]{}\x1b\\", code + 100));
        }
        for (changed, undo) in [
            (was.keypad, "\x1b>"),
            (was.cursor_style, "\x1b[0 q"),
            (was.protected, "\x1b[0\"q"),
            (was.link, "\x1b]8;;\x1b\\"),
            (was.eight_bit_keys, "\x1b F"),
            (was.palette, "\x1b]104\x1b\\"),
            (was.special_palette, "\x1b]105\x1b\\"),
            (was.progress, "\x1b]9;4;0;\x1b\\"),
            (was.pointer, "\x1b]22;\x1b\\"),
            (was.charset, "\x1b)B"),
            (was.region, "\x1b[r"),
        ] {
            if changed {
                put(out, undo);
            }
        }
        if was.tabs {
            put(out, "\x1b[3g\r");
            for _ in 0..cols.saturating_sub(1) / 8 {
                put(out, "\x1b[8C\x1bH");
            }
        }
        for _ in 0..was.titles {
            put(out, "\x1b[23;0t");
        }
        // Shifts and text attributes are not recorded; they are always reset.
        put(out, "\x0f\x1b(B\x1b[m");
    }

    fn undo_keyboard(&self, screen: usize, out: &mut Vec<u8>) {
        if self.keyboard[screen] > 0 {
            out.extend_from_slice(format!("\x1b[<{}u", self.keyboard[screen]).as_bytes());
        }
        if self.keyboard_set[screen] {
            out.extend_from_slice(b"\x1b[=0;1u");
        }
    }

    fn private_mode(&mut self, mode: u32, on: bool) {
        if self.private.len() < MAX_MODES || self.private.contains_key(&mode) {
            self.private.insert(mode, on);
        }
        if ALTERNATE.contains(&mode) && !on {
            // Resetting any of the three leaves the alternate screen.
            ALTERNATE.iter().for_each(|name| {
                self.private.remove(name);
            });
        }
    }

    fn stack(&mut self) -> &mut u32 {
        let screen = usize::from(self.is_alternate());
        &mut self.keyboard[screen]
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::Filter;

    /// The sequences that undo `output`, without those that are always written at the end.
    fn undo_after(output: &str) -> String {
        let (mut filter, mut out) = (Filter::new(), Vec::new());
        filter.filter(output.as_bytes(), &mut out);
        out.clear();
        filter.changes_mut().undo(20, &mut out);
        String::from_utf8(out).unwrap().strip_suffix("\x0f\x1b(B\x1b[m").unwrap().to_owned()
    }

    #[test]
    fn without_changes_nothing_is_undone() {
        assert_eq!(undo_after("plain \x1b[31mred\x1b[m \x1b[?25l\x1b[?25h\x1b[?1049h\x1b[?1049l"), "");
    }

    #[test]
    fn r24_each_change_is_undone() {
        for (output, undo) in [
            ("\x1b[?1049h", "\x1b[?1049l"),
            ("\x1b[?47h\x1b[?1002;1006h", "\x1b[?47l\x1b[?1002l\x1b[?1006l"),
            ("\x1b[?25l", "\x1b[?25h"),
            ("\x1b[?7l", "\x1b[?7h"),
            ("\x1b[?1h\x1b=", "\x1b[?1l\x1b>"),
            ("\x1b[?2004h\x1b[?1004h", "\x1b[?1004l\x1b[?2004l"),
            ("\x1b[4h", "\x1b[4l"),
            ("\x1b[5 q", "\x1b[0 q"),
            ("\x1b[2;5r", "\x1b[r"),
            ("\x1b]11;#000\x07", "\x1b]111\x1b\\"),
            ("\x1b]4;1;#000\x07", "\x1b]104\x1b\\"),
            ("\x1b[>1u\x1b[>3u\x1b[<u", "\x1b[<1u"),
            ("\x1b[>1u\x1b[?1049h\x1b[>1u", "\x1b[<1u\x1b[?1049l\x1b[<1u"),
            ("\x1b[>4;2m", "\x1b[>4m"),
            ("\x1b[22;0t\x1b[22t\x1b[23t", "\x1b[23;0t"),
            ("\x1b[3g", "\x1b[3g\r\x1b[8C\x1bH\x1b[8C\x1bH"),
            ("\x1b[?2026h", "\x1b[?2026l"),
            ("\x1b]8;;http://x\x07", "\x1b]8;;\x1b\\"),
        ] {
            assert_eq!(undo_after(output), undo, "after {output:?}");
        }
    }

    #[test]
    fn a_reset_by_the_program_leaves_nothing_to_undo() {
        assert_eq!(undo_after("\x1b[?1049h\x1b[?1000h\x1bc"), "");
    }
}
