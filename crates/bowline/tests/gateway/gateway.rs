//! A world with a gateway in it, that can be killed and started again at the same address.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{self, Response};
use super::ws::{self, Opened};

/// No fact takes this long to become true, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A state directory, its sessions, and the gateway before them.
pub(crate) struct World {
    temp: tempfile::TempDir,
    /// What every gateway of this world is started with.
    flags: Vec<String>,
    gateway: Option<Child>,
    pub(crate) address: SocketAddr,
    /// A token that may do everything.
    pub(crate) token: String,
}

impl World {
    /// A world with a gateway.
    pub(crate) fn new() -> World {
        World::with(&[], "")
    }

    /// With more flags for the gateway, and a configuration.
    pub(crate) fn with(flags: &[&str], config: &str) -> World {
        let temp = tempfile::Builder::new().prefix("bowline-test").tempdir_in("/tmp").unwrap();
        std::fs::write(temp.path().join("config.toml"), config).unwrap();
        let flags = flags.iter().map(ToString::to_string).collect();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut world = World { temp, flags, gateway: None, address: nowhere, token: String::new() };
        world.token = world.new_token("test", "admin");
        world.start_gateway();
        world
    }

    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("s")
    }

    /// The program, in this world.
    pub(crate) fn bowline(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command
            .args(args)
            .env_clear()
            .env("BOWLINE_STATE_DIR", self.state())
            .env("BOWLINE_RUNTIME_DIR", self.path().join("r"))
            .env("BOWLINE_CONFIG", self.path().join("config.toml"))
            .env("HOME", self.path())
            .env("SHELL", "/bin/sh")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a verb to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.bowline(args).output().unwrap()
    }

    /// Runs a verb that must succeed; what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn new_token(&self, name: &str, scope: &str) -> String {
        self.ok(&["token", "create", "--name", name, "--scope", scope])
    }

    /// Starts the gateway, at the address that it had before.
    pub(crate) fn start_gateway(&mut self) {
        let listen = self.address.to_string();
        let mut args = vec!["serve", "--listen", &listen];
        args.extend(self.flags.iter().map(String::as_str));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = self.bowline(&args);
        let mut child = command.env("RUST_LOG", "trace").stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, url) = line.split_once("listening on ")?;
            url.trim_end_matches('/').rsplit("//").next()?.split('/').next()?.parse().ok()
        });
        self.address = listening.unwrap_or_else(|| panic!("the gateway did not start: {}", self.log()));
        self.gateway = Some(child);
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.path().join("gateway.log")
    }

    /// Everything that the gateways of this world logged.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    pub(crate) fn gateway_pid(&self) -> u32 {
        self.gateway.as_ref().expect("a gateway").id()
    }

    /// Kills the gateway with SIGKILL.
    pub(crate) fn kill_gateway(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            gateway.kill().unwrap();
            gateway.wait().unwrap();
        }
    }

    /// Asks the gateway to stop, and waits for it.
    pub(crate) fn stop_gateway(&mut self) -> std::process::ExitStatus {
        let mut gateway = self.gateway.take().expect("a gateway");
        let pid = rustix::process::Pid::from_raw(gateway.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        gateway.wait().unwrap()
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// A call with the admin's token.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> Response {
        self.call_as(&self.token, method, path, body)
    }

    #[track_caller]
    pub(crate) fn call_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Response {
        let bearer = format!("Bearer {token}");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        http::request(self.address, method, path, &headers, &body).unwrap()
    }

    /// Makes a session of a shell script; its id.
    #[track_caller]
    pub(crate) fn shell(&self, script: &str) -> String {
        let made = self.call("POST", "/v1/sessions", &json!({"kind": "terminal", "argv": ["sh", "-c", script]}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// Asks for an attachment with the admin's token and these further headers.
    pub(crate) fn attach(&self, id: &str, headers: &[(&str, &str)]) -> Opened {
        let bearer = self.bearer();
        let all: Vec<(&str, &str)> = [("Authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        ws::open(self.address, &format!("/v1/sessions/{id}/attach"), &all).unwrap()
    }

    /// The bytes that a session printed, from the files.
    pub(crate) fn log_of(&self, id: &str) -> Vec<u8> {
        let output = self.run(&["log", id]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_gateway();
        let _ = self.run(&["kill", "--all", "--grace", "0s"]);
    }
}

/// Waits for a fact, and says which one never came true.
#[track_caller]
pub(crate) fn wait_until<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
