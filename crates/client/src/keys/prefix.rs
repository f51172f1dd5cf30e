//! Which key is the detach key.

use std::fmt;
use std::str::FromStr;

use super::decode::Key;

/// The detach key: Ctrl with a letter or one of `@ \ ] ^ _`. It is written `ctrl-\`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix(char);

/// A text that names no usable detach key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no detach key: write ctrl- and a letter or one of @ \\ ] ^ _, or none")]
pub struct BadPrefix(pub String);

impl Prefix {
    pub(super) fn key(self) -> Key {
        Key::Ctrl(self.0)
    }
}

impl Default for Prefix {
    fn default() -> Prefix {
        Prefix('\\')
    }
}

impl FromStr for Prefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<Prefix, BadPrefix> {
        let lower = text.to_ascii_lowercase();
        let key = ["ctrl-", "ctrl+", "c-", "^"].iter().find_map(|start| lower.strip_prefix(start));
        let mut letters = key.unwrap_or_default().chars();
        match (letters.next(), letters.next()) {
            // Ctrl-[ is Escape, which starts every other key.
            (Some(c @ ('a'..='z' | '@' | '\\' | ']' | '^' | '_')), None) => Ok(Prefix(c)),
            _ => Err(BadPrefix(text.to_owned())),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ctrl-{}", self.0.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detach_keys_are_read_as_people_write_them() {
        for (text, shown) in [("ctrl-\\", "Ctrl-\\"), ("C-a", "Ctrl-A"), ("^]", "Ctrl-]"), ("Ctrl+B", "Ctrl-B")] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), shown);
        }
        for bad in ["", "a", "ctrl-", "ctrl-[", "ctrl-ab", "ctrl-1", "^"] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
    }
}
