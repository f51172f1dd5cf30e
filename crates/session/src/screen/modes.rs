//! The terminal's modes: how programs set and query them, and how a snapshot restores them.

/// Which mouse events are reported to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mouse {
    #[default]
    Off,
    /// Mode 9: button presses.
    X10,
    /// Mode 1000: presses and releases.
    Click,
    /// Mode 1002: presses, releases, and motion while a button is down.
    Drag,
    /// Mode 1003: presses, releases, and all motion.
    Motion,
}

/// How mouse events are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MouseCoding {
    #[default]
    Bytes,
    Utf8,
    Sgr,
    Urxvt,
    SgrPixels,
}

/// All modes except for the alternate screen, which the emulator keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) app_cursor: bool,
    pub(super) app_keypad: bool,
    pub(super) origin: bool,
    pub(super) autowrap: bool,
    pub(super) reverse_wrap: bool,
    pub(super) insert: bool,
    pub(super) newline: bool,
    pub(super) cursor_visible: bool,
    pub(super) cursor_blink: bool,
    /// The parameter of DECSCUSR. 0 is the viewer's default style.
    pub(super) cursor_style: u8,
    pub(super) mouse: Mouse,
    pub(super) mouse_coding: MouseCoding,
    pub(super) focus: bool,
    pub(super) alternate_scroll: bool,
    pub(super) bracketed_paste: bool,
    pub(super) colour_scheme: bool,
    /// xterm's modifyOtherKeys, 0-2.
    pub(super) modify_other_keys: u8,
}

impl Default for Modes {
    fn default() -> Modes {
        Modes {
            app_cursor: false,
            app_keypad: false,
            origin: false,
            autowrap: true,
            reverse_wrap: false,
            insert: false,
            newline: false,
            cursor_visible: true,
            cursor_blink: false,
            cursor_style: 0,
            mouse: Mouse::Off,
            mouse_coding: MouseCoding::Bytes,
            focus: false,
            alternate_scroll: true,
            bracketed_paste: false,
            colour_scheme: false,
            modify_other_keys: 0,
        }
    }
}

impl Modes {
    /// Sets or resets a private mode that has no immediate effect on the terminal. Unknown modes are ignored.
    pub(super) fn set_private(&mut self, mode: u16, on: bool) {
        match mode {
            9 => self.mouse = if on { Mouse::X10 } else { Mouse::Off },
            1000 => self.mouse = if on { Mouse::Click } else { Mouse::Off },
            1002 => self.mouse = if on { Mouse::Drag } else { Mouse::Off },
            1003 => self.mouse = if on { Mouse::Motion } else { Mouse::Off },
            1005 => self.mouse_coding = if on { MouseCoding::Utf8 } else { MouseCoding::Bytes },
            1006 => self.mouse_coding = if on { MouseCoding::Sgr } else { MouseCoding::Bytes },
            1015 => self.mouse_coding = if on { MouseCoding::Urxvt } else { MouseCoding::Bytes },
            1016 => self.mouse_coding = if on { MouseCoding::SgrPixels } else { MouseCoding::Bytes },
            _ => {
                if let Some(flag) = self.flag(mode) {
                    *flag = on;
                }
            }
        }
    }

    /// The state of a private mode as DECRQM reports it: 0 unknown, 1 set, 2 reset.
    pub(super) fn report(&mut self, mode: u16) -> u8 {
        let on = match mode {
            6 => self.origin,
            7 => self.autowrap,
            9 => self.mouse == Mouse::X10,
            1000 => self.mouse == Mouse::Click,
            1002 => self.mouse == Mouse::Drag,
            1003 => self.mouse == Mouse::Motion,
            1005 => self.mouse_coding == MouseCoding::Utf8,
            1006 => self.mouse_coding == MouseCoding::Sgr,
            1015 => self.mouse_coding == MouseCoding::Urxvt,
            1016 => self.mouse_coding == MouseCoding::SgrPixels,
            // Viewers handle synchronised updates; the session always reports them as off.
            2026 => false,
            _ => match self.flag(mode) {
                Some(flag) => *flag,
                None => return 0,
            },
        };
        if on { 1 } else { 2 }
    }

    fn flag(&mut self, mode: u16) -> Option<&mut bool> {
        Some(match mode {
            1 => &mut self.app_cursor,
            12 => &mut self.cursor_blink,
            25 => &mut self.cursor_visible,
            45 => &mut self.reverse_wrap,
            66 => &mut self.app_keypad,
            1004 => &mut self.focus,
            1007 => &mut self.alternate_scroll,
            2004 => &mut self.bracketed_paste,
            2031 => &mut self.colour_scheme,
            _ => return None,
        })
    }

    /// Writes the modes that differ from the defaults, except for origin mode, which would move the cursor.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let plain = Modes::default();
        let mut set = |on: bool, default: bool, code: &str| {
            if on != default {
                out.extend_from_slice(b"\x1b[");
                out.extend_from_slice(code.as_bytes());
                out.push(if on { b'h' } else { b'l' });
            }
        };
        set(self.insert, plain.insert, "4");
        set(self.newline, plain.newline, "20");
        set(self.app_cursor, plain.app_cursor, "?1");
        set(self.autowrap, plain.autowrap, "?7");
        set(self.cursor_blink, plain.cursor_blink, "?12");
        set(self.cursor_visible, plain.cursor_visible, "?25");
        set(self.reverse_wrap, plain.reverse_wrap, "?45");
        set(self.focus, plain.focus, "?1004");
        set(self.alternate_scroll, plain.alternate_scroll, "?1007");
        set(self.bracketed_paste, plain.bracketed_paste, "?2004");
        set(self.colour_scheme, plain.colour_scheme, "?2031");
        let mouse = match self.mouse {
            Mouse::Off => "",
            Mouse::X10 => "\x1b[?9h",
            Mouse::Click => "\x1b[?1000h",
            Mouse::Drag => "\x1b[?1002h",
            Mouse::Motion => "\x1b[?1003h",
        };
        let coding = match self.mouse_coding {
            MouseCoding::Bytes => "",
            MouseCoding::Utf8 => "\x1b[?1005h",
            MouseCoding::Sgr => "\x1b[?1006h",
            MouseCoding::Urxvt => "\x1b[?1015h",
            MouseCoding::SgrPixels => "\x1b[?1016h",
        };
        out.extend_from_slice(mouse.as_bytes());
        out.extend_from_slice(coding.as_bytes());
        if self.app_keypad {
            out.extend_from_slice(b"\x1b=");
        }
        if self.cursor_style != 0 {
            out.extend_from_slice(&[0x1b, b'[', b'0' + self.cursor_style.min(9), b' ', b'q']);
        }
        if self.modify_other_keys != 0 {
            out.extend_from_slice(&[0x1b, b'[', b'>', b'4', b';', b'0' + self.modify_other_keys.min(9), b'm']);
        }
    }

    /// The modes in the screen's JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "alternate_scroll": self.alternate_scroll,
            "app_cursor": self.app_cursor,
            "app_keypad": self.app_keypad,
            "autowrap": self.autowrap,
            "bracketed_paste": self.bracketed_paste,
            "focus": self.focus,
            "insert": self.insert,
            "mouse": match self.mouse {
                Mouse::Off => "off",
                Mouse::X10 => "x10",
                Mouse::Click => "click",
                Mouse::Drag => "drag",
                Mouse::Motion => "motion",
            },
            "mouse_coding": match self.mouse_coding {
                MouseCoding::Bytes => "bytes",
                MouseCoding::Utf8 => "utf8",
                MouseCoding::Sgr => "sgr",
                MouseCoding::Urxvt => "urxvt",
                MouseCoding::SgrPixels => "sgr_pixels",
            },
            "origin": self.origin,
            "reverse_wrap": self.reverse_wrap,
        })
    }

    /// Resets all modes of a terminal to the defaults.
    pub(super) const RESET: &[u8] = b"\x1b[4;20l\x1b[?1;6;12;45;9;1000;1002;1003;1004;1005;1006;1015;1016;2004;2031l\
        \x1b[?7;25;1007h\x1b>\x1b[0 q\x1b[>4;0m";
}
