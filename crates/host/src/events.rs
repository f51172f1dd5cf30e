//! The events of a terminal session that its journal records. Typed text is never recorded.
//!
//! The events `started`, `title`, `degraded` and `exit` are the same for every kind of session, so that a list can show
//! the state of a session whose other events this version does not support.

use bowline_proto::Offset;
use bowline_proto::ids::Epoch;
use bowline_proto::size::Size;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use crate::log::MAX_OFFSET;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A run of the session began.
    Started {
        epoch: Epoch,
        /// The end of the log when the run began.
        #[serde(default, deserialize_with = "offset")]
        offset: Offset,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Size>,
        /// The id of the session process.
        pid: u32,
        /// The version of the session process.
        version: String,
    },
    Resized {
        /// The end of the log at the resize: output from here on has the new size.
        #[serde(deserialize_with = "offset")]
        offset: Offset,
        size: Size,
    },
    Title {
        title: String,
    },
    /// The shell reported its directory.
    Cwd {
        cwd: String,
    },
    /// The program sent a notification.
    Notify {
        /// May be empty.
        title: String,
        body: String,
    },
    Bell,
    /// A command was accepted.
    Command {
        /// The id that the client chose.
        id: String,
        /// A digest of its content, which tells a repeated command from another with the same id.
        digest: u64,
    },
    /// The log file could not be written; the log continues in memory.
    Degraded {
        /// The operating system's error.
        error: String,
    },
    /// The run ended.
    Exit {
        /// The program's exit code, unless a signal ended it.
        code: Option<i32>,
        /// The name of that signal, such as `SIGKILL`.
        signal: Option<String>,
        /// The end of the log.
        #[serde(default, deserialize_with = "offset")]
        offset: Offset,
    },
    /// An event of another kind of session, or added by a newer version.
    #[serde(other)]
    Unknown,
}

/// Rejects an offset that no log reaches, so that the event is skipped as damaged.
fn offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Offset, D::Error> {
    let offset = Offset::deserialize(deserializer)?;
    if offset > MAX_OFFSET { Err(D::Error::custom("an offset that no log reaches")) } else { Ok(offset) }
}
