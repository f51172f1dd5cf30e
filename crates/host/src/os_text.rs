//! Operating system strings (arguments, paths, variables) as JSON, also where they are not UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

/// Text of the operating system: JSON text where it is UTF-8, an array of bytes where it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OsText {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl OsText {
    /// For people.
    pub fn lossy(&self) -> String {
        match self {
            OsText::Text(text) => text.clone(),
            OsText::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// For the operating system.
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
