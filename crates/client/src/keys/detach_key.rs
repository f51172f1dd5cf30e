//! Parses and formats the detach key.

use std::fmt;
use std::str::FromStr;

use super::decode::Key;

/// The detach key: Ctrl with a letter or one of `@ \ ] ^ _`. It is written `ctrl-\`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetachKey(char);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid detach key {0:?}: use ctrl- followed by a letter or one of @ \\ ] ^ _, or none")]
pub struct InvalidDetachKey(pub String);

impl DetachKey {
    pub(super) fn key(self) -> Key {
        Key::Ctrl(self.0)
    }

    /// The character that is pressed with Ctrl.
    pub(crate) fn letter(self) -> char {
        self.0
    }
}

impl Default for DetachKey {
    fn default() -> DetachKey {
        DetachKey('\\')
    }
}

impl FromStr for DetachKey {
    type Err = InvalidDetachKey;

    fn from_str(text: &str) -> Result<DetachKey, InvalidDetachKey> {
        let lower = text.to_ascii_lowercase();
        let key = ["ctrl-", "ctrl+", "c-", "^"].iter().find_map(|start| lower.strip_prefix(start));
        let mut letters = key.unwrap_or_default().chars();
        match (letters.next(), letters.next()) {
            // Ctrl-[ is Escape, which starts the sequences of other keys.
            (Some(c @ ('a'..='z' | '@' | '\\' | ']' | '^' | '_')), None) => Ok(DetachKey(c)),
            _ => Err(InvalidDetachKey(text.to_owned())),
        }
    }
}

impl fmt::Display for DetachKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ctrl-{}", self.0.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detach_keys_are_parsed_in_common_spellings() {
        for (text, shown) in [("ctrl-\\", "Ctrl-\\"), ("C-a", "Ctrl-A"), ("^]", "Ctrl-]"), ("Ctrl+B", "Ctrl-B")] {
            assert_eq!(text.parse::<DetachKey>().unwrap().to_string(), shown);
        }
        for bad in ["", "a", "ctrl-", "ctrl-[", "ctrl-ab", "ctrl-1", "^"] {
            assert!(bad.parse::<DetachKey>().is_err(), "{bad}");
        }
    }
}
