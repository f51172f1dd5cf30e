//! The environment of sessions that the gateway starts: that of a login, not the gateway's own.
//!
//! A gateway that a service manager started has hardly a PATH. So the login shell is asked, once, what it would give.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// How long the login shell may take; after that, the gateway's own environment has to do.
const WITHIN: Duration = Duration::from_secs(10);
/// The most that an environment may take.
const MAX: u64 = 1 << 20;
/// What the gateway's own environment says only of the gateway.
const NOT_THEIRS: [&str; 14] = [
    "BOWLINE_TOKEN",
    "BOWLINE_SERVER",
    "BOWLINE_SESSION",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "MAINPID",
    "SYSTEMD_EXEC_PID",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "WATCHDOG_USEC",
];
/// What a shell says only of itself.
const SHELLS_OWN: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

type Variables = Vec<(OsString, OsString)>;

/// The environment of a login, found out when it is first needed.
#[derive(Debug)]
pub(crate) struct Environment(OnceCell<Variables>);

impl Environment {
    pub(crate) fn new() -> Environment {
        Environment(OnceCell::new())
    }

    /// The environment of a login.
    pub(crate) async fn get(&self) -> &Variables {
        self.0.get_or_init(find).await
    }
}

async fn find() -> Variables {
    login_environment().await.unwrap_or_else(|shell| {
        tracing::warn!(?shell, "the login shell does not tell its environment; sessions get the gateway's own");
        own()
    })
}

/// The environment of a login, or the login shell that does not tell it.
pub async fn login_environment() -> Result<Vec<(OsString, OsString)>, OsString> {
    let own = own();
    let shell = own.iter().find(|(name, _)| name == "SHELL").map(|(_, value)| value.clone()).unwrap_or_default();
    match tokio::time::timeout(WITHIN, ask(&shell, &own)).await {
        Ok(Some(found)) => Ok(found),
        _ => Err(shell),
    }
}

/// The gateway's own environment, with what every login has.
fn own() -> Variables {
    let mut own: Variables = std::env::vars_os()
        .filter(|(name, _)| !NOT_THEIRS.iter().any(|not| name == not))
        .filter(|(name, _)| !bowline_session::start::OUTER_TERMINAL.iter().any(|outer| name == outer))
        .collect();
    let has = |own: &Variables, wanted: &str| own.iter().any(|(name, value)| name == wanted && !value.is_empty());
    if !has(&own, "SHELL") {
        let shell = login_shell_of_user().unwrap_or_else(|| "/bin/sh".into());
        own.retain(|(name, _)| name != "SHELL");
        own.push(("SHELL".into(), shell));
    }
    if !has(&own, "PATH") {
        own.retain(|(name, _)| name != "PATH");
        own.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    }
    own
}

/// The shell in the list of users.
fn login_shell_of_user() -> Option<OsString> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let user =
        users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user.get(2) == Some(&&*uid))?;
    user.get(6).filter(|shell| Path::new(shell).is_absolute()).map(OsString::from)
}

/// Asks a login shell for its environment. Whatever its start files print comes before the mark.
async fn ask(shell: &OsString, own: &Variables) -> Option<Variables> {
    const MARK: &[u8] = b"\0bowline-environment\0";
    let mut child = Command::new(shell)
        .args(["-l", "-c", r"printf '\0bowline-environment\0'; exec env -0"])
        .env_clear()
        .envs(own.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let mut told = Vec::new();
    child.stdout.take()?.take(MAX).read_to_end(&mut told).await.ok()?;
    child.wait().await.ok().filter(std::process::ExitStatus::success)?;
    let start = told.windows(MARK.len()).position(|part| part == MARK)? + MARK.len();
    let variable = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        Some((OsString::from_vec(entry[..at].to_vec()), OsString::from_vec(entry[at + 1..].to_vec())))
    };
    let found = told[start..].split(|byte| *byte == 0).filter_map(variable);
    Some(found.filter(|(name, _)| !SHELLS_OWN.iter().any(|own| name == own)).collect())
}
