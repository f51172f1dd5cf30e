//! What can happen to a terminal session, as its journal records it. Typed text is never in it.
//!
//! The events of a life (`started`, `title`, `degraded`, `exit`) are the same for every kind of session, so that a list can
//! tell the state of one whose other events it does not know.

use bowline_proto::Offset;
use bowline_proto::ids::Epoch;
use bowline_proto::size::Size;
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A life began.
    Started {
        /// The life's epoch.
        epoch: Epoch,
        /// The end of the log when it began.
        #[serde(default)]
        offset: Offset,
        /// The terminal's size then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Size>,
        /// The id of the session process.
        pid: u32,
        /// The version of the session process.
        version: String,
    },
    /// The terminal has this size from an offset on.
    Resized {
        /// The end of the log at the resize.
        offset: Offset,
        /// The new size.
        size: Size,
    },
    /// The title changed.
    Title {
        /// The new title.
        title: String,
    },
    /// The shell's directory changed.
    Cwd {
        /// The new directory.
        cwd: String,
    },
    /// The program asked for attention.
    Notify {
        /// May be empty.
        title: String,
        /// The message.
        body: String,
    },
    /// The program rang the bell.
    Bell,
    /// A command was accepted.
    Command {
        /// The id that the client gave it.
        id: String,
        /// A digest of its content: enough to tell a repeat from a reused id.
        digest: u64,
    },
    /// The files could not be written; the log went on in memory.
    Degraded {
        /// The error of the operating system.
        error: String,
    },
    /// The life ended.
    Exit {
        /// The program's exit code, unless a signal ended it.
        code: Option<i32>,
        /// The name of that signal, such as `SIGKILL`.
        signal: Option<String>,
        /// The end of the log.
        #[serde(default)]
        offset: Offset,
    },
    /// An event that this version does not know: of another kind of session, or of a newer version.
    #[serde(other)]
    Unknown,
}
