//! How a session process is run: as a plain child, or in a systemd scope of its own that outlives its starter's service.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bowline_proto::ids::SessionId;

/// What `systemd-run` needs to find the user's service manager.
const TO_THE_MANAGER: [&str; 3] = ["PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// How long a session process may be silent at its birth. One that hangs (in a directory of a dead server, say) is then
/// ended, and nothing is left of it.
const SILENCE: Duration = Duration::from_secs(20);

/// The bowline binary, and where its session processes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
    scopes: bool,
    silence: Duration,
}

impl Launcher {
    /// Runs this binary as it is, also when its file was replaced by a newer one meanwhile.
    pub fn this_program() -> Launcher {
        Launcher::new("/proc/self/exe")
    }

    /// Runs this binary.
    pub fn new(program: impl Into<PathBuf>) -> Launcher {
        Launcher { program: program.into(), scopes: false, silence: SILENCE }
    }

    /// Puts each session process into a systemd scope of its own. A service manager that ends the starter's service, and
    /// everything in it, does not find them there.
    pub fn in_scopes() -> Launcher {
        // Looked up by systemd-run, to which /proc/self/exe would be itself.
        let program = format!("/proc/{}/exe", std::process::id()).into();
        Launcher { program, scopes: true, silence: SILENCE }
    }

    /// The same, with session processes that may be silent for this long at their birth.
    pub fn with_silence(self, silence: Duration) -> Launcher {
        Launcher { silence, ..self }
    }

    /// How long a session process may be silent at its birth.
    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    /// The same without scopes, if there are any.
    pub(crate) fn plain(&self) -> Option<Launcher> {
        self.scopes.then(|| Launcher { scopes: false, ..self.clone() })
    }

    /// Runs the process of a session, which reads its order from a pipe and reports to another.
    pub(crate) fn spawn(&self, id: &SessionId) -> io::Result<Child> {
        self.command(id).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }

    fn command(&self, id: &SessionId) -> Command {
        if !self.scopes {
            let mut command = Command::new(&self.program);
            command.arg0("bowline").args(["session-process", id.as_str()]).env_clear();
            return command;
        }
        let mut command = Command::new(found("systemd-run"));
        command
            .args(["--user", "--scope", "--collect", "--quiet"])
            .arg(format!("--unit=bowline-session-{id}"))
            .arg("--")
            .arg(&self.program)
            .args(["session-process", id.as_str()])
            .env_clear()
            .envs(TO_THE_MANAGER.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command
    }
}

/// Where a program is on our PATH, or its name.
fn found(name: &str) -> PathBuf {
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
    fn r57_a_scope_gets_the_session_process_and_its_pipes() {
        let id = SessionId::from_random([7; 12]);
        let words = |launcher: &Launcher| {
            let command = launcher.command(&id);
            let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>();
            (command.get_program().to_string_lossy().into_owned(), args.join(" "))
        };
        let (program, args) = words(&Launcher::in_scopes());
        assert!(program.ends_with("systemd-run"), "{program}");
        let exe = format!("/proc/{}/exe", std::process::id());
        assert_eq!(
            args,
            format!("--user --scope --collect --quiet --unit=bowline-session-{id} -- {exe} session-process {id}")
        );
        let plain = Launcher::in_scopes().plain().unwrap();
        assert_eq!(words(&plain), (exe, format!("session-process {id}")));
        assert_eq!(plain.plain(), None, "there is only one way left");
    }
}
