//! What every agent program must do. Each test runs with each selected program.

mod aborts;
mod answers;
mod approvals;
mod attachments;
mod available;
#[path = "../../gateway/agents/conversation.rs"]
#[allow(dead_code, reason = "shared with the tests of the gateway")]
mod conversation;
mod crashes;
mod resuming;
mod settings;
#[path = "../../gateway/agents/stream.rs"]
#[allow(dead_code, reason = "shared with the tests of the gateway")]
mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use self::conversation::{
    assert_contiguous, assert_each_approval_has_one_outcome, assert_each_run_ends_once, is_running, until,
};
use super::gateway::{World, signal};
use super::processes;
use super::programs::{Program, Resumes};
use super::selection::{path_of, selected};
use super::stub::Stub;

/// A gateway that knows one agent program, the stub that the program uses, and a project directory.
struct Bench {
    world: World,
    stub: Stub,
    program: &'static Program,
    /// The sessions that the scenario created.
    sessions: Vec<String>,
    /// The files that the scenario has made in the project.
    made: Vec<&'static str>,
    commands: u32,
}

/// Runs a scenario with each selected program, then checks what holds after every scenario.
fn with_each(scenario: impl Fn(&mut Bench)) {
    let mut failed = Vec::new();
    for program in selected() {
        let mut bench = Bench::new(program);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            scenario(&mut bench);
            bench.check();
        }));
        if outcome.is_err() {
            bench.report();
            failed.push(program.name);
        }
    }
    assert!(failed.is_empty(), "failed with {}", failed.join(", "));
}

impl Bench {
    fn new(program: &'static Program) -> Bench {
        let stub = Stub::start();
        let path = path_of(program);
        let variables = program.variables.iter().copied().chain([("PATH", path.as_str()), ("TERM", "dumb")]);
        let variables: Vec<String> =
            variables.map(|(name, value)| format!("{name} = {:?}", value.replace("$STUB", &stub.url))).collect();
        let command = program.command.map(|command| format!("command = {command:?}\n")).unwrap_or_default();
        let config = format!(
            "[agents.{}]\n{command}env = {{ {} }}\n[gateway.limits]\nrequest_rate = 10000\nattach_rate = 10000\n",
            program.name,
            variables.join(", ")
        );
        let world = World::with(&[], &config);
        (program.configure)(world.path(), &stub.url);
        let bench = Bench { world, stub, program, sessions: Vec::new(), made: Vec::new(), commands: 0 };
        std::fs::create_dir(bench.project()).unwrap();
        bench
    }

    fn project(&self) -> PathBuf {
        self.world.path().join("project")
    }

    /// Starts a session. Returns its id.
    #[track_caller]
    fn start(&mut self) -> String {
        self.start_with(&json!({}))
    }

    /// Starts a session with these fields in the request.
    #[track_caller]
    fn start_with(&mut self, fields: &Value) -> String {
        let mut body = json!({"kind": "agent", "agent": self.program.name, "cwd": self.project()});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let made = self.world.call("POST", "/v1/sessions", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        let id = made.json()["id"].as_str().unwrap().to_owned();
        self.sessions.push(id.clone());
        id
    }

    /// A new id for a command.
    fn command_id(&mut self) -> String {
        self.commands += 1;
        format!("c{}", self.commands)
    }

    /// Sends a prompt. Returns its run.
    #[track_caller]
    fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.command_id();
        self.world.prompt(session, &id, &[text])
    }

    /// Sends a prompt, and checks that it is answered with this text.
    #[track_caller]
    fn converse(&mut self, session: &str, text: &str, answer: &str) -> Value {
        let run = self.prompt(session, &format!("{text} [[say:{answer}]]"));
        let end = self.world.complete(session, &run);
        assert_eq!((&end["success"], &end["aborted"]), (&json!(true), &json!(false)), "{end}");
        assert!(self.world.said(session, &run).contains(answer), "{:?}", self.world.said(session, &run));
        end
    }

    /// Sends a prompt whose run calls the shell tool, and waits for the approval that it needs.
    #[track_caller]
    fn request_tool(&mut self, session: &str, command: &str) -> (String, Value) {
        let run = self.prompt(session, &format!("Please [[run:{command}]]"));
        let approval = self.world.approvals(session, 1).remove(0);
        assert_eq!((&approval["run"], &approval["kind"]), (&json!(run), &json!("permission")), "{approval}");
        (run, approval)
    }

    /// Allows a tool call once, with the first option that does.
    #[track_caller]
    fn allow(&mut self, session: &str, approval: &Value) {
        let options = approval["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == "allow_once").expect("an option that allows once");
        self.answer(session, approval, json!({"type": "approve", "option": option["id"]}));
    }

    #[track_caller]
    fn deny(&mut self, session: &str, approval: &Value) {
        self.answer(session, approval, json!({"type": "deny"}));
    }

    #[track_caller]
    fn answer(&mut self, session: &str, approval: &Value, answer: Value) {
        let id = self.command_id();
        let response = self.world.answer(session, &id, answer, approval);
        assert_eq!(response.status, 202, "{}", response.text());
    }

    #[track_caller]
    fn abort(&mut self, session: &str, run: &str) -> Value {
        let id = self.command_id();
        self.world.abort(session, &id, run);
        self.world.complete(session, run)
    }

    /// Sends a prompt whose run streams text until the file exists, and waits for the first of the text.
    #[track_caller]
    fn hold(&mut self, session: &str, file: &str) -> String {
        let run = self.prompt(session, &format!("Please [[hold:{file}]]"));
        until("the answer streams", || self.world.said(session, &run).contains("Holding."));
        run
    }

    /// Sends a prompt whose run starts a tool, and waits until the tool runs. Returns the run, and an argument of the
    /// tool's process that no other process has.
    #[track_caller]
    fn run_tool(&mut self, session: &str) -> (String, String) {
        let unique = processes::unique_sleep();
        let (run, approval) = self.request_tool(session, &format!("touch started; sleep {unique}"));
        self.allow(session, &approval);
        self.made.push("started");
        until("the tool runs", || {
            self.project().join("started").exists() && !processes::with_argument(&unique).is_empty()
        });
        (run, unique)
    }

    /// Kills the agent's program, and waits until the session process has noticed.
    #[track_caller]
    fn kill_agent(&self, session: &str) {
        let agents = processes::children_of(self.world.session_pid(session));
        assert!(!agents.is_empty(), "the agent's program runs");
        agents.iter().for_each(|pid| signal(pid.cast_unsigned(), Signal::KILL));
        until("the session process has noticed", || {
            !agents.iter().any(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists())
        });
    }

    /// Waits until another process of the program can load the conversations that there are.
    fn wait_until_resumable(&self) {
        let minute = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() / 60;
        let now = minute();
        until("the program can load a conversation", || self.program.resumes == Resumes::AtOnce || minute() > now);
    }

    /// Ends a session.
    #[track_caller]
    fn end(&self, session: &str) {
        let ended = self.world.call("DELETE", &format!("/v1/sessions/{session}?keep=true"), &Value::Null);
        assert_eq!(ended.status, 204, "{}", ended.text());
    }

    /// The processes of a session's agent, except for the session process itself.
    fn processes_of(&self, session: &str) -> Vec<i32> {
        processes::with_variable(&format!("BOWLINE_SESSION={session}"))
    }

    /// Ends the sessions, and checks what holds after every scenario.
    #[track_caller]
    fn check(&mut self) {
        for session in &self.sessions {
            if self.world.describe(session)["state"] == "running" {
                let pid = self.world.session_pid(session).cast_signed();
                self.world.ok(&["kill", "--keep", session]);
                until("the session process has ended", || !is_running(pid));
            }
            let journal = self.world.journal(session);
            assert_eq!(journal.last().map(|record| &record["event"]["type"]), Some(&json!("exit")));
            assert_contiguous(&journal);
            assert_each_run_ends_once(&journal);
            assert_each_approval_has_one_outcome(&journal);
            assert_eq!(self.processes_of(session), [0; 0], "processes of {session} are left");
        }
        let files = std::fs::read_dir(self.project()).unwrap().flatten();
        let mut files: Vec<String> = files.map(|entry| entry.file_name().into_string().unwrap()).collect();
        files.sort();
        self.made.sort_unstable();
        self.made.dedup();
        assert_eq!(files, self.made, "the files in the project");
    }

    /// Prints what is known about a failure.
    fn report(&self) {
        for session in &self.sessions {
            eprintln!("{}: the journal of {session}:", self.program.name);
            for record in self.world.journal(session) {
                let line = record.to_string();
                eprintln!("  {}", line.chars().take(1000).collect::<String>());
            }
            for pid in self.processes_of(session) {
                let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                eprintln!("  process {pid}: {}", command.replace('\0', " "));
            }
        }
    }
}
