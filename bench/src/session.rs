//! Sessions, started like a user does: `bowline new --detach` and `bowline agent --detach`.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cleanup::{Process, TempDir};
use crate::wire::{Route, Wire};

/// The name of the benchmark's own agent in the configuration.
const AGENT: &str = "bench";

/// The bowline binary, and the directories that it uses in this run.
#[derive(Debug)]
pub(crate) struct Bowline {
    program: PathBuf,
    state: PathBuf,
    runtime: PathBuf,
    /// The configuration file, with the benchmark's own agent.
    config: PathBuf,
}

impl Bowline {
    /// Uses the given binary, or the one in the directory of this program.
    pub(crate) fn find(named: Option<&Path>, dir: &TempDir) -> Result<Bowline> {
        let beside = || Ok::<_, std::io::Error>(std::env::current_exe()?.with_file_name("bowline"));
        let program = named.map_or_else(beside, |path| Ok(path.to_owned()))?;
        let program = fs::canonicalize(&program).with_context(|| {
            format!("no bowline at {}: build it with `make bench`, or pass --bowline PATH", program.display())
        })?;
        let config = dir.path().join("config.toml");
        let agent = serde_json::json!([std::env::current_exe()?, "agent"]);
        fs::write(&config, format!("[agents.{AGENT}]\nprotocol = \"acp\"\ncommand = {agent}\n"))?;
        Ok(Bowline { program, state: dir.path().join("state"), runtime: dir.path().join("run"), config })
    }

    /// The same binary with another state directory.
    pub(crate) fn with_state_dir(&self, name: &str) -> Bowline {
        let state = self.state.with_file_name(name);
        Bowline { program: self.program.clone(), state, runtime: self.runtime.clone(), config: self.config.clone() }
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The environment in which bowline commands use this run's directories.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let paths = [
            ("BOWLINE_STATE_DIR", &self.state),
            ("BOWLINE_RUNTIME_DIR", &self.runtime),
            ("BOWLINE_CONFIG", &self.config),
        ];
        paths.map(|(name, path)| (name.to_owned(), path.display().to_string())).into()
    }

    /// Runs a command to its end, and returns what it printed.
    pub(crate) fn run(&self, args: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(args)
            .envs(self.env())
            .output()
            .with_context(|| self.program.display().to_string())?;
        if !output.status.success() {
            bail!("bowline {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Creates a token with a scope.
    pub(crate) fn new_token(&self, scope: &str) -> Result<String> {
        let token = self.run(&["token", "create", "--name", "bench", "--scope", scope])?;
        Ok(token.trim().to_owned())
    }

    /// Starts a session that runs `program`.
    pub(crate) fn start(&self, program: &[&str]) -> Result<Session> {
        let id = self.run(&[&["new", "--detach", "--"], program].concat())?;
        self.adopt(id.trim())
    }

    /// Starts a conversation with the benchmark's own agent.
    pub(crate) fn start_agent(&self) -> Result<Session> {
        let id = self.run(&["agent", AGENT, "--detach"])?;
        self.adopt(id.trim())
    }

    /// Starts an ended session again.
    pub(crate) fn restart(&self, id: &str) -> Result<Session> {
        self.run(&["restart", id])?;
        self.adopt(id)
    }

    /// Takes charge of a running session.
    fn adopt(&self, id: &str) -> Result<Session> {
        let sock = self.session_dir(id).join("sock");
        let address = fs::read_link(&sock).unwrap_or(sock);
        // The process that listens on the socket is the session process.
        let listener = rustix::net::sockopt::socket_peercred(UnixStream::connect(&address)?)?;
        let process = Process::adopt(listener.pid.as_raw_nonzero().get() as u32)?;
        Ok(Session { id: id.to_owned(), address, process })
    }

    /// The directory with the files of a session.
    pub(crate) fn session_dir(&self, id: &str) -> PathBuf {
        self.state.join("sessions").join(id)
    }
}

/// A session. Dropping it ends the session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    address: PathBuf,
    process: Process,
}

impl Session {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Route for Session {
    fn connect(&self) -> Result<Wire> {
        Ok(Wire::Unix(UnixStream::connect(&self.address)?))
    }
}
