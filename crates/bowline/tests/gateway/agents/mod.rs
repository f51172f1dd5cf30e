//! Agent sessions, with an agent that does what its prompts say (`fixtures/fake-agent`).

mod aborts;
mod approvals;
mod available;
mod blobs;
mod chaos;
mod commands;
mod conversation;
mod files;
mod full_disk;
mod history;
mod hostile;
mod limits;
mod lives;
mod older;
mod settings;
mod stream;
mod stream_bugs;
mod streams;
mod uploads;

use std::path::Path;

use serde_json::{Value, json};

use self::conversation::{
    assert_contiguous, assert_each_approval_has_one_outcome, assert_each_run_ends_once, assert_same_events, is_running,
    joined, until,
};
use super::gateway::World;
use super::http::Response;

/// A gateway that knows the fake agent as `fake`, with these variables in its environment.
fn world_with(variables: &[(&str, &str)]) -> World {
    configured_world("", variables)
}

/// The same, with these settings.
fn configured_world(settings: &str, variables: &[(&str, &str)]) -> World {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fake-agent/agent.mjs");
    let script = script.canonicalize().unwrap();
    // By its whole path: a login shell may have another PATH than this test.
    let paths = std::env::var_os("PATH").unwrap();
    let node = std::env::split_paths(&paths).map(|path| path.join("node")).find(|node| node.is_file()).expect("node");
    let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    let config = format!(
        "{settings}\n[agents.fake]\nprotocol = \"acp\"\ncommand = [{node:?}, {script:?}]\nenv = {{ {} }}\n\
         [agents.missing]\nprotocol = \"acp\"\ncommand = [\"no-such-agent\"]\n\
         [gateway.limits]\nrequest_rate = 10000\nattach_rate = 10000\n",
        variables.join(", ")
    );
    World::with(&[], &config)
}

fn world() -> World {
    world_with(&[])
}

impl World {
    /// Starts a session of the fake agent. Returns its id.
    #[track_caller]
    fn agent(&self) -> String {
        let made = self.new_agent(&json!({}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// Requests a session of the fake agent, with these fields in addition.
    #[track_caller]
    fn new_agent(&self, fields: &Value) -> Response {
        let mut body = json!({"kind": "agent", "agent": "fake", "cwd": self.path()});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.call("POST", "/v1/sessions", &body)
    }
}
