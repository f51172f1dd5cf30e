//! `meta.json`: the command, environment and settings of a session, enough to restart it.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::Kind;
use bowline_proto::size::Size;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::agents::{AgentProgram, ConversationLimits, ModePolicy, Protocol};
use crate::files::{self, damage, write_synced};
use crate::home::Home;
use crate::lock::Lock;
use crate::os_text::OsText;

/// A longer file is not read. The kernel's limit for arguments and environment is lower.
const MAX_FILE: u64 = 32 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub id: SessionId,
    pub name: Option<SessionName>,
    pub kind: Kind,
    /// The directory that the program starts in.
    #[serde(default)]
    pub cwd: OsText,
    /// Seconds without a viewer after which the session ends; 0 for never.
    #[serde(default)]
    pub detached_ttl: u64,
    /// A digest of the create request, if the id was derived from its idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// In the file, its fields are on the same level as the others.
    #[serde(flatten)]
    pub makers: Makers,
    /// The program's soft limit of open files.
    #[serde(default)]
    pub open_files: Option<u64>,
    pub created: String,
    /// The machine that the session belongs to.
    pub host: String,
    /// The boot id of that machine when the session was last started.
    pub boot: String,
    /// Set for terminals only. In the file, its fields are on the same level as the others.
    #[serde(flatten)]
    pub terminal: Option<TerminalMeta>,
    /// Set for agent sessions only. In the file, its fields are on the same level as the others.
    #[serde(flatten)]
    pub agent: Option<AgentMeta>,
}

/// The callers that made a session, as its gateway knew them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Makers {
    /// The id of the token or login that made it, or `user:NAME`. `None` if it is not known, as for a session that a
    /// shell outside of any session started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// Those under which that one was made, nearest first. It may be gone when a program in the session makes a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_under: Vec<String>,
}

/// The settings that only terminals have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerminalMeta {
    /// Program and arguments.
    pub argv: Vec<OsText>,
    /// The program's `argv[0]`, if it differs: `-bash` for a login shell.
    #[serde(default)]
    pub arg0: Option<OsText>,
    /// The whole environment, except for the variables that the session process adds.
    pub env: Vec<(OsText, OsText)>,
    /// The initial size.
    pub size: Size,
    /// Bytes of output that the log keeps.
    pub log_size: u64,
    /// Lines of scrollback that the screen keeps.
    #[serde(rename = "history")]
    pub scrollback: u32,
}

/// The settings that only agent sessions have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentMeta {
    /// The agent's name in the table of agents.
    pub agent: String,
    /// Replaced by the table's before each start, so that it does not matter what it is if a newer version added it.
    #[serde(deserialize_with = "known_protocol")]
    pub protocol: Protocol,
    /// Program and arguments.
    pub command: Vec<OsText>,
    /// The environment of a login.
    // Not `env`: of two flattened groups with a field of the same name, only the first would get it.
    #[serde(rename = "agent_env")]
    pub env: Vec<(OsText, OsText)>,
    /// The variables that the table adds to it.
    #[serde(default)]
    pub table_env: Vec<(OsText, OsText)>,
    /// The conversation to continue, until the agent has named its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The mode to set when the agent has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The model to set when the agent has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub mode_policy: ModePolicy,
    #[serde(default)]
    pub limits: ConversationLimits,
}

/// Reads a protocol. A session whose protocol a newer version added must not count as damaged.
fn known_protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(Protocol::deserialize(Value::String(name)).unwrap_or(Protocol::Acp))
}

impl AgentMeta {
    /// Takes over the command, the variables, the modes and the limits that the table has now.
    pub fn refresh(&mut self, program: &AgentProgram) {
        self.protocol = program.protocol;
        self.command = program.command.iter().map(|argument| argument.as_str().into()).collect();
        self.mode_policy = program.mode_policy.clone();
        self.limits = program.limits;
        let variables = program.env.iter();
        self.table_env = variables.map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
    }
}

impl Meta {
    pub fn read(path: &Path) -> io::Result<Meta> {
        let mut meta: Meta = serde_json::from_slice(&files::read(path, MAX_FILE)?)?;
        match meta.kind {
            Kind::Terminal if meta.terminal.is_none() => Err(damage("meta.json lacks the fields of a terminal")),
            Kind::Agent if meta.agent.is_none() => Err(damage("meta.json lacks the fields of an agent session")),
            kind => {
                meta.terminal = meta.terminal.filter(|_| kind == Kind::Terminal);
                meta.agent = meta.agent.filter(|_| kind == Kind::Agent);
                Ok(meta)
            }
        }
    }

    /// Whether the file describes a session of a kind added by a newer version, even if its other fields are
    /// unreadable.
    pub fn is_of_unknown_kind(path: &Path) -> bool {
        #[derive(Deserialize)]
        struct OnlyKind {
            kind: Kind,
        }
        let kind = files::read(path, MAX_FILE).ok().and_then(|text| serde_json::from_slice::<OnlyKind>(&text).ok());
        kind.is_some_and(|only| only.kind == Kind::Unknown)
    }

    /// Changes the name in the file of an ended session, and keeps fields that a newer version added.
    pub fn rename(path: &Path, name: &SessionName) -> io::Result<()> {
        let mut meta: serde_json::Map<String, Value> = serde_json::from_slice(&files::read(path, MAX_FILE)?)?;
        meta.insert("name".into(), name.as_str().into());
        write_synced(path, &serde_json::to_vec_pretty(&meta)?)
    }

    /// Atomically replaces `path`; after a power cut, the old file or the new one is there, whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_synced(path, &serde_json::to_vec_pretty(self)?)
    }
}

/// The longest id of a caller that is taken from a file, in bytes; a longer one counts as unknown.
const MAX_MAKER: usize = 256;
/// How long to wait for the file of a session that is starting.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The callers that made the session that this process runs in, as far as they are known. What this process makes, they
/// have made.
pub fn makers_of_this_session(home: &Home) -> Makers {
    let Makers { made_by, mut made_under } = read_makers(home).unwrap_or_default();
    let is_id = |maker: &String| maker.len() <= MAX_MAKER && !maker.contains(char::is_control);
    made_under.retain(is_id);
    Makers { made_by: made_by.filter(is_id), made_under }
}

fn read_makers(home: &Home) -> Option<Makers> {
    let id: SessionId = std::env::var("BOWLINE_SESSION").ok()?.parse().ok()?;
    let (dir, deadline) = (home.session(&id), Instant::now() + START_TIMEOUT);
    // A session process writes the file after it has started the program, which may be this one.
    loop {
        match Meta::read(&dir.meta()) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && Lock::is_held(&dir.lock())
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            read => return read.ok().map(|meta| meta.makers),
        }
    }
}

impl TerminalMeta {
    /// The arguments as text, for display.
    pub fn argv_lossy(&self) -> Vec<String> {
        self.argv.iter().map(OsText::lossy).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A session that a newer version started is listed, renamed and ended like any other, whatever its file has.
    #[test]
    fn r20_the_file_of_a_newer_version_is_readable_and_a_rename_keeps_what_it_added() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("meta.json");
        let mut meta = json!({
            "id": "k3v9x0q2m7aa", "name": "build", "kind": "agent", "created": "t", "host": "h", "boot": "b",
            "agent": "mine", "protocol": "telepathy", "command": ["mine"], "agent_env": [["A", "b"]],
            "mode_policy": {"modes": null, "allow_bypass": false, "mood": "calm"},
            "limits": {"transcript_size": 1 << 20, "patience": 7}, "version": 2, "aura": {"colour": "green"},
        });
        write_synced(&path, meta.to_string().as_bytes()).unwrap();
        let read = Meta::read(&path).unwrap();
        assert_eq!((read.kind, &*read.agent.unwrap().agent), (Kind::Agent, "mine"));
        Meta::rename(&path, &"other".parse().unwrap()).unwrap();
        meta["name"] = "other".into();
        assert_eq!(serde_json::from_slice::<Value>(&files::read(&path, MAX_FILE).unwrap()).unwrap(), meta);
    }
}
