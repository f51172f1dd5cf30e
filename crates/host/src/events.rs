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
        /// Where its output begins.
        #[serde(default)]
        offset: Offset,
        /// The terminal's size then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Size>,
        /// The session process.
        pid: u32,
        /// Its version.
        version: String,
    },
    /// The terminal has this size from an offset on.
    Resized {
        /// Where.
        offset: Offset,
        /// The size.
        size: Size,
    },
    /// The title changed.
    Title {
        /// To this.
        title: String,
    },
    /// The shell's directory changed.
    Cwd {
        /// To this.
        cwd: String,
    },
    /// The program asked for attention.
    Notify {
        /// In these words.
        title: String,
        /// And these.
        body: String,
    },
    /// The program rang the bell.
    Bell,
    /// A command was accepted.
    Command {
        /// Its id.
        id: String,
        /// A digest of its content: enough to tell a repeat from a reused id.
        digest: u64,
    },
    /// The log went on in memory.
    Degraded {
        /// Because of this.
        error: String,
    },
    /// The life ended.
    Exit {
        /// With this code,
        code: Option<i32>,
        /// or by this signal,
        signal: Option<String>,
        /// and this much output.
        #[serde(default)]
        offset: Offset,
    },
    /// An event that this version does not know: of another kind of session, or of a newer version.
    #[serde(other)]
    Unknown,
}
