//! Launches session processes: as plain children, or each in a systemd scope that outlives the gateway's service.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bowline_proto::ids::SessionId;

/// The variables that `systemd-run` needs to find the user's service manager.
const SYSTEMD_ENV: [&str; 3] = ["PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Makes the C library return long buffers, such as the pieces of a snapshot, to the system as soon as they are freed.
/// By default it keeps more and more of them. The session's program does not get these variables.
const MALLOC: [(&str, &str); 2] = [("MALLOC_MMAP_THRESHOLD_", "32768"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// How long a new session process may take for each report. One that hangs (for example, because its directory is on an
/// unreachable file server) is killed after that, and its files are removed.
const REPORT_WITHIN: Duration = Duration::from_secs(20);

/// The binary to launch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
    scopes: bool,
    report_within: Duration,
}

impl Launcher {
    /// Launches the binary of this process, even if its file has been replaced by a newer one.
    pub fn this_program() -> Launcher {
        Launcher::new("/proc/self/exe")
    }

    pub fn new(program: impl Into<PathBuf>) -> Launcher {
        Launcher { program: program.into(), scopes: false, report_within: REPORT_WITHIN }
    }

    /// Puts each session process into its own systemd scope, so that stopping the gateway's service does not end it.
    pub fn in_scopes() -> Launcher {
        // The path is resolved by systemd-run, for which /proc/self/exe would be systemd-run.
        let program = format!("/proc/{}/exe", std::process::id()).into();
        Launcher { program, scopes: true, report_within: REPORT_WITHIN }
    }

    /// Sets how long a new session process may take for each report.
    pub fn with_report_timeout(self, silence: Duration) -> Launcher {
        Launcher { report_within: silence, ..self }
    }

    /// How long a new session process may take for each report.
    pub(crate) fn report_within(&self) -> Duration {
        self.report_within
    }

    /// The same launcher without scopes; `None` if it has none.
    pub(crate) fn without_scopes(&self) -> Option<Launcher> {
        self.scopes.then(|| Launcher { scopes: false, ..self.clone() })
    }

    /// Spawns a session process, which reads its start request from one pipe and writes its reports to another.
    pub(crate) fn spawn(&self, id: &SessionId) -> io::Result<Child> {
        self.command(id)
            .envs(MALLOC)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }

    fn command(&self, id: &SessionId) -> Command {
        if !self.scopes {
            let mut command = Command::new(&self.program);
            command.arg0("bowline").args(["session-process", id.as_str()]).env_clear();
            return command;
        }
        let mut command = Command::new(find_in_path("systemd-run"));
        command
            .args(["--user", "--scope", "--collect", "--quiet"])
            .arg(format!("--unit=bowline-session-{id}"))
            .arg("--")
            .arg(&self.program)
            .args(["session-process", id.as_str()])
            .env_clear()
            .envs(SYSTEMD_ENV.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command
    }
}

/// Finds a program in PATH; returns the bare name if it is not there.
fn find_in_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| Path::new(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r57_a_scope_runs_the_session_process() {
        let id = SessionId::from_random([7; 12]);
        let command_line = |launcher: &Launcher| {
            let command = launcher.command(&id);
            let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>();
            (command.get_program().to_string_lossy().into_owned(), args.join(" "))
        };
        let (program, args) = command_line(&Launcher::in_scopes());
        assert!(program.ends_with("systemd-run"), "{program}");
        let exe = format!("/proc/{}/exe", std::process::id());
        assert_eq!(
            args,
            format!("--user --scope --collect --quiet --unit=bowline-session-{id} -- {exe} session-process {id}")
        );
        let plain = Launcher::in_scopes().without_scopes().unwrap();
        assert_eq!(command_line(&plain), (exe, format!("session-process {id}")));
        assert_eq!(plain.without_scopes(), None);
    }
}
