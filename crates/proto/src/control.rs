//! Control requests: what a session's socket answers besides attaching, such as the session's status or its screen.
//!
//! A connection whose first text message is a [`Request`] is a control connection. Each request gets one [`Reply`],
//! in order; `status` with `follow` gets another one after each change.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Offset;
use crate::agent::approval::Answered;
use crate::agent::event::RunId;
use crate::ids::SessionName;
use crate::problem::Code;
use crate::session::SessionInfo;

/// The signals that a `signal` command can send, without their `SIG` prefix.
pub const SIGNALS: [&str; 11] = ["HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "CONT", "STOP", "TSTP", "WINCH"];

/// The entry of [`SIGNALS`] for `name`, which may have the `SIG` prefix.
pub fn sendable_signal(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    SIGNALS.into_iter().find(|signal| *signal == name)
}

/// A request on a control connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// Describe the session.
    Status {
        /// Send another reply after each change.
        #[serde(default)]
        follow: bool,
        /// Leave out the agent's commands, as lists do. Older session processes send them in any case.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
    },
    /// End the program and everything it started.
    End {
        /// Milliseconds between SIGHUP and SIGKILL; the session's default if absent.
        #[serde(default)]
        grace_ms: Option<u64>,
    },
    /// Change the session's settings; absent fields stay as they are.
    Set {
        #[serde(default)]
        name: Option<SessionName>,
        /// Seconds without a viewer after which the session ends; 0 for never.
        #[serde(default)]
        detached_ttl: Option<u64>,
    },
    Screen {
        format: ScreenFormat,
        /// How many lines of scrollback to include.
        #[serde(default)]
        scrollback: u32,
    },
    /// Read part of the log. A degraded session has its log only in memory.
    Log {
        /// The first byte to read; the oldest one in the log if absent.
        #[serde(default)]
        from: Option<Offset>,
        /// The most bytes to return; the reply may have fewer.
        max: u32,
    },
    /// Do something exactly once.
    Command {
        /// Chosen by the client.
        id: String,
        command: Value,
        /// The name of the token or login that sent it, or `local` for a client on this machine; absent from older gateways.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A request type added by a newer version; the reply is `error`.
    #[serde(other)]
    Unknown,
}

/// The format of a screen.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScreenFormat {
    /// Plain text.
    Text,
    /// Text with colours and attributes, as escape sequences.
    Ansi,
    /// Cells, cursor and modes.
    Json,
}

/// A reply on a control connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    Status {
        session: Box<SessionInfo>,
    },
    /// The session is ending; its process releases the lock when it is done.
    Ending,
    /// The change is written to disk.
    Done,
    Screen {
        /// A string for the formats `text` and `ansi`, an object for `json`.
        screen: Value,
    },
    Log {
        /// The oldest byte in the log.
        start: Offset,
        /// One past the newest byte in the log.
        end: Offset,
        /// Encoded with [`bytes_to_text`]; empty if the log has no bytes in the requested range.
        bytes: String,
    },
    /// The session accepted a command.
    Accepted {
        /// The command's id.
        id: String,
        /// The number of the command in the session's journal.
        seq: u64,
        /// The run that it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// The command had been accepted before and was not run again.
        duplicate: bool,
    },
    /// The request failed.
    Error {
        code: Code,
        /// An explanation for people.
        message: String,
        /// Only with `already_answered`.
        #[serde(flatten)]
        answered: Option<Answered>,
    },
    /// A reply type added by a newer version.
    #[serde(other)]
    Unknown,
}

/// How the text of every [`Reply::Screen`] begins and ends.
const SCREEN_REPLY: (&str, &str) = (r#"{"type":"screen","screen":"#, "}");

/// The text of a [`Reply::Screen`] whose screen is already JSON.
pub fn screen_reply(screen: &str) -> String {
    [SCREEN_REPLY.0, screen, SCREEN_REPLY.1].concat()
}

/// The screen in the text of a [`Reply::Screen`], as JSON; `None` for any other reply. It is not parsed, because a screen
/// can consist of very many values.
pub fn screen_in(reply: &str) -> Option<&str> {
    reply.strip_prefix(SCREEN_REPLY.0)?.strip_suffix(SCREEN_REPLY.1)
}

/// Encodes bytes as text for JSON: one character per byte, U+0000 to U+00FF.
pub fn bytes_to_text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Reverses [`bytes_to_text`]; `None` if a character is above U+00FF.
pub fn text_to_bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|char| u8::try_from(char).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_of_a_reply_is_passed_on_as_it_is() {
        let screen = r#"{ "lines": ["\u00e9", 1.50], "title": "type" }"#;
        let reply = screen_reply(screen);
        let parsed = Reply::Screen { screen: serde_json::from_str(screen).unwrap() };
        assert_eq!(serde_json::from_str::<Reply>(&reply).unwrap(), parsed);
        assert_eq!(screen_in(&reply), Some(screen));
        let by_an_older_version = serde_json::to_string(&parsed).unwrap();
        assert!(screen_in(&by_an_older_version).is_some_and(|screen| screen.starts_with(r#"{"lines":"#)));
        let others = [r#"{"type":"error","code":"internal","message":"no"}"#, r#"{"type":"log","screen":1}"#, "", "[]"];
        assert!(others.iter().all(|other| screen_in(other).is_none()));
    }

    #[test]
    fn every_byte_survives_the_encoding_as_text() {
        let all: Vec<u8> = (0..=255).collect();
        let text = bytes_to_text(&all);
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(text_to_bytes(&serde_json::from_str::<String>(&json).unwrap()), Some(all));
        assert_eq!(text_to_bytes("\u{100}"), None);
    }
}
