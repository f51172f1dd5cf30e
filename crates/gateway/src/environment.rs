//! The environment of sessions that the gateway starts: that of a login shell, not the gateway's own.
//!
//! A gateway started by a service manager has a minimal environment, often without a useful PATH.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long the login shell may take. After that, sessions get the gateway's own environment.
const SHELL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a failed login shell is not run again, so that not every new session waits for it.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// The longest output of the login shell, in bytes; a longer one is a failure.
const MAX_OUTPUT: u64 = 1 << 20;
/// Variables that concern only the gateway's process.
const GATEWAY_ONLY: [&str; 15] = [
    "RUST_LOG",
    "CREDENTIALS_DIRECTORY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "LISTEN_FDNAMES",
    "MAINPID",
    "SYSTEMD_EXEC_PID",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
];
/// The only `BOWLINE_` variables that sessions get: where Bowline's files are. The others configure the gateway,
/// or are secret.
const PATH_VARIABLES: [&str; 3] = ["BOWLINE_STATE_DIR", "BOWLINE_RUNTIME_DIR", "BOWLINE_CONFIG"];
/// Variables that concern only the shell's process.
const SHELL_ONLY: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];
/// Marks the start of the environment in the shell's output.
const START: &[u8] = b"\0bowline-environment\0";
/// Marks its end.
const END: &[u8] = b"\0bowline-end\0";

type Variables = Vec<(OsString, OsString)>;

/// The environment of a login shell, read when it is first needed.
#[derive(Debug)]
pub(crate) struct Environment {
    login: OnceCell<Variables>,
    /// When the login shell last failed.
    failed: Mutex<Option<Instant>>,
    own: OnceLock<Variables>,
}

impl Environment {
    pub(crate) fn new() -> Environment {
        Environment { login: OnceCell::new(), failed: Mutex::default(), own: OnceLock::new() }
    }

    /// The login shell's environment, or the gateway's own while the shell fails.
    pub(crate) async fn get(&self) -> &Variables {
        self.get_from(login_environment).await
    }

    /// Caches a success forever and a failure for [`RETRY_AFTER`]. Concurrent callers share one attempt.
    async fn get_from<F: Future<Output = Result<Variables, OsString>>>(&self, read: impl FnOnce() -> F) -> &Variables {
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let login = self.login.get_or_try_init(|| async {
            if failed().is_some_and(|at| at.elapsed() < RETRY_AFTER) {
                return Err(());
            }
            read().await.map_err(|shell| {
                *failed() = Some(Instant::now());
                tracing::warn!(?shell, "cannot read the login shell's environment; sessions get the gateway's own");
            })
        });
        match login.await {
            Ok(found) => found,
            Err(()) => self.own.get_or_init(own),
        }
    }
}

/// Reads the environment of the user's login shell. The error is the shell that failed.
pub async fn login_environment() -> Result<Vec<(OsString, OsString)>, OsString> {
    let own = own();
    let shell = own.iter().find(|(name, _)| name == "SHELL").map(|(_, value)| value.clone()).unwrap_or_default();
    match tokio::time::timeout(SHELL_TIMEOUT, run_shell(&shell, &own)).await {
        Ok(Some(found)) => Ok(found),
        _ => Err(shell),
    }
}

/// The gateway's own environment without its private variables, and with at least SHELL and PATH.
fn own() -> Variables {
    let mut own: Variables = std::env::vars_os()
        .filter(|(name, _)| !is_private(name) && !GATEWAY_ONLY.iter().any(|not| name == not))
        .filter(|(name, _)| !bowline_host::start::OUTER_TERMINAL_VARIABLES.iter().any(|outer| name == outer))
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

/// Whether this is a `BOWLINE_` variable that sessions must not get.
fn is_private(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"BOWLINE_") && !PATH_VARIABLES.iter().any(|path| name == *path)
}

/// The user's shell according to `/etc/passwd`.
fn login_shell_of_user() -> Option<OsString> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let user =
        users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user.get(2) == Some(&&*uid))?;
    user.get(6).filter(|shell| Path::new(shell).is_absolute()).map(OsString::from)
}

/// Runs a login shell that prints its environment. What its start files print comes before the first mark.
async fn run_shell(shell: &OsStr, own: &Variables) -> Option<Variables> {
    let mut child = Command::new(shell)
        .args(["-l", "-c", r"printf '\0bowline-environment\0'; env -0 && printf '\0bowline-end\0'"])
        .env_clear()
        .envs(own.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let output = read_output(child.stdout.take()?).await;
    // It has printed its environment, or never will.
    child.kill().await.ok()?;
    let variable = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        Some((OsString::from_vec(entry[..at].to_vec()), OsString::from_vec(entry[at + 1..].to_vec())))
    };
    let found = output?.split(|byte| *byte == 0).filter_map(variable).collect::<Variables>().into_iter();
    Some(found.filter(|(name, _)| !is_private(name) && !SHELL_ONLY.iter().any(|own| name == own)).collect())
}

/// Reads what is between the marks. Stops at the second mark, because a background process of a start file may
/// keep the pipe open.
async fn read_output(from: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let find = |output: &[u8], mark: &[u8]| output.windows(mark.len()).position(|part| part == mark);
    let (mut from, mut output) = (from.take(MAX_OUTPUT), Vec::new());
    let end = loop {
        let searched = output.len().saturating_sub(END.len());
        if from.read_buf(&mut output).await.ok()? == 0 {
            return None;
        }
        if let Some(at) = find(&output[searched..], END) {
            break searched + at;
        }
    };
    output.truncate(end);
    let start = find(&output, START)? + START.len();
    Some(output.split_off(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(variables: &'a Variables, wanted: &str) -> Option<&'a OsStr> {
        variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str())
    }

    #[test]
    fn sessions_get_only_the_path_variables_of_bowline() {
        for name in ["BOWLINE_TOKEN", "BOWLINE_LISTEN", "BOWLINE_SESSION", "BOWLINE_"] {
            assert!(is_private(name.as_ref()), "{name}");
        }
        for name in ["BOWLINE_STATE_DIR", "BOWLINE_RUNTIME_DIR", "BOWLINE_CONFIG", "PATH", "BOWLINES"] {
            assert!(!is_private(name.as_ref()), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_environment_is_cached_and_a_failure_expires() {
        let environment = Environment::new();
        let answer = |text: &str| std::future::ready(Ok(vec![("FROM_SHELL".into(), text.into())]));
        let failed = environment.get_from(|| std::future::ready(Err("sh".into()))).await;
        assert!(value(failed, "FROM_SHELL").is_none() && value(failed, "PATH").is_some(), "the gateway's own");
        tokio::time::advance(RETRY_AFTER - Duration::from_secs(1)).await;
        assert!(
            value(environment.get_from(|| answer("early")).await, "FROM_SHELL").is_none(),
            "the shell was not run again"
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(value(environment.get_from(|| answer("first")).await, "FROM_SHELL"), Some("first".as_ref()));
        assert_eq!(value(environment.get_from(|| answer("second")).await, "FROM_SHELL"), Some("first".as_ref()));
    }

    #[tokio::test]
    async fn concurrent_callers_share_a_failed_attempt() {
        let environment = Environment::new();
        let failing = || async {
            tokio::task::yield_now().await;
            Err("sh".into())
        };
        let not_called = || async { Ok(vec![("FROM_SHELL".into(), "late".into())]) };
        let (_, waited) = tokio::join!(environment.get_from(failing), environment.get_from(not_called));
        assert!(value(waited, "FROM_SHELL").is_none());
    }

    #[tokio::test]
    async fn a_background_process_that_holds_the_output_open_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let profile = "echo hello\nsleep 600 &\necho $! >\"$HOME/helper\"\n\
                       export FROM_SHELL='a\nb' BOWLINE_LISTEN=x BOWLINE_CONFIG=/c\n";
        std::fs::write(home.path().join(".profile"), profile).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let own = vec![("HOME".into(), home.path().into()), ("PATH".into(), path)];
        let variables = tokio::time::timeout(Duration::from_secs(120), run_shell("/bin/sh".as_ref(), &own)).await;
        let helper = std::fs::read_to_string(home.path().join("helper")).unwrap();
        let helper = rustix::process::Pid::from_raw(helper.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(helper, rustix::process::Signal::KILL).unwrap();
        let variables = variables.unwrap().unwrap();
        assert_eq!(value(&variables, "FROM_SHELL"), Some("a\nb".as_ref()));
        assert_eq!(value(&variables, "BOWLINE_CONFIG"), Some("/c".as_ref()));
        assert!(value(&variables, "BOWLINE_LISTEN").is_none() && value(&variables, "PWD").is_none());
    }

    #[tokio::test]
    async fn an_environment_without_both_marks_is_rejected() {
        assert_eq!(read_output(&b"hi\0bowline-environment\0A=b\0\0bowline-end\0more"[..]).await.unwrap(), b"A=b\0");
        assert!(read_output(&b"\0bowline-environment\0A=b\0"[..]).await.is_none());
        assert!(read_output(&b"A=b\0\0bowline-end\0"[..]).await.is_none());
    }
}
