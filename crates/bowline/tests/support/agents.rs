//! Worlds with the fake agent (`fixtures/fake-agent`), and runs of `bowline` that are watched while they go on.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Gateway, World, wait_until};

impl World {
    /// A world that knows the fake agent as `fake`, and `missing`, which is not installed.
    pub(crate) fn with_agents() -> World {
        let world = World::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fake-agent/agent.mjs");
        let script = script.canonicalize().unwrap();
        // By its whole path: a login shell may have another PATH than this test.
        let paths = std::env::var_os("PATH").unwrap();
        let node = std::env::split_paths(&paths).map(|path| path.join("node")).find(|node| node.is_file()).unwrap();
        world.configure(&format!(
            "[agents.fake]\nprotocol = \"acp\"\ncommand = [{node:?}, {script:?}]\nmodes = [\"default\", \"plan\"]\n\
             env = {{ FAKE_AGENT_STATE = {:?} }}\n\
             [agents.missing]\nprotocol = \"acp\"\ncommand = [\"no-such-agent\"]\n\
             [gateway.limits]\nrequest_rate = 10000\nattach_rate = 10000\n",
            world.path().join("conversations")
        ));
        world
    }

    /// Runs `bowline` in the background.
    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        Running::new(self.bowline(args))
    }

    /// Starts a session of the fake agent called `name`, with this prompt.
    pub(crate) fn converse(&self, name: &str, prompt: &str) -> String {
        let cwd = self.path().to_str().unwrap();
        self.ok(&["agent", "fake", "--cwd", cwd, "--detach", "--name", name, prompt]).trim().to_owned()
    }

    /// Waits until a session has an open approval.
    pub(crate) fn wait_for_approval(&self, name: &str) {
        wait_until("an approval waits", || {
            self.info(name, "approvals").as_array().is_some_and(|open| !open.is_empty())
        });
    }

    /// Waits until a run of a session has ended.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, name: &str, run: &str) {
        wait_until(&format!("{run} of {name} is over"), || {
            let is_end = |record: &Value| record["event"]["type"] == "complete" && record["event"]["run"] == run;
            self.journal(name).iter().any(is_end)
        });
    }

    /// The events of a session, from `log --json`.
    pub(crate) fn journal(&self, name: &str) -> Vec<Value> {
        self.ok(&["log", name, "--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs a test on the machine with the sessions, and on another one that uses its gateway.
pub(crate) fn here_and_there(test: impl Fn(&World, &World)) {
    let server = World::with_agents();
    test(&server, &server);
    let server = World::with_agents();
    let gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    test(&server, &laptop);
}

/// A process, with what it has printed so far. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    out: Arc<Mutex<String>>,
    err: Arc<Mutex<String>>,
}

impl Running {
    pub(crate) fn new(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
        Running { child, out, err }
    }

    pub(crate) fn out(&self) -> String {
        self.out.lock().unwrap().clone()
    }

    pub(crate) fn err(&self) -> String {
        self.err.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn wait_for_out(&self, text: &str) {
        wait_until(&format!("standard output has {text:?}"), || self.out().contains(text));
    }

    #[track_caller]
    pub(crate) fn wait_for_err(&self, text: &str) {
        wait_until(&format!("standard error has {text:?}"), || self.err().contains(text));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Sends a signal again and again until it has ended.
    #[track_caller]
    pub(crate) fn signal_until_it_ends(&mut self, signal: Signal) {
        wait_until("it ends", || {
            let has_ended = self.child.try_wait().unwrap().is_some();
            if !has_ended {
                self.signal(signal);
            }
            has_ended
        });
    }

    /// Waits for its end; returns its exit code and everything that it printed.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (Option<i32>, String, String) {
        let mut status = None;
        wait_until(&format!("it ends, after {:?} {:?}", self.out(), self.err()), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        // The readers end with the pipes.
        wait_until("everything is read", || Arc::strong_count(&self.out) + Arc::strong_count(&self.err) == 2);
        (status.unwrap().code(), self.out(), self.err())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let shared = Arc::clone(&text);
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        let mut bytes = Vec::new();
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            bytes.extend_from_slice(&chunk[..read]);
            *shared.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
        }
    });
    text
}
