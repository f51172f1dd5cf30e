//! An isolated state directory with a gateway that can be killed and restarted at the same address.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::http::{self, Response};
pub(crate) use super::wait::{PATIENCE, wait_until};
use super::ws::{self, Handshake};

/// A state directory, its sessions, and their gateway.
pub(crate) struct World {
    temp: tempfile::TempDir,
    /// Additional arguments of `bowline serve`.
    flags: Vec<String>,
    /// A shell script that runs `"$0" "$@"` under other conditions.
    pub(crate) wrapper: Option<String>,
    gateway: Option<Child>,
    pub(crate) address: SocketAddr,
    /// A token with scope `admin`.
    pub(crate) token: String,
    /// Strings that must not be in the gateway's log or in any file of the state directory.
    secrets: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(&[], "")
    }

    /// With additional flags for the gateway, and a configuration file.
    pub(crate) fn with(flags: &[&str], config: &str) -> World {
        let temp = tempfile::Builder::new().prefix("bowline-test").tempdir_in("/tmp").unwrap();
        std::fs::write(temp.path().join("config.toml"), config).unwrap();
        let flags = flags.iter().map(ToString::to_string).collect();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut world = World {
            temp,
            flags,
            wrapper: None,
            gateway: None,
            address: any_port,
            token: String::new(),
            secrets: Arc::default(),
        };
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

    /// A `bowline` command that uses these directories.
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

    /// A `bowline` command that runs in the wrapper.
    pub(crate) fn wrapped(&self, args: &[&str]) -> Command {
        let plain = self.bowline(args);
        let Some(script) = &self.wrapper else { return plain };
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(plain.get_program()).args(args).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs a verb, which may fail.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.bowline(args).output().unwrap()
    }

    /// Runs a verb that must succeed. Returns its output.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn new_token(&self, name: &str, scope: &str) -> String {
        let token = self.ok(&["token", "create", "--name", name, "--scope", scope]);
        // The prefix `bwl_ID_` is not secret.
        self.add_secret(&token["bwl_k3v9x0q2m7aa_".len()..]);
        token
    }

    /// Makes the test fail if this is found in the gateway's log or in any file of the state directory.
    pub(crate) fn add_secret(&self, secret: &str) {
        assert!(secret.len() > 20, "{secret:?} is so short that it may be found by chance");
        self.secrets.lock().unwrap().push(secret.to_owned());
    }

    /// The code of a new login link.
    pub(crate) fn login_code(&self) -> String {
        let link = self.ok(&["login-link"]);
        let (_, code) = link.split_once("#login=").expect("a code");
        self.add_secret(code);
        code.to_owned()
    }

    /// Logs a browser in. Returns its cookie, as the browser sends it, and its key.
    #[track_caller]
    pub(crate) fn log_in(&self) -> (String, String) {
        let body = json!({"code": self.login_code()}).to_string();
        let headers = [("Content-Type", "application/json")];
        let answer = http::request(self.address, "POST", "/v1/login", &headers, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.credentials(&answer)
    }

    /// The cookie and the key in the response to a login.
    pub(crate) fn credentials(&self, answer: &Response) -> (String, String) {
        let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie");
        let (_, secret) = cookie.rsplit_once('.').expect("a secret after the login's id");
        let key = answer.json()["key"].as_str().expect("a key").to_owned();
        self.add_secret(secret);
        self.add_secret(&key);
        (cookie.to_owned(), key)
    }

    /// A file that contains a secret, if there is one.
    fn find_secret(&self) -> Option<PathBuf> {
        let secrets = self.secrets.lock().unwrap();
        let mut files = vec![self.log_path()];
        let mut folders = vec![self.state()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => files.push(entry.path()),
                    _ => {}
                }
            }
        }
        files.into_iter().find(|file| {
            let content = std::fs::read(file).unwrap_or_default();
            secrets.iter().any(|secret| contains(&content, secret.as_bytes()))
        })
    }

    /// Starts the gateway at the address that it had before.
    pub(crate) fn start_gateway(&mut self) {
        let (gateway, address) = self.spawn_gateway(self.address);
        (self.gateway, self.address) = (Some(gateway), address);
    }

    /// Starts another gateway for the same sessions.
    pub(crate) fn start_extra_gateway(&self) -> ExtraGateway {
        let (gateway, address) = self.spawn_gateway(SocketAddr::from(([127, 0, 0, 1], 0)));
        ExtraGateway { gateway, address }
    }

    fn spawn_gateway(&self, listen: SocketAddr) -> (Child, SocketAddr) {
        let listen = listen.to_string();
        let mut args = vec!["serve", "--listen", &listen];
        args.extend(self.flags.iter().map(String::as_str));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = self.wrapped(&args);
        let mut child = command.env("RUST_LOG", "trace").stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, url) = line.split_once("listening on ")?;
            url.trim_end_matches('/').rsplit("//").next()?.split('/').next()?.parse().ok()
        });
        let address = listening.unwrap_or_else(|| panic!("the gateway did not start: {}", self.log()));
        // Read the rest of the output, so that it does not fill the pipe. The login link in it is a secret, too.
        let secrets = self.secrets.clone();
        std::thread::spawn(move || {
            let codes = lines.map_while(Result::ok).filter_map(|line| Some(line.split_once("#login=")?.1.to_owned()));
            codes.for_each(|code| secrets.lock().unwrap().push(code));
        });
        (child, address)
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.path().join("gateway.log")
    }

    /// The log of all gateways.
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

    /// Stops the gateway with SIGTERM, and waits until it has ended.
    pub(crate) fn stop_gateway(&mut self) -> std::process::ExitStatus {
        let mut gateway = self.gateway.take().expect("a gateway");
        signal(gateway.id(), Signal::TERM);
        gateway.wait().unwrap()
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Makes a request with the admin token.
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

    /// Creates a session that runs a shell script. Returns its id.
    #[track_caller]
    pub(crate) fn shell(&self, script: &str) -> String {
        let made = self.call("POST", "/v1/sessions", &json!({"kind": "terminal", "argv": ["sh", "-c", script]}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// Opens an attach WebSocket with the admin token and additional headers.
    pub(crate) fn attach(&self, id: &str, headers: &[(&str, &str)]) -> Handshake {
        let bearer = self.bearer();
        let all: Vec<(&str, &str)> = [("Authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        ws::open(self.address, &format!("/v1/sessions/{id}/attach"), &all).unwrap()
    }

    pub(crate) fn session_dir(&self, id: &str) -> PathBuf {
        self.state().join("sessions").join(id)
    }

    /// The process id of a session, from its files.
    pub(crate) fn session_pid(&self, id: &str) -> u32 {
        let events = std::fs::read_to_string(self.session_dir(id).join("events.jsonl")).unwrap();
        let mut events = events.lines().rev().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let started = events.find(|event| event["event"]["type"] == "started").expect("a start");
        started["event"]["pid"].as_u64().expect("a pid") as u32
    }

    /// The log of a session.
    pub(crate) fn log_of(&self, id: &str) -> Vec<u8> {
        let output = self.run(&["log", id]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_gateway();
        let leaked = self.find_secret();
        let _ = self.run(&["kill", "--all", "--grace", "0s"]);
        if !std::thread::panicking() {
            assert_eq!(leaked, None, "r49: a file contains a secret");
        }
    }
}

/// An additional gateway; killed on drop.
pub(crate) struct ExtraGateway {
    gateway: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for ExtraGateway {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Whether `bytes` contain `wanted`; fast enough for a long log.
fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    let first = wanted[0];
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        if rest[at..].starts_with(wanted) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}
