//! `meta.json`: what was asked of a session, and where. Enough to start it again.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::message::Kind;
use bowline_proto::size::Size;
use serde::{Deserialize, Serialize};

/// What was asked of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Option<SessionName>,
    /// What it runs.
    pub kind: Kind,
    /// Program and arguments.
    pub argv: Vec<OsText>,
    /// The name under which the program sees itself, where it is not the program's own: `-bash` for a login shell.
    #[serde(default)]
    pub arg0: Option<OsText>,
    /// Where it starts.
    pub cwd: OsText,
    /// Its whole environment, without what the session process adds.
    pub env: Vec<(OsText, OsText)>,
    /// The size that it starts with.
    pub size: Size,
    /// Bytes of output that the log keeps.
    pub log_size: u64,
    /// Lines that the screen keeps above the visible ones.
    pub history: u32,
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
}

impl Meta {
    /// Reads `path`.
    pub fn read(path: &Path) -> io::Result<Meta> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
    }

    /// Replaces `path` in one step. The content is on the disk before it has its name: a power cut leaves the old one
    /// or the new one, never something that cannot be read.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        replace(path, &serde_json::to_vec_pretty(self)?, File::sync_all)
    }

    /// The arguments as text, for people.
    pub fn argv_lossy(&self) -> Vec<String> {
        self.argv.iter().map(OsText::lossy).collect()
    }
}

/// Writes an owner-only file so that a reader finds the old content or the new, never a part.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, |_| Ok(()))
}

/// Like `write_whole`; when it returns, the new content is on the disk and survives also a power cut.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, File::sync_all)?;
    // The name is the directory's: without this, it may still stand for the old content.
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

fn replace(path: &Path, content: &[u8], settle: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let mut temp = path.as_os_str().to_owned();
    temp.push(".new");
    let temp = PathBuf::from(temp);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
    let written = file.write_all(content).and_then(|()| settle(&file));
    written.and_then(|()| fs::rename(&temp, path)).inspect_err(|_| {
        let _ = fs::remove_file(&temp);
    })
}

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

/// This machine's name.
pub fn this_host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This boot of this machine.
pub fn this_boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Now, in RFC 3339 UTC with microseconds, always all of them: so the order of the texts is the order of the times.
pub fn timestamp() -> String {
    timestamp_of(std::time::SystemTime::now())
}

/// A moment in the form of [`timestamp`].
pub fn timestamp_of(at: std::time::SystemTime) -> String {
    let form = time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time::OffsetDateTime::from(at).format(&form).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trailing zeros used to be dropped, and `.5Z` sorts after `.516Z`: the newest session was not the newest.
    #[test]
    fn timestamps_sort_as_text() {
        let stamps: Vec<String> = (0..2000).map(|_| timestamp()).collect();
        assert!(stamps.is_sorted());
        assert!(stamps.iter().all(|stamp| stamp.len() == stamps[0].len()));
    }
}
