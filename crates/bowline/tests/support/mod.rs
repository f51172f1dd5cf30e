//! Runs the real binary in a temporary directory, with terminals to attach from and connections to cut.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod gateway;
mod hostile;
mod proxy;
mod terminal;
mod wait;

pub(crate) use agents::{Running, here_and_there};
pub(crate) use gateway::Gateway;
pub(crate) use hostile::{Answers, HOSTILE, HostileServer};
pub(crate) use proxy::Proxy;
pub(crate) use terminal::Terminal;
pub(crate) use wait::PATIENCE;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// An isolated environment for `bowline`: its own home, state and configuration. Dropping it ends all its sessions.
pub(crate) struct World {
    temp: TempDir,
    /// The URL and the token of the gateway that `bowline` uses in this world.
    server: Option<(String, String)>,
}

impl World {
    pub(crate) fn new() -> World {
        World { temp: tempfile::Builder::new().prefix("bwl").tempdir_in("/tmp").unwrap(), server: None }
    }

    /// Another machine, whose `bowline` uses the gateway at `url`.
    pub(crate) fn remote(url: &str, token: &str) -> World {
        let mut world = World::new();
        world.server = Some((url.to_owned(), token.to_owned()));
        world
    }

    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    /// The environment variables of `bowline` in this world.
    pub(crate) fn env(&self) -> Vec<(&'static str, PathBuf)> {
        let path = self.path();
        let mut env = vec![
            ("BOWLINE_STATE_DIR", path.join("s")),
            ("BOWLINE_RUNTIME_DIR", path.join("r")),
            ("BOWLINE_CONFIG", path.join("config.toml")),
            ("HOME", path.to_owned()),
            ("SHELL", "/bin/sh".into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default().into()),
            ("TERM", "xterm-256color".into()),
        ];
        if let Some((url, token)) = &self.server {
            env.extend([("BOWLINE_SERVER", url.into()), ("BOWLINE_TOKEN", token.into())]);
        }
        env
    }

    /// Writes the configuration file, which is empty by default.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.path().join("config.toml"), text).unwrap();
    }

    /// The command that runs `bowline` with these arguments.
    pub(crate) fn bowline(&self, args: &[&str]) -> Command {
        if !self.path().join("config.toml").exists() {
            self.configure("");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.args(args).env_clear().envs(self.env()).current_dir(self.path());
        command
    }

    /// Runs `bowline` with these arguments and waits for it.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.bowline(args).output().unwrap()
    }

    /// Runs `bowline` with these arguments, which must succeed; returns its output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "bowline {args:?}: {}\n{out}{err}", output.status);
        out.into_owned()
    }

    /// Starts a detached session that runs a shell script; returns its id.
    pub(crate) fn start(&self, name: &str, script: &str) -> String {
        self.ok(&["new", "--detach", "--name", name, "--", "sh", "-c", script]).trim().to_owned()
    }

    pub(crate) fn screen(&self, name: &str) -> String {
        self.ok(&["screen", name])
    }

    /// Waits until the screen of a session contains `text`.
    pub(crate) fn wait_for_screen(&self, name: &str, text: &str) {
        wait_until(&format!("{name} shows {text:?}"), || self.screen(name).contains(text));
    }

    /// Returns a field of a session from `ls --json`; null if there is no such session.
    pub(crate) fn info(&self, name: &str, field: &str) -> serde_json::Value {
        let list: serde_json::Value = serde_json::from_str(&self.ok(&["ls", "--json"])).unwrap();
        let sessions = list["sessions"].as_array().unwrap().clone();
        let found = sessions.into_iter().find(|session| session["name"] == name || session["id"] == name);
        found.map_or(serde_json::Value::Null, |session| session[field].clone())
    }

    /// Finds the session process by its command line.
    pub(crate) fn process_of(&self, id: &str) -> rustix::process::Pid {
        let found = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
            let mut words = cmdline.split(|byte| *byte == 0);
            (words.nth(1)? == b"session-process" && words.next()? == id.as_bytes()).then_some(pid)
        });
        rustix::process::Pid::from_raw(found.unwrap()).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.bowline(&["kill", "--all", "--grace", "0s"]).env_remove("BOWLINE_SERVER").output();
    }
}

/// Waits until `holds` returns true. Panics with `fact` if it never does.
#[track_caller]
pub(crate) fn wait_until(fact: &str, mut holds: impl FnMut() -> bool) {
    wait::wait_until(fact, || holds().then_some(()));
}
