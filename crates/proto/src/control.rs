//! The owner's socket has a second use beside attaching: asking the session process to describe, show or end itself.
//!
//! A connection whose first text is one of these [`Request`]s is a control connection. Each request gets one
//! [`Reply`] in order, except `status` with `follow`, which gets one now and one after each change.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Offset;
use crate::ids::SessionName;
use crate::problem::Code;
use crate::session::SessionInfo;

/// The signals that a `signal` command sends; each is also taken with `SIG` in front.
pub const SIGNALS: [&str; 11] = ["HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "CONT", "STOP", "TSTP", "WINCH"];

/// The entry of [`SIGNALS`] that `name` means, with or without `SIG`.
pub fn sendable_signal(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    SIGNALS.into_iter().find(|known| *known == name)
}

/// What a control connection may ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// Describe yourself.
    Status {
        /// And again after each change.
        #[serde(default)]
        follow: bool,
    },
    /// End the program and everything it started.
    End {
        /// Milliseconds between SIGHUP and SIGKILL.
        #[serde(default)]
        grace_ms: Option<u64>,
    },
    /// Change what may change.
    Set {
        /// A new name.
        #[serde(default)]
        name: Option<SessionName>,
        /// Seconds without a viewer after which the session ends; 0 for never.
        #[serde(default)]
        detached_ttl: Option<u64>,
    },
    /// Show the screen.
    Screen {
        /// In which form.
        format: ScreenFormat,
        /// With this many lines of scrollback.
        #[serde(default)]
        scrollback: u32,
    },
    /// Read a part of the log: a degraded session has it in its memory only.
    Log {
        /// From here; the oldest byte kept if absent.
        #[serde(default)]
        from: Option<Offset>,
        /// At most so many bytes; an answer may have fewer.
        max: u32,
    },
    /// Do something once.
    Command {
        /// The command's id.
        id: String,
        /// What.
        command: Value,
    },
    /// Something newer than this code; it gets `error`.
    #[serde(other)]
    Unknown,
}

/// A way to show a screen.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScreenFormat {
    /// Plain text.
    Text,
    /// Text with colours.
    Ansi,
    /// Cells, cursor and modes.
    Json,
}

/// What a control connection gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// The session as it is.
    Status {
        /// The description.
        session: Box<SessionInfo>,
    },
    /// Ending has begun; the lock is released when it is done.
    Ending,
    /// The change is made and durable.
    Done,
    /// The screen.
    Screen {
        /// Text, ANSI (as a string; the emulator holds only valid characters) or a JSON value.
        screen: Value,
    },
    /// A part of the log.
    Log {
        /// The oldest byte kept.
        start: Offset,
        /// One past the newest.
        end: Offset,
        /// The bytes as [`bytes_to_text`] writes them; none where none are kept.
        bytes: String,
    },
    /// A command was taken.
    Accepted {
        /// Which.
        id: String,
        /// Its place in the session's events.
        seq: u64,
        /// It had been taken before.
        duplicate: bool,
    },
    /// It could not be done.
    Error {
        /// A problem code.
        code: Code,
        /// For people.
        message: String,
    },
    /// Something newer than this code.
    #[serde(other)]
    Unknown,
}

/// Bytes in a JSON text: a character each, U+0000 to U+00FF.
pub fn bytes_to_text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// What [`bytes_to_text`] wrote; `None` where it did not.
pub fn text_to_bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|char| u8::try_from(char).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_a_text() {
        let all: Vec<u8> = (0..=255).collect();
        let text = bytes_to_text(&all);
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(text_to_bytes(&serde_json::from_str::<String>(&json).unwrap()), Some(all));
        assert_eq!(text_to_bytes("\u{100}"), None);
    }
}
