//! Device control strings (DCS) that are queries: DECRQSS and XTGETTCAP.

use std::fmt::Write as _;

use super::limits::DCS_MAX;
use super::sgr;
use super::state::State;

/// The device control string being received. Its data is kept only if it is a query.
#[derive(Debug, Default)]
pub(super) struct DeviceString {
    kind: Kind,
    data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Ignored,
    /// `DCS $ q`: the value of a setting.
    Setting,
    /// `DCS + q`: terminfo capabilities by name.
    Capabilities,
}

impl DeviceString {
    pub(super) fn start(&mut self, intermediates: &[u8], ignored: bool, action: char) {
        self.data.clear();
        self.kind = match (intermediates, action) {
            _ if ignored => Kind::Ignored,
            ([b'$'], 'q') => Kind::Setting,
            ([b'+'], 'q') => Kind::Capabilities,
            _ => Kind::Ignored,
        };
    }

    pub(super) fn push(&mut self, byte: u8) {
        if self.kind == Kind::Ignored {
            return;
        }
        if self.data.len() >= DCS_MAX {
            self.kind = Kind::Ignored;
            self.data.clear();
        } else {
            self.data.push(byte);
        }
    }
}

impl State {
    /// Replies at the end of a device control string, if it is a query.
    pub(super) fn reply_to_device_string(&mut self) {
        let DeviceString { kind, data } = std::mem::take(&mut self.device_string);
        match kind {
            Kind::Ignored => {}
            Kind::Setting => self.reply_setting(&data),
            Kind::Capabilities => self.reply_capabilities(&data),
        }
    }

    fn reply_setting(&mut self, name: &[u8]) {
        let value = match name {
            b"m" => {
                let pen = sgr::Pen::of(&self.grid().cursor.template);
                format!("0{}m", pen.codes(&sgr::Pen::default()).iter().map(|c| format!(";{c}")).collect::<String>())
            }
            b"r" => format!("{};{}r", self.region.0 + 1, self.region.1),
            b" q" => format!("{} q", self.modes.cursor_style),
            b"\"p" => "62;1\"p".to_owned(),
            b"\"q" => "0\"q".to_owned(),
            _ => return self.reply("\x1bP0$r\x1b\\"),
        };
        self.reply(&format!("\x1bP1$r{value}\x1b\\"));
    }

    fn reply_capabilities(&mut self, names: &[u8]) {
        for name in names.split(|&b| b == b';') {
            let hex = String::from_utf8_lossy(name);
            // Only hexadecimal digits are echoed, so that a program cannot have arbitrary input typed.
            if hex.is_empty() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
                return self.reply("\x1bP0+r\x1b\\");
            }
            let known = from_hex(name).and_then(|name| capability(&name));
            match known {
                Some(value) => self.reply(&format!("\x1bP1+r{hex}={}\x1b\\", to_hex(value))),
                None => return self.reply(&format!("\x1bP0+r{hex}\x1b\\")),
            }
        }
    }
}

/// A capability by its terminfo name.
fn capability(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"TN" | b"name" => "xterm-256color",
        b"Co" | b"colors" => "256",
        b"RGB" => "8/8/8",
        b"Tc" | b"Su" => "",
        b"Ms" => "\x1b]52;%p1%s;%p2%s\x07",
        b"Ss" => "\x1b[%p1%d q",
        b"Se" => "\x1b[0 q",
        b"Smulx" => "\x1b[4:%p1%dm",
        b"setrgbf" => "\x1b[38;2;%p1%d;%p2%d;%p3%dm",
        b"setrgbb" => "\x1b[48;2;%p1%d;%p2%d;%p3%dm",
        _ => return None,
    })
}

fn from_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(hex).ok().filter(|text| text.len() % 2 == 0)?;
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

fn to_hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
