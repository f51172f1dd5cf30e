//! An isolated state directory. Dropping it ends all of its sessions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bowline_host::home::{Home, SessionDir};
use bowline_host::registry;
use serde_json::Value;

pub(crate) use super::wait::{PATIENCE, wait_until};

/// A state directory, a runtime directory, and the sessions in them.
pub(crate) struct World {
    temp: tempfile::TempDir,
    state: PathBuf,
}

impl World {
    pub(crate) fn new() -> World {
        World::with_state(|temp| temp.join("state"))
    }

    pub(crate) fn with_state(path: impl FnOnce(&Path) -> PathBuf) -> World {
        let temp = tempfile::Builder::new().prefix("bowline-test").tempdir().unwrap();
        let state = path(temp.path());
        World { temp, state }
    }

    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    pub(crate) fn home(&self) -> Home {
        Home::new(&self.state, self.temp.path().join("run")).unwrap()
    }

    /// A `bowline` command that uses these directories.
    pub(crate) fn bowline(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command
            .env("BOWLINE_STATE_DIR", &self.state)
            .env("BOWLINE_RUNTIME_DIR", self.temp.path().join("run"))
            .env("BOWLINE_CONFIG", "/dev/null")
            .env_remove("BOWLINE_SESSION")
            .env("SHELL", "/bin/sh")
            .current_dir(self.temp.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a verb, which may fail.
    pub(crate) fn try_run(&self, args: &[&str]) -> Output {
        self.bowline().args(args).output().unwrap()
    }

    /// Runs a verb that must succeed. Returns its output.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self.try_run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Starts a session that runs a shell script. Returns its id.
    pub(crate) fn shell(&self, script: &str) -> String {
        self.run(&["new", "--detach", "--", "sh", "-c", script])
    }

    pub(crate) fn dir(&self, id: &str) -> SessionDir {
        self.home().session(&id.parse().unwrap())
    }

    /// The session as in `ls --json`; null if it is not listed.
    pub(crate) fn info(&self, id: &str) -> Value {
        let list: Value = serde_json::from_str(&self.run(&["ls", "--json"])).unwrap();
        let sessions = list["sessions"].as_array().unwrap();
        sessions.iter().find(|session| session["id"] == id || session["name"] == id).cloned().unwrap_or_default()
    }

    pub(crate) fn wait_for_state(&self, id: &str, state: &str) -> Value {
        self.wait_for_info(id, state, |info| info["state"] == state)
    }

    /// Waits until `holds` is true for a session. A process that is slow to answer is listed from its files, which have no
    /// clients and get a new title a little later.
    pub(crate) fn wait_for_info(&self, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_until(&format!("{id}: {what}"), || Some(self.info(id)).filter(&holds))
    }

    pub(crate) fn screen(&self, id: &str) -> String {
        self.run(&["screen", id])
    }

    pub(crate) fn wait_for_screen(&self, id: &str, text: &str) -> String {
        wait_until(&format!("{text:?} on the screen"), || Some(self.screen(id)).filter(|screen| screen.contains(text)))
    }

    /// The process id of a session process.
    pub(crate) fn pid(&self, id: &str) -> i32 {
        session_processes().into_iter().find(|(_, session)| session == id).expect("a session process").0
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let ids: Vec<String> = registry::list_files(&self.home())
            .map(|found| found.into_iter().map(|entry| entry.info.id.to_string()).collect())
            .unwrap_or_default();
        for (pid, id) in session_processes() {
            if ids.contains(&id) {
                signal(pid, "CONT"); // a test may have stopped it
            }
        }
        let _ = self.try_run(&["kill", "--all", "--grace", "0s"]);
        if !std::thread::panicking() {
            wait_until("all session processes have ended", || {
                session_processes().iter().all(|(_, id)| !ids.contains(id)).then_some(())
            });
        }
    }
}

/// All session processes on the machine: process id and session id.
pub(crate) fn session_processes() -> Vec<(i32, String)> {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let args: Vec<_> = line.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        (args.get(1)? == "session-process").then(|| Some((pid, args.get(2)?.to_string())))?
    })
    .collect()
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.starts_with(" Z")))
}

pub(crate) fn signal(pid: i32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).stderr(Stdio::null()).status();
    assert!(status.is_ok());
}
