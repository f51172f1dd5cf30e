//! The stub of the model APIs (`fixtures/model-stub`), as a process of the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A running stub. It ends with this value, because its standard input is closed.
pub(crate) struct Stub {
    process: Child,
    folder: tempfile::TempDir,
    pub(crate) url: String,
}

impl Stub {
    pub(crate) fn start() -> Stub {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/model-stub/stub.mjs");
        let folder = tempfile::Builder::new().prefix("bowline-stub").tempdir_in("/tmp").unwrap();
        let mut process = Command::new("node")
            .arg(program)
            .arg("--log")
            .arg(folder.path().join("log"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts the stub");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: Value = serde_json::from_str(&line).expect("the stub prints its port");
        let url = format!("http://127.0.0.1:{}", port["port"]);
        Stub { process, folder, url }
    }

    /// Whether the model was sent one request that contains all these texts.
    pub(crate) fn was_sent(&self, texts: &[&str]) -> bool {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines().any(|request| texts.iter().all(|text| request.contains(text)))
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
