//! The environment of sessions that the gateway starts: that of a login, not the gateway's own.
//!
//! A gateway that a service manager started has hardly a PATH. So the login shell is asked what it would give.

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

/// How long the login shell may take; after that, the gateway's own environment has to do.
const WITHIN: Duration = Duration::from_secs(10);
/// How long a login shell that did not answer is not asked again: whoever starts a session meanwhile need not wait for it.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// The most that an environment may take.
const MAX: u64 = 1 << 20;
/// What the gateway's own environment says only of the gateway.
const NOT_THEIRS: [&str; 15] = [
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
/// All that sessions get of Bowline's own variables: where its files are. The others configure the gateway, or open it.
const PLACES: [&str; 3] = ["BOWLINE_STATE_DIR", "BOWLINE_RUNTIME_DIR", "BOWLINE_CONFIG"];
/// What a shell says only of itself.
const SHELLS_OWN: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];
/// What comes before the environment, and after it.
const START: &[u8] = b"\0bowline-environment\0";
const END: &[u8] = b"\0bowline-end\0";

type Variables = Vec<(OsString, OsString)>;

/// The environment of a login, found out when it is first needed.
#[derive(Debug)]
pub(crate) struct Environment {
    login: OnceCell<Variables>,
    /// When the login shell was last asked in vain.
    failed: Mutex<Option<Instant>>,
    own: OnceLock<Variables>,
}

impl Environment {
    pub(crate) fn new() -> Environment {
        Environment { login: OnceCell::new(), failed: Mutex::default(), own: OnceLock::new() }
    }

    /// The environment of a login; the gateway's own, while the login shell does not tell it.
    pub(crate) async fn get(&self) -> &Variables {
        self.get_from(login_environment).await
    }

    /// An answer is kept for good, its absence for a while: those who waited for it do not ask again, either.
    async fn get_from<F: Future<Output = Result<Variables, OsString>>>(&self, ask: impl FnOnce() -> F) -> &Variables {
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.login.get_or_try_init(|| async {
            if failed().is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
                return Err(());
            }
            ask().await.map_err(|shell| {
                *failed() = Some(Instant::now());
                tracing::warn!(?shell, "the login shell does not tell its environment; sessions get the gateway's own");
            })
        });
        match asked.await {
            Ok(found) => found,
            Err(()) => self.own.get_or_init(own),
        }
    }
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
        .filter(|(name, _)| !is_gateways(name) && !NOT_THEIRS.iter().any(|not| name == not))
        .filter(|(name, _)| !bowline_host::start::OUTER_TERMINAL.iter().any(|outer| name == outer))
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

/// Whether a variable is one of Bowline's that is not for sessions.
fn is_gateways(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"BOWLINE_") && !PLACES.iter().any(|place| name == *place)
}

/// The shell in the list of users.
fn login_shell_of_user() -> Option<OsString> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let user =
        users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user.get(2) == Some(&&*uid))?;
    user.get(6).filter(|shell| Path::new(shell).is_absolute()).map(OsString::from)
}

/// Asks a login shell for its environment. Whatever its start files print comes before the first mark.
async fn ask(shell: &OsStr, own: &Variables) -> Option<Variables> {
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
    let told = read_answer(child.stdout.take()?).await;
    // It has answered, or never will.
    child.kill().await.ok()?;
    let variable = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        Some((OsString::from_vec(entry[..at].to_vec()), OsString::from_vec(entry[at + 1..].to_vec())))
    };
    let found = told?.split(|byte| *byte == 0).filter_map(variable).collect::<Variables>().into_iter();
    Some(found.filter(|(name, _)| !is_gateways(name) && !SHELLS_OWN.iter().any(|own| name == own)).collect())
}

/// What stands between the marks. The second one is the end: a helper that a start file left behind may hold the pipe open.
async fn read_answer(from: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let find = |told: &[u8], mark: &[u8]| told.windows(mark.len()).position(|part| part == mark);
    let (mut from, mut told) = (from.take(MAX), Vec::new());
    let end = loop {
        let seen = told.len().saturating_sub(END.len());
        if from.read_buf(&mut told).await.ok()? == 0 {
            return None;
        }
        if let Some(at) = find(&told[seen..], END) {
            break seen + at;
        }
    };
    told.truncate(end);
    let start = find(&told, START)? + START.len();
    Some(told.split_off(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(variables: &'a Variables, wanted: &str) -> Option<&'a OsStr> {
        variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str())
    }

    #[test]
    fn sessions_get_the_places_of_bowline_and_nothing_else_of_it() {
        for name in ["BOWLINE_TOKEN", "BOWLINE_LISTEN", "BOWLINE_SESSION", "BOWLINE_"] {
            assert!(is_gateways(name.as_ref()), "{name}");
        }
        for name in ["BOWLINE_STATE_DIR", "BOWLINE_RUNTIME_DIR", "BOWLINE_CONFIG", "PATH", "BOWLINES"] {
            assert!(!is_gateways(name.as_ref()), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_and_its_absence_for_a_while() {
        let environment = Environment::new();
        let answer = |text: &str| std::future::ready(Ok(vec![("TOLD".into(), text.into())]));
        let failed = environment.get_from(|| std::future::ready(Err("sh".into()))).await;
        assert!(value(failed, "TOLD").is_none() && value(failed, "PATH").is_some(), "the gateway's own");
        tokio::time::advance(AGAIN_AFTER - Duration::from_secs(1)).await;
        assert!(value(environment.get_from(|| answer("early")).await, "TOLD").is_none(), "it was not asked again");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(value(environment.get_from(|| answer("first")).await, "TOLD"), Some("first".as_ref()));
        assert_eq!(value(environment.get_from(|| answer("second")).await, "TOLD"), Some("first".as_ref()));
    }

    #[tokio::test]
    async fn who_waits_for_a_shell_that_fails_does_not_ask_again() {
        let environment = Environment::new();
        let failing = || async {
            tokio::task::yield_now().await;
            Err("sh".into())
        };
        let unasked = || async { Ok(vec![("TOLD".into(), "late".into())]) };
        let (_, waited) = tokio::join!(environment.get_from(failing), environment.get_from(unasked));
        assert!(value(waited, "TOLD").is_none());
    }

    #[tokio::test]
    async fn a_helper_of_the_start_files_that_holds_the_output_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let profile = "echo hello\nsleep 600 &\necho $! >\"$HOME/helper\"\n\
                       export TOLD='a\nb' BOWLINE_LISTEN=x BOWLINE_CONFIG=/c\n";
        std::fs::write(home.path().join(".profile"), profile).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let own = vec![("HOME".into(), home.path().into()), ("PATH".into(), path)];
        let told = tokio::time::timeout(Duration::from_secs(120), ask("/bin/sh".as_ref(), &own)).await;
        let helper = std::fs::read_to_string(home.path().join("helper")).unwrap();
        let helper = rustix::process::Pid::from_raw(helper.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(helper, rustix::process::Signal::KILL).unwrap();
        let told = told.unwrap().unwrap();
        assert_eq!(value(&told, "TOLD"), Some("a\nb".as_ref()));
        assert_eq!(value(&told, "BOWLINE_CONFIG"), Some("/c".as_ref()));
        assert!(value(&told, "BOWLINE_LISTEN").is_none() && value(&told, "PWD").is_none());
    }

    #[tokio::test]
    async fn an_answer_without_its_end_is_none() {
        assert_eq!(read_answer(&b"hi\0bowline-environment\0A=b\0\0bowline-end\0more"[..]).await.unwrap(), b"A=b\0");
        assert!(read_answer(&b"\0bowline-environment\0A=b\0"[..]).await.is_none());
        assert!(read_answer(&b"A=b\0\0bowline-end\0"[..]).await.is_none());
    }
}
