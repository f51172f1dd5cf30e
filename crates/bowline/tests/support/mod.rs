//! A temporary world for the real binary: its own state directory, terminals to sit at, and wires to cut.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod gateway;
mod proxy;
mod terminal;
mod wait;

pub(crate) use gateway::Gateway;
pub(crate) use proxy::Proxy;
pub(crate) use terminal::Terminal;
pub(crate) use wait::PATIENCE;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A place where nothing else of Bowline is, and where nothing is left behind.
pub(crate) struct World {
    temp: TempDir,
    /// The gateway that everything here speaks to, and the token for it.
    server: Option<(String, String)>,
}

impl World {
    pub(crate) fn new() -> World {
        World { temp: tempfile::Builder::new().prefix("bwl").tempdir_in("/tmp").unwrap(), server: None }
    }

    /// Another machine, whose `bowline` speaks to this gateway.
    pub(crate) fn remote(url: &str, token: &str) -> World {
        let mut world = World::new();
        world.server = Some((url.to_owned(), token.to_owned()));
        world
    }

    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    /// The environment of everything in this world.
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

    /// Writes the configuration file. (Without this call it is empty.)
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.path().join("config.toml"), text).unwrap();
    }

    /// `bowline` with these arguments, not yet run.
    pub(crate) fn bowline(&self, args: &[&str]) -> Command {
        if !self.path().join("config.toml").exists() {
            self.configure("");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.args(args).env_clear().envs(self.env()).current_dir(self.path());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.bowline(args).output().unwrap()
    }

    /// Runs it; its output, if it succeeded.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "bowline {args:?}: {}\n{out}{err}", output.status);
        out.into_owned()
    }

    /// Starts a detached session with a shell command; its id.
    pub(crate) fn start(&self, name: &str, script: &str) -> String {
        self.ok(&["new", "--detach", "--name", name, "--", "sh", "-c", script]).trim().to_owned()
    }

    /// What a session shows.
    pub(crate) fn screen(&self, name: &str) -> String {
        self.ok(&["screen", name])
    }

    /// Waits until a session shows something.
    pub(crate) fn wait_for_screen(&self, name: &str, text: &str) {
        wait_until(&format!("{name} shows {text:?}"), || self.screen(name).contains(text));
    }

    /// One field of a session's description.
    pub(crate) fn info(&self, name: &str, field: &str) -> serde_json::Value {
        let list: serde_json::Value = serde_json::from_str(&self.ok(&["ls", "--json"])).unwrap();
        let sessions = list["sessions"].as_array().unwrap().clone();
        let found = sessions.into_iter().find(|session| session["name"] == name || session["id"] == name);
        found.map_or(serde_json::Value::Null, |session| session[field].clone())
    }

    /// The process of a session.
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

/// Waits for a fact.
#[track_caller]
pub(crate) fn wait_until(fact: &str, mut holds: impl FnMut() -> bool) {
    wait::wait_until(fact, || holds().then_some(()));
}
