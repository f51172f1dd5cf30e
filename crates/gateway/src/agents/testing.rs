//! Stand-ins for programs, in a directory that is the home directory and the PATH of the tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, test_kill_process};

pub(super) struct Programs(tempfile::TempDir);

impl Programs {
    pub(super) fn new() -> Programs {
        Programs(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// An environment with this directory as HOME and at the front of PATH.
    pub(super) fn env(&self) -> Vec<(OsString, OsString)> {
        let mut path = self.path().as_os_str().to_owned();
        path.push(":/usr/bin:/bin");
        vec![("HOME".into(), self.path().into()), ("PATH".into(), path)]
    }

    /// An environment whose PATH has only this directory.
    pub(super) fn only_env(&self) -> Vec<(OsString, OsString)> {
        vec![("HOME".into(), self.path().into()), ("PATH".into(), self.path().into())]
    }

    /// Writes a file, also below directories that do not exist yet.
    pub(super) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes an executable file. Another process writes it: if this one did, a process that another test starts at the
    /// same time could have it open for writing, and then it could not be executed.
    pub(super) fn script(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let write = r#"printf '%s' "$2" >"$1.new" && chmod 755 "$1.new" && mv "$1.new" "$1""#;
        let written = Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(content).status().unwrap();
        assert!(written.success());
        path
    }

    /// Whether the process whose id is in a file runs.
    pub(super) fn is_running(&self, file: &str) -> bool {
        let id = std::fs::read_to_string(self.path().join(file)).unwrap_or_default();
        let Some(pid) = id.trim().parse().ok().and_then(Pid::from_raw) else { return false };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        test_kill_process(pid).is_ok() && !is_zombie
    }
}

/// Waits for something that other processes do.
#[track_caller]
pub(super) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}
