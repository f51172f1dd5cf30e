//! An agent session whose files are real and whose process is played by the test.

use std::time::Duration;

use bowline_host::home::{Home, SessionDir};
use bowline_host::lock::Lock;
use bowline_host::machine::{this_boot, this_host};
use bowline_host::meta::Meta;
use bowline_host::registry;
use bowline_host::timestamp::timestamp;
use bowline_host::transcript::Transcript;
use bowline_proto::agent::event::{AgentEvent, Level};
use bowline_proto::frame;
use bowline_proto::ids::{Epoch, SessionId};
use bowline_proto::message::{Cursor, Hello};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Nothing that a test waits for takes this long.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, what).await.expect("it did not happen in time")
}

pub(super) fn epoch(n: u8) -> Epoch {
    Epoch::from_random([0, 0, 0, n])
}

pub(super) fn cursor(n: u8, offset: u64) -> Cursor {
    Cursor { epoch: epoch(n), offset }
}

pub(super) struct FakeAgent {
    dir: SessionDir,
    transcript: Transcript,
    meta: Meta,
    process: Option<Process>,
}

/// A life of the session.
struct Process {
    _lock: Lock,
    /// Accepts connections, and keeps those of the board open.
    tasks: JoinSet<()>,
    followers: mpsc::UnboundedReceiver<(UnixStream, Hello)>,
}

impl FakeAgent {
    pub(super) fn id(n: u8) -> SessionId {
        SessionId::from_random([n; 12])
    }

    /// A session that has not started.
    pub(super) fn new(home: &Home, n: u8) -> FakeAgent {
        let dir = home.session(&FakeAgent::id(n));
        std::fs::create_dir_all(dir.path()).unwrap();
        let meta = json!({
            "id": dir.id(), "name": format!("s{n}"), "kind": "agent", "cwd": "/", "created": timestamp(),
            "host": this_host(), "boot": this_boot(), "agent": "fake", "protocol": "acp", "command": ["fake"], "agent_env": [],
        });
        let transcript = Transcript::open(&dir).unwrap().transcript;
        FakeAgent { meta: serde_json::from_value(meta).unwrap(), transcript, dir, process: None }
    }

    /// Begins a life with a new epoch.
    pub(super) fn start(&mut self, n: u8) {
        let lock = Lock::take(&self.dir.lock()).unwrap().unwrap();
        let _ = std::fs::remove_file(self.dir.sock());
        let listener = UnixListener::bind(self.dir.sock()).unwrap();
        self.record(AgentEvent::Started { epoch: epoch(n), pid: std::process::id(), version: "0.1.0".into() });
        self.meta.write(&self.dir.meta()).unwrap();
        let info = registry::try_read(self.dir.clone()).unwrap().unwrap().info;
        let status = json!({ "type": "status", "session": info }).to_string();
        let (sender, followers) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                // Some connect only to see whether there is a process.
                let Some(text) = read_text(&mut stream).await else { continue };
                match bowline_proto::hello::read(&text) {
                    Ok(hello) => drop(sender.send((stream, hello))),
                    Err(_) => {
                        let mut wire = Vec::new();
                        frame::put_text(&mut wire, &status);
                        let _ = stream.write_all(&wire).await;
                        open.push(stream);
                    }
                }
            }
        });
        self.process = Some(Process { _lock: lock, tasks, followers });
    }

    /// Ends the process without a trace.
    pub(super) async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.tasks.shutdown().await;
        }
    }

    /// Removes its files.
    pub(super) async fn forget(mut self) {
        self.kill().await;
        std::fs::remove_dir_all(self.dir.path()).unwrap();
    }

    /// Appends an event to the journal.
    pub(super) fn record(&mut self, event: AgentEvent) -> u64 {
        self.transcript.append(event).unwrap()
    }

    /// Appends notices until the journal ends here.
    pub(super) fn record_until(&mut self, end: u64) {
        while self.end() < end {
            self.record(AgentEvent::Notice { level: Level::Info, text: format!("number {}", self.end()) });
        }
    }

    /// Writes `meta.json` again, which tells the board that the files changed.
    pub(super) fn touch(&self) {
        self.meta.write(&self.dir.meta()).unwrap();
    }

    pub(super) fn end(&self) -> u64 {
        self.transcript.end().seq
    }

    /// Waits for a follower's hello.
    pub(super) async fn accept(&mut self) -> Follower {
        let followers = &mut self.process.as_mut().unwrap().followers;
        let (stream, hello) = in_time(followers.recv()).await.unwrap();
        Follower { stream, hello }
    }

    /// Whether a follower has connected that was not accepted.
    pub(super) fn has_followers(&self) -> bool {
        self.process.as_ref().is_some_and(|process| !process.followers.is_empty())
    }

    /// Waits for a follower's hello, and answers it.
    pub(super) async fn attach(&mut self, n: u8, offset: u64, reason: Option<&str>) -> Follower {
        let (mut follower, end) = (self.accept().await, self.end());
        follower.attached(n, offset, end, reason).await;
        follower
    }
}

async fn read_text(stream: &mut UnixStream) -> Option<String> {
    let mut head = [0; frame::HEADER];
    stream.read_exact(&mut head).await.ok()?;
    let mut text = vec![0; frame::Header::decode(&head).unwrap()?.len];
    stream.read_exact(&mut text).await.ok()?;
    String::from_utf8(text).ok()
}

/// The process's end of a connection.
pub(super) struct Follower {
    pub(super) stream: UnixStream,
    pub(super) hello: Hello,
}

impl Follower {
    pub(super) async fn send(&mut self, text: &str) {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, text);
        self.stream.write_all(&wire).await.unwrap();
    }

    /// `reason` makes it a snapshot.
    pub(super) async fn attached(&mut self, n: u8, offset: u64, end: u64, reason: Option<&str>) {
        let mut attached = json!({ "type": "attached", "session": { "offset": end }, "epoch": epoch(n),
            "offset": offset, "verdict": if reason.is_some() { "snapshot" } else { "exact" },
            "you": { "write": false }, "heartbeat": 20000 });
        if let Some(reason) = reason {
            attached["reason"] = reason.into();
        }
        self.send(&attached.to_string()).await;
    }

    pub(super) async fn event(&mut self, first: u64, seq: u64, event: &Value) {
        self.send(&event_text(first, seq, event)).await;
    }

    /// Sends notices with these numbers.
    pub(super) async fn notices(&mut self, numbers: std::ops::Range<u64>) {
        for seq in numbers {
            self.event(seq, seq, &json!({ "type": "notice" })).await;
        }
    }

    pub(super) async fn close(&mut self, code: u16) {
        self.send(&json!({ "type": "close", "code": code, "reason": "" }).to_string()).await;
    }

    pub(super) async fn receive(&mut self) -> Value {
        serde_json::from_str(&in_time(read_text(&mut self.stream)).await.unwrap()).unwrap()
    }
}

/// A message in the form in which sessions write it.
pub(super) fn event_text(first: u64, seq: u64, event: &Value) -> String {
    let from = if first != seq { format!(r#","from":{first}"#) } else { String::new() };
    // `Value` sorts its keys, but the type comes first.
    let mut fields = event.as_object().unwrap().clone();
    let mut text = format!(r#"{{"type":{}"#, fields.remove("type").unwrap());
    fields.iter().for_each(|(key, value)| text += &format!(",{}:{value}", json!(key)));
    format!(r#"{{"type":"event","seq":{seq}{from},"at":"2026-01-01T00:00:00Z","event":{text}}}}}"#)
}
