//! The keys that `send --key` accepts, and the bytes that a terminal sends for them.

/// The names of the keys, for error messages.
pub(crate) const NAMES: &str = "Enter, Tab, BTab, Escape, Space, Backspace, Delete, Insert, Home, End, PageUp, PageDown, \
                                Up, Down, Left, Right, F1 to F12, a single character, C-CHARACTER or M-KEY";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Always sends this text.
    Plain(String),
    /// Sends `ESC [`, or `ESC O` in application cursor mode, and then this letter.
    Cursor(char),
}

impl Key {
    /// Parses the name of a key, ignoring case.
    pub(crate) fn parse(text: &str) -> Result<Key, String> {
        parse_name(text).ok_or_else(|| format!("choose one of {NAMES}"))
    }

    /// The text that a terminal sends for the key.
    pub(crate) fn encode(&self, application_cursor: bool) -> String {
        match self {
            Key::Plain(text) => text.clone(),
            Key::Cursor(letter) if application_cursor => format!("\x1bO{letter}"),
            Key::Cursor(letter) => format!("\x1b[{letter}"),
        }
    }
}

fn parse_name(text: &str) -> Option<Key> {
    let plain = |text: &str| Some(Key::Plain(text.to_owned()));
    if let Some(rest) = strip(text, "m-") {
        // Alt sends Escape before a single character. For other keys, terminals differ.
        return match parse_name(rest)? {
            Key::Plain(key) if key.chars().count() == 1 => Some(Key::Plain(format!("\x1b{key}"))),
            Key::Plain(_) | Key::Cursor(_) => None,
        };
    }
    if let Some(rest) = strip(text, "c-") {
        return parse_control(rest).map(|key| Key::Plain(key.to_string()));
    }
    if text.chars().count() == 1 {
        return plain(text).filter(|_| !text.contains(char::is_control));
    }
    match text.to_ascii_lowercase().as_str() {
        "enter" => plain("\r"),
        "tab" => plain("\t"),
        "btab" => plain("\x1b[Z"),
        "escape" => plain("\x1b"),
        "space" => plain(" "),
        "backspace" => plain("\x7f"),
        "insert" => plain("\x1b[2~"),
        "delete" => plain("\x1b[3~"),
        "pageup" => plain("\x1b[5~"),
        "pagedown" => plain("\x1b[6~"),
        "up" => Some(Key::Cursor('A')),
        "down" => Some(Key::Cursor('B')),
        "right" => Some(Key::Cursor('C')),
        "left" => Some(Key::Cursor('D')),
        "home" => Some(Key::Cursor('H')),
        "end" => Some(Key::Cursor('F')),
        "f1" => plain("\x1bOP"),
        "f2" => plain("\x1bOQ"),
        "f3" => plain("\x1bOR"),
        "f4" => plain("\x1bOS"),
        "f5" => plain("\x1b[15~"),
        "f6" => plain("\x1b[17~"),
        "f7" => plain("\x1b[18~"),
        "f8" => plain("\x1b[19~"),
        "f9" => plain("\x1b[20~"),
        "f10" => plain("\x1b[21~"),
        "f11" => plain("\x1b[23~"),
        "f12" => plain("\x1b[24~"),
        _ => None,
    }
}

/// Strips a prefix, ignoring case. `None` if nothing follows it.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    (head.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
}

/// The control character that Ctrl and the named character send.
fn parse_control(text: &str) -> Option<char> {
    if text.eq_ignore_ascii_case("space") {
        return Some('\0');
    }
    let mut chars = text.chars();
    match (chars.next()?.to_ascii_uppercase(), chars.next()) {
        ('?', None) => Some('\x7f'),
        (upper @ '@'..='_', None) => Some(char::from(upper as u8 & 0x1f)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_send_what_xterm_sends() {
        let sent = |name: &str| Key::parse(name).unwrap().encode(false);
        let names =
            ["Enter", "enter", "C-c", "c-C", "C-Space", "C-[", "C-?", "M-x", "M-X", "M-C-x", "M-Enter", "q", "F5"];
        let bytes =
            ["\r", "\r", "\x03", "\x03", "\0", "\x1b", "\x7f", "\x1bx", "\x1bX", "\x1b\x18", "\x1b\r", "q", "\x1b[15~"];
        assert_eq!(names.map(sent), bytes);
        for (name, normal, application) in
            [("Up", "\x1b[A", "\x1bOA"), ("left", "\x1b[D", "\x1bOD"), ("Home", "\x1b[H", "\x1bOH")]
        {
            let key = Key::parse(name).unwrap();
            assert_eq!((key.encode(false).as_str(), key.encode(true).as_str()), (normal, application));
        }
    }

    #[test]
    fn the_error_for_an_unknown_key_lists_the_keys() {
        for bad in ["", "Entre", "C-", "M-", "C-Up", "M-Up", "F13", "C-é", "\n"] {
            assert!(Key::parse(bad).unwrap_err().contains("PageDown"), "{bad:?}");
        }
    }
}
