//! `GET /v1/agents`: which agents are installed, as a login shell finds them, and what is wrong with the others.

use std::process::Command;

use serde_json::{Value, json};

use super::super::gateway::World;
use super::super::http;
use super::{is_running, until, world, world_with};

impl World {
    /// Makes a directory the first one in the PATH of a login shell. Must come before the first call that needs it.
    pub(super) fn set_login_path(&self) {
        let profile = format!("export PATH={}:/usr/bin:/bin\n", self.file("bin"));
        std::fs::write(self.file(".profile"), profile).unwrap();
        std::fs::create_dir(self.file("bin")).unwrap();
    }

    /// Writes a program into that directory. Another process writes it: a process that this one starts meanwhile would
    /// have it open for writing, and then it could not be executed.
    pub(super) fn install(&self, name: &str, script: &str, mode: &str) {
        self.install_for("/bin/sh", name, script, mode);
    }

    /// The same for a script of another interpreter.
    fn install_for(&self, interpreter: &str, name: &str, script: &str, mode: &str) {
        let write = r#"printf '#!%s\n%s\n' "$4" "$2" >"$1.new" && chmod "$3" "$1.new" && mv "$1.new" "$1""#;
        let file = self.file(&format!("bin/{name}"));
        let written = Command::new("sh").args(["-c", write, "sh", &file, script, mode, interpreter]).status().unwrap();
        assert!(written.success());
    }

    /// The agents, as a caller with this token sees them.
    #[track_caller]
    fn agents_as(&self, token: &str) -> Vec<Value> {
        let answer = self.call_as(token, "GET", "/v1/agents", &Value::Null);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let path = self.path().to_str().unwrap();
        assert!(!answer.text().contains(path), "no path of the server: {}", answer.text());
        answer.json()["agents"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn available(&self, name: &str) -> Value {
        let agents = self.agents_as(&self.token);
        agents.into_iter().find(|agent| agent["name"] == name).unwrap()
    }
}

#[test]
fn r32_agents_are_listed_with_what_is_installed_and_what_is_wrong() {
    let secret = "a value that only the agent may see";
    let world = world_with(&[("SECRET_OF_THE_TABLE", secret)]);
    world.set_login_path();
    world.install("claude", "echo run >>\"$HOME/runs\"; echo '2.1.325 (Claude Code)'", "755");
    world.install("codex", "echo 'codex-cli 0.166.0'", "644");
    world.install("gemini", "exit 1", "755");
    std::os::unix::fs::symlink("nowhere", world.file("bin/qwen")).unwrap();
    let reader = world.new_token("reader", "read");
    let agents = world.agents_as(&reader);
    let names: Vec<&Value> = agents.iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["claude", "codex", "cursor", "fake", "gemini", "missing", "opencode", "qwen"]);
    assert_eq!(
        agents[0],
        json!({"name": "claude", "label": "Claude Code", "protocol": "claude", "available": true,
            "version": "2.1.325", "problem": "seems not to be logged in: run `claude` in a terminal and use /login",
            "install": "npm install -g @anthropic-ai/claude-code",
            "modes": ["default", "acceptEdits", "plan", "auto"]})
    );
    assert_eq!(agents[3], json!({"name": "fake", "label": "fake", "protocol": "acp", "available": true, "modes": []}));
    for (at, problem) in [
        (1, "`codex` cannot be run: it is not executable"),
        (2, "`cursor-agent` is not installed: it was not found in PATH"),
        (4, "`gemini --version` failed (1); run it in a terminal to see why"),
        (5, "`no-such-agent` is not installed: it was not found in PATH"),
        (6, "`opencode` is not installed: it was not found in PATH"),
        (7, "`qwen` cannot be run: it is a link to a file that does not exist"),
    ] {
        assert_eq!((&agents[at]["available"], &agents[at]["problem"]), (&json!(false), &json!(problem)));
        assert!(agents[at]["version"].is_null());
    }
    assert!(!json!(agents).to_string().contains(secret));
    let stranger = http::request(world.address, "GET", "/v1/agents", &[], b"").unwrap();
    assert_eq!(stranger.status, 401);

    // What changes is seen at the next call, and only that is run again.
    std::fs::create_dir(world.file(".claude")).unwrap();
    std::fs::write(world.file(".claude/.credentials.json"), "{}").unwrap();
    world.install("codex", "echo 'codex-cli 0.167.0'", "755");
    assert_eq!(
        (world.available("claude")["problem"].clone(), world.available("claude")["version"].clone()),
        (Value::Null, json!("2.1.325"))
    );
    assert_eq!(world.available("codex")["version"], "0.167.0");
    assert_eq!(std::fs::read_to_string(world.file("runs")).unwrap(), "run\n", "one run for all calls");
}

#[test]
fn r32_a_session_of_an_agent_that_is_not_installed_is_refused_in_the_same_words() {
    let world = world();
    world.set_login_path();
    let refused = |agent: &str| {
        let answer = world.new_agent(&json!({"agent": agent}));
        assert_eq!((answer.status, answer.code()), (422, "no_program"), "{}", answer.text());
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    let listed = |agent: &str| world.available(agent)["problem"].as_str().unwrap().to_owned();
    assert_eq!(refused("missing"), listed("missing"));
    let install = "install it with `npm install -g @qwen-code/qwen-code`";
    assert_eq!(refused("qwen"), format!("{}; {install}", listed("qwen")));
    std::fs::create_dir(world.file("bin/qwen")).unwrap();
    assert_eq!(listed("qwen"), "`qwen` cannot be run: it is a directory");
    assert_eq!(refused("qwen"), format!("{}; {install}", listed("qwen")));
    std::fs::remove_dir(world.file("bin/qwen")).unwrap();
    world.install_for("/no/such/interpreter", "qwen", "", "755");
    assert_eq!(listed("qwen"), "`qwen` cannot be run: the program that should interpret it does not exist");
    assert_eq!(refused("qwen"), format!("{}; {install}", listed("qwen")));
}

#[test]
fn r43_modes_and_models_are_those_of_the_newest_session_that_the_server_allows() {
    let mut world = world();
    let offered = |world: &World| {
        let agent = world.available("fake");
        (agent["modes"].clone(), agent["models"].clone())
    };
    assert_eq!(offered(&world), (json!([]), Value::Null));
    let id = world.agent();
    let models = json!(["fake-small", "fake-large"]);
    until("the agent has said what it offers", || !world.events_of(&id, "config").is_empty());
    assert_eq!(offered(&world), (json!(["default", "plan"]), models.clone()));
    let config = std::fs::read_to_string(world.path().join("config.toml")).unwrap();
    let set = |world: &mut World, lines: &str| {
        let changed = config.replace("[agents.missing]", &format!("{lines}\n[agents.missing]"));
        std::fs::write(world.path().join("config.toml"), changed).unwrap();
        world.kill_gateway();
        world.start_gateway();
    };
    set(&mut world, "allow_bypass = true");
    let bypass = world.agent();
    until("the agent has said what it offers", || !world.events_of(&bypass, "config").is_empty());
    assert_eq!(offered(&world).0, json!(["default", "plan", "yolo"]));
    set(&mut world, "");
    assert_eq!(offered(&world), (json!(["default", "plan"]), models.clone()), "not allowed any more");
    set(&mut world, "modes = [\"plan\", \"yolo\"]");
    assert_eq!(offered(&world), (json!(["plan"]), models));
}

#[test]
fn r52_a_program_that_hangs_does_not_outlive_the_gateway() {
    let mut world = world();
    world.set_login_path();
    world.install("codex", r#"echo $$ >"$HOME/pid.new"; mv "$HOME/pid.new" "$HOME/pid"; exec sleep 600"#, "755");
    let (address, bearer) = (world.address, world.bearer());
    let call = std::thread::spawn(move || {
        http::request(address, "GET", "/v1/agents", &[("authorization", bearer.as_str())], b"")
    });
    until("the program runs", || world.path().join("pid").exists());
    let pid = std::fs::read_to_string(world.file("pid")).unwrap().trim().parse().unwrap();
    assert!(world.stop_gateway().success());
    until("the program is killed", || !is_running(pid));
    let answer = call.join().unwrap().expect("the stop ends the program first, and then the call is answered");
    assert_eq!(answer.status, 200, "{}", answer.text());
}
