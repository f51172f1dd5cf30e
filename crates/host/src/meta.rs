//! `meta.json`: what was asked of a session, and where. Enough to start it again.

use std::path::Path;
use std::{fs, io};

use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::Kind;
use bowline_proto::size::Size;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files::write_synced;
use crate::os_text::OsText;

/// What was asked of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Option<SessionName>,
    /// What it runs.
    pub kind: Kind,
    /// Where it starts.
    #[serde(default)]
    pub cwd: OsText,
    /// Seconds without a viewer after which it ends; 0 for never.
    #[serde(default)]
    pub detached_ttl: u64,
    /// A digest of the request that its id was derived for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The soft limit of open files that its program gets.
    #[serde(default)]
    pub open_files: Option<u64>,
    /// When it was created.
    pub created: String,
    /// The machine that it runs on.
    pub host: String,
    /// The boot of that machine in which it was last started.
    pub boot: String,
    /// What only a terminal has; the fields stand beside the others in the file.
    #[serde(flatten)]
    pub terminal: Option<TerminalMeta>,
}

/// What was asked of a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerminalMeta {
    /// Program and arguments.
    pub argv: Vec<OsText>,
    /// The name under which the program sees itself, where it is not the program's own: `-bash` for a login shell.
    #[serde(default)]
    pub arg0: Option<OsText>,
    /// Its whole environment, without what the session process adds.
    pub env: Vec<(OsText, OsText)>,
    /// The size that it starts with.
    pub size: Size,
    /// Bytes of output that the log keeps.
    pub log_size: u64,
    /// Lines that the screen keeps above the visible ones.
    pub history: u32,
}

impl Meta {
    /// Reads `path`.
    pub fn read(path: &Path) -> io::Result<Meta> {
        let mut meta: Meta = serde_json::from_slice(&fs::read(path)?)?;
        if meta.kind != Kind::Terminal {
            meta.terminal = None;
        } else if meta.terminal.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "meta.json does not say what the terminal runs"));
        }
        Ok(meta)
    }

    /// Whether the file describes a session of a kind that this version does not know, in whatever form.
    pub fn is_of_unknown_kind(path: &Path) -> bool {
        #[derive(Deserialize)]
        struct OnlyKind {
            kind: Kind,
        }
        let kind = fs::read(path).ok().and_then(|text| serde_json::from_slice::<OnlyKind>(&text).ok());
        kind.is_some_and(|only| only.kind == Kind::Unknown)
    }

    /// Gives the session of an ended process another name in its file. What a newer version wrote there stays.
    pub fn rename(path: &Path, name: &SessionName) -> io::Result<()> {
        let mut meta: serde_json::Map<String, Value> = serde_json::from_slice(&fs::read(path)?)?;
        meta.insert("name".into(), name.as_str().into());
        write_synced(path, &serde_json::to_vec_pretty(&meta)?)
    }

    /// Replaces `path` in one step. The content is on the disk before it has its name: a power cut leaves the old one
    /// or the new one, never something that cannot be read.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_synced(path, &serde_json::to_vec_pretty(self)?)
    }
}

impl TerminalMeta {
    /// The arguments as text, for people.
    pub fn argv_lossy(&self) -> Vec<String> {
        self.argv.iter().map(OsText::lossy).collect()
    }
}
