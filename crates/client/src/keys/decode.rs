//! Decodes one key from the encodings that terminals use.

/// A key, as far as the viewer distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character without Ctrl, Alt or Super.
    Plain(char),
    /// A character with Ctrl alone, in lower case.
    Ctrl(char),
    Other,
}

/// A key press or release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyEvent {
    pub(super) key: Key,
    /// Terminals report releases only in a mode that a program sets.
    pub(super) released: bool,
    code: u32,
}

const SHIFT: u32 = 1;
const CTRL: u32 = 4;
/// Caps Lock and Num Lock, which are ignored.
const LOCKS: u32 = 64 | 128;

impl KeyEvent {
    /// Decodes a key of one byte.
    pub(super) fn from_byte(byte: u8) -> Option<KeyEvent> {
        let key = match byte {
            0x00..=0x1a | 0x1c..=0x1f => Key::Ctrl(char::from(byte + 0x40).to_ascii_lowercase()),
            0x1b | 0x20..=0x7e => Key::Plain(char::from(byte)),
            _ => Key::Other,
        };
        Some(KeyEvent { key, released: false, code: u32::from(byte) })
    }

    /// Decodes a key of several bytes that start with Escape. `None` if it has no character.
    pub(super) fn from_sequence(bytes: &[u8]) -> Option<KeyEvent> {
        if bytes == b"\x1b" {
            return KeyEvent::from_byte(0x1b);
        }
        let body = std::str::from_utf8(bytes.strip_prefix(b"\x1b[")?).ok()?;
        if let Some(body) = body.strip_suffix('u') {
            // code:shifted:base ; modifiers:event ; text
            let mut fields = body.split(';');
            let code = number(fields.next()?)?;
            let modifiers = fields.next().unwrap_or("1");
            let event = modifiers.split(':').nth(1).unwrap_or("1");
            return Some(KeyEvent::new(code, number(modifiers).unwrap_or(1), event == "3"));
        }
        let rest = body.strip_suffix('~')?.strip_prefix("27;")?;
        let (modifiers, code) = rest.split_once(';')?;
        Some(KeyEvent::new(number(code)?, number(modifiers)?, false))
    }

    fn new(code: u32, modifiers: u32, released: bool) -> KeyEvent {
        let modifiers = modifiers.saturating_sub(1) & !LOCKS;
        let key = match (char::from_u32(code), modifiers) {
            (Some(c), 0) => Key::Plain(c),
            (Some(c), SHIFT) => Key::Plain(c.to_ascii_uppercase()),
            (Some(c), CTRL) => Key::Ctrl(c.to_ascii_lowercase()),
            _ => Key::Other,
        };
        KeyEvent { key, released, code }
    }

    /// Whether the key is a modifier, such as Shift or Ctrl, by itself.
    pub(super) fn is_modifier(self) -> bool {
        (57358..=57360).contains(&self.code) || (57441..=57454).contains(&self.code)
    }
}

/// Parses the first sub-parameter of a field.
fn number(field: &str) -> Option<u32> {
    field.split(':').next()?.parse().ok()
}
