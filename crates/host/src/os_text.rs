//! Operating system strings (arguments, paths, variables) in JSON, including those that are not UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

/// An operating system string: in JSON, a string if it is UTF-8, otherwise an array of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OsText {
    Text(String),
    /// Not UTF-8.
    Bytes(Vec<u8>),
}

impl OsText {
    /// The text for display; invalid UTF-8 is replaced.
    pub fn lossy(&self) -> String {
        match self {
            OsText::Text(text) => text.clone(),
            OsText::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    pub fn as_os(&self) -> &OsStr {
        match self {
            OsText::Text(text) => OsStr::new(text),
            OsText::Bytes(bytes) => OsStr::from_bytes(bytes),
        }
    }
}

impl Default for OsText {
    fn default() -> OsText {
        OsText::Text(String::new())
    }
}

impl From<OsString> for OsText {
    fn from(text: OsString) -> OsText {
        text.into_string().map_or_else(|bytes| OsText::Bytes(bytes.into_vec()), OsText::Text)
    }
}

impl From<&str> for OsText {
    fn from(text: &str) -> OsText {
        OsText::Text(text.to_owned())
    }
}
