//! Versions of programs, which have to be run for them. Each is run once, for all callers, until its file, its Node or
//! its environment changes, or its report is old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_host::program::Unusable;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lookup::{Fingerprint, Program};
use super::run::{self, Failure, RUN_TIMEOUT};
use super::version::{self, Release};

/// How many programs are run at the same time; the others wait.
const MAX_CONCURRENT: usize = 2;
/// How long after the start of a run that showed a problem the program is not run again.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The same for a run that showed none. Wrappers such as those of mise and volta run another file after an upgrade, and
/// do not change themselves.
const MAX_AGE: Duration = Duration::from_secs(600);

/// What running a program showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// False if it certainly cannot be run.
    pub(super) available: bool,
    pub(super) version: Option<String>,
    pub(super) problem: Option<String>,
}

/// The latest run of each agent's program.
pub(crate) struct Probes {
    latest: Mutex<HashMap<String, Probe>>,
    turns: Arc<Semaphore>,
    times: Times,
    /// Cancelled when the gateway stops.
    stop: CancellationToken,
    /// What the gateway waits for when it stops: so no program outlives it.
    tasks: TaskTracker,
}

struct Times {
    run_timeout: Duration,
    retry_after: Duration,
    max_age: Duration,
}

struct Probe {
    fingerprint: Fingerprint,
    begun: Instant,
    report: SharedReport,
}

pub(super) type SharedReport = Shared<BoxFuture<'static, Option<Report>>>;

impl Probes {
    pub(super) fn new(stop: CancellationToken, tasks: TaskTracker) -> Probes {
        let times = Times { run_timeout: RUN_TIMEOUT, retry_after: RETRY_AFTER, max_age: MAX_AGE };
        let turns = Arc::new(Semaphore::new(MAX_CONCURRENT));
        Probes { latest: Mutex::default(), turns, times, stop, tasks }
    }

    /// The report about an agent's program: the latest if that still holds, or else a new one. It goes on if its
    /// callers hang up. `None` only if the gateway stops.
    pub(super) fn get(&self, agent: &str, program: Program) -> SharedReport {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = latest.get(agent) {
            let holds = match probe.report.clone().now_or_never() {
                // Also if the file has changed since then: so one program is run at most once at a time.
                None => true,
                Some(Some(report)) if probe.fingerprint == program.fingerprint => {
                    let is_fine = report.problem.is_none();
                    probe.begun.elapsed() < if is_fine { self.times.max_age } else { self.times.retry_after }
                }
                Some(_) => false,
            };
            if holds {
                return probe.report.clone();
            }
        }
        let (turns, run_timeout, fingerprint) =
            (self.turns.clone(), self.times.run_timeout, program.fingerprint.clone());
        let running = async move {
            let _turn = turns.acquire_owned().await;
            report(&program, Instant::now() + run_timeout).await
        };
        let stop = self.stop.clone();
        let running = self.tasks.spawn(async move { stop.run_until_cancelled_owned(running).await });
        let report = running.map(|ended| ended.ok().flatten()).boxed().shared();
        latest.insert(agent.to_owned(), Probe { fingerprint, begun: Instant::now(), report: report.clone() });
        report
    }
}

async fn report(program: &Program, deadline: Instant) -> Report {
    let Program { name, path, env, cwd, node: need, has_version, .. } = program;
    let node = need.as_ref().and_then(|need| need.node.as_ref().filter(|_| need.oldest.is_some()));
    let node = match node {
        Some(node) => run::version(node, env, cwd, deadline).await.ok().and_then(|text| Release::parse(&text)),
        None => None,
    };
    let node_problem = need.as_ref().and_then(|need| need.problem(node));
    if need.as_ref().is_some_and(|need| need.node.is_none()) {
        return Report { available: false, version: None, problem: node_problem };
    }
    if !has_version {
        return Report { available: true, version: None, problem: node_problem };
    }
    match run::version(path, env, cwd, deadline).await {
        Ok(text) => {
            let version = version::find(&text).map(ToOwned::to_owned);
            Report { available: true, version, problem: node_problem }
        }
        Err(failure) => {
            let (available, problem) = explain(name, failure);
            Report { available, version: None, problem: node_problem.or(Some(problem)) }
        }
    }
}

/// Whether a program that printed no version may work nevertheless, and what happened. What it printed is not quoted,
/// because it may contain paths.
fn explain(name: &str, failure: Failure) -> (bool, String) {
    match failure {
        Failure::NotStarted(kind) => match Unusable::of_exec(kind) {
            Some(why) => (false, why.explain(name.as_ref())),
            None => (true, format!("`{name}` could not be started: {kind}")),
        },
        Failure::Exit(Some(code)) => {
            (false, format!("`{name} --version` failed ({code}); run it in a terminal to see why"))
        }
        // Says nothing about the program: a user may have killed it, or the machine was short of memory.
        Failure::Exit(None) => {
            (true, format!("`{name} --version` was killed by a signal; run it in a terminal to see why"))
        }
        Failure::TimedOut => (true, format!("`{name} --version` did not end within {} s", RUN_TIMEOUT.as_secs())),
        Failure::Flood => (true, format!("`{name} --version` prints too much")),
    }
}

#[cfg(test)]
mod tests {
    use bowline_host::agents::AgentTable;

    use super::super::lookup::Lookup;
    use super::super::testing::{Programs, wait_until};
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn probes_with(run_timeout: Duration, retry_after: Duration, max_age: Duration) -> Probes {
        let probes = Probes::new(CancellationToken::new(), TaskTracker::new());
        Probes { times: Times { run_timeout, retry_after, max_age }, ..probes }
    }

    fn look_up(programs: &Programs, agent: &str) -> Program {
        let agent = AgentTable::builtin().get(agent).unwrap().clone();
        Lookup::new(&agent, &programs.env()).program.unwrap()
    }

    async fn report_of(programs: &Programs, agent: &str) -> Report {
        probes_with(LONG, LONG, LONG).get(agent, look_up(programs, agent)).await.unwrap()
    }

    /// Counts the lines that stand-ins have written to a file.
    fn lines(programs: &Programs, file: &str) -> usize {
        std::fs::read_to_string(programs.path().join(file)).unwrap_or_default().lines().count()
    }

    #[tokio::test]
    async fn a_program_is_reported_with_its_version_or_what_happened() {
        for (script, available, version, problem) in [
            ("echo 'codex-cli 0.166.0'", true, Some("0.166.0"), None),
            ("echo WARNING: 1.1 >&2; echo 0.166.0", true, Some("0.166.0"), None),
            ("head -c 4000 /dev/urandom | tr -d '0-9'", true, None, None),
            ("exit 1", false, None, Some("`codex --version` failed (1); run it in a terminal to see why")),
            (
                "kill -9 $$",
                true,
                None,
                Some("`codex --version` was killed by a signal; run it in a terminal to see why"),
            ),
            ("head -c 3000000 /dev/zero", true, None, Some("`codex --version` prints too much")),
        ] {
            let programs = Programs::new();
            programs.script("codex", &format!("#!/bin/sh\n{script}\n"));
            let report = report_of(&programs, "codex").await;
            assert_eq!(
                (report.available, report.version.as_deref(), report.problem.as_deref()),
                (available, version, problem),
                "{script}"
            );
        }
        let programs = Programs::new();
        programs.script("codex", "#!/no/such/interpreter\n");
        let report = report_of(&programs, "codex").await;
        let problem = "`codex` cannot be run: the program that should interpret it does not exist";
        assert_eq!((report.available, report.problem.as_deref()), (false, Some(problem)));
    }

    /// As Gemini CLI 0.61.0 with Node 18, and Qwen Code 0.24.4 with Node 20, which prints its version nevertheless.
    #[tokio::test]
    async fn a_node_that_is_too_old_is_the_problem_also_if_the_version_is_printed() {
        let programs = Programs::new();
        programs.file("package.json", r#"{"name": "stand-in", "engines": {"node": ">=22.0.0"}}"#);
        let node = |version: &str, run: &str| {
            let script = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo {version}; else {run}; fi\n");
            programs.script("node", &script);
        };
        programs.script("gemini", "#!/usr/bin/env node\n");
        let syntax_error = "echo 'SyntaxError: Invalid regular expression flags' >&2; exit 1";
        for (version, run, available, problem) in [
            ("v18.20.8", syntax_error, false, Some("Node 22 or newer is needed; the `node` in PATH is 18.20.8")),
            ("v20.20.2", "echo 0.61.0", true, Some("Node 22 or newer is needed; the `node` in PATH is 20.20.2")),
            ("v22.23.3", "echo 0.61.0", true, None),
            ("v22.23.3", "exit 1", false, Some("`gemini --version` failed (1); run it in a terminal to see why")),
            ("nonsense", "echo 0.61.0", true, None),
        ] {
            node(version, run);
            let report = report_of(&programs, "gemini").await;
            assert_eq!((report.available, report.problem.as_deref()), (available, problem), "{version}: {run}");
            assert_eq!(report.version.as_deref(), (run == "echo 0.61.0").then_some("0.61.0"));
        }
    }

    #[tokio::test]
    async fn a_script_for_node_without_node_cannot_be_run() {
        let programs = Programs::new();
        programs.script("gemini", "#!/usr/bin/env node\n");
        let agent = AgentTable::builtin().get("gemini").unwrap().clone();
        let program = Lookup::new(&agent, &programs.only_env()).program.unwrap();
        let report = probes_with(LONG, LONG, LONG).get("gemini", program).await.unwrap();
        let problem = "Node is needed, and no `node` was found in PATH";
        assert_eq!((report.available, report.problem.as_deref()), (false, Some(problem)));
    }

    #[tokio::test]
    async fn a_program_is_run_again_only_if_something_has_changed() {
        let (programs, probes) = (Programs::new(), probes_with(LONG, LONG, LONG));
        let script = |text: &str| programs.script("codex", &format!("#!/bin/sh\necho run >>runs; {text}\n"));
        script("echo 1.0");
        let get = || probes.get("codex", look_up(&programs, "codex"));
        let (first, second) = tokio::join!(get(), get());
        assert_eq!((first.unwrap().version.as_deref(), second.unwrap().version.as_deref()), (Some("1.0"), Some("1.0")));
        assert_eq!(get().await.unwrap().version.as_deref(), Some("1.0"));
        assert_eq!(lines(&programs, "runs"), 1, "callers share one run, and its report is kept");
        script("echo 2.0");
        assert_eq!(get().await.unwrap().version.as_deref(), Some("2.0"));
        script("exit 1");
        assert!(!get().await.unwrap().available && !get().await.unwrap().available);
        assert_eq!(lines(&programs, "runs"), 3, "a failure is not tried again at once");
    }

    #[tokio::test]
    async fn a_failure_is_tried_again_later() {
        let (programs, probes) = (Programs::new(), probes_with(LONG, Duration::ZERO, LONG));
        programs.script("codex", "#!/bin/sh\necho run >>runs; test -e works && echo 1.0\n");
        let get = || probes.get("codex", look_up(&programs, "codex"));
        assert!(!get().await.unwrap().available);
        programs.file("works", "");
        assert_eq!(get().await.unwrap().version.as_deref(), Some("1.0"));
        assert_eq!(get().await.unwrap().version.as_deref(), Some("1.0"));
        assert_eq!(lines(&programs, "runs"), 2);
    }

    /// A wrapper is the same file after an upgrade of what it runs.
    #[tokio::test]
    async fn a_wrapper_is_run_again_when_its_report_is_old() {
        let (programs, probes) = (Programs::new(), probes_with(LONG, LONG, Duration::ZERO));
        programs.script("codex", "#!/bin/sh\ncat version\n");
        let get = || probes.get("codex", look_up(&programs, "codex"));
        for version in ["1.0", "2.0"] {
            programs.file("version", version);
            assert_eq!(get().await.unwrap().version.as_deref(), Some(version));
        }
    }

    #[tokio::test]
    async fn a_wrapper_of_node_is_run_again_soon_if_its_node_is_too_old() {
        let (programs, probes) = (Programs::new(), probes_with(LONG, Duration::ZERO, LONG));
        programs.file("package.json", r#"{"name": "stand-in", "engines": {"node": ">=22.0.0"}}"#);
        programs.script("gemini", "#!/usr/bin/env node\n");
        programs.script("node", "#!/bin/sh\ncat version\n");
        let get = || probes.get("gemini", look_up(&programs, "gemini"));
        programs.file("version", "v20.0.0");
        assert!(get().await.unwrap().problem.is_some());
        programs.file("version", "v22.0.0");
        assert_eq!(get().await.unwrap().problem, None);
    }

    #[tokio::test]
    async fn r52_at_most_two_programs_are_run_at_the_same_time_and_a_hanging_one_ends() {
        let (programs, probes) = (Programs::new(), probes_with(LONG, LONG, LONG));
        let waits = "#!/bin/sh\necho + >>log; while ! test -e go; do sleep 0.01; done; echo - >>log; echo 1.0\n";
        let agents = ["claude", "codex", "gemini", "opencode", "qwen"];
        agents.iter().for_each(|agent| drop(programs.script(agent, waits)));
        let reports: Vec<_> = agents.iter().map(|agent| probes.get(agent, look_up(&programs, agent))).collect();
        let all = tokio::spawn(futures_util::future::join_all(reports));
        while lines(&programs, "log") < 2 {
            tokio::task::yield_now().await;
        }
        programs.file("go", "");
        assert!(all.await.unwrap().into_iter().all(|report| report.unwrap().version.as_deref() == Some("1.0")));
        let log = std::fs::read_to_string(programs.path().join("log")).unwrap();
        let running = log.lines().scan(0, |running, line| {
            *running += if line == "+" { 1 } else { -1 };
            Some(*running)
        });
        assert_eq!((running.max(), log.lines().count()), (Some(2), 10));

        let probes = probes_with(Duration::from_millis(200), LONG, LONG);
        programs.script("cursor-agent", "#!/bin/sh\necho $$ >pid; exec sleep 600\n");
        let report = probes.get("cursor", look_up(&programs, "cursor")).await.unwrap();
        assert_eq!((report.available, report.version), (true, None), "it may work nevertheless");
        assert_eq!(report.problem.as_deref(), Some("`cursor-agent --version` did not end within 10 s"));
        wait_until("it is killed", || !programs.is_running("pid"));
    }

    #[tokio::test]
    async fn r52_a_stop_ends_programs_and_lets_none_start() {
        let (programs, probes) = (Programs::new(), probes_with(LONG, LONG, LONG));
        programs.script("codex", "#!/bin/sh\necho $$ >pid; exec sleep 600\n");
        let report = probes.get("codex", look_up(&programs, "codex"));
        while !programs.is_running("pid") {
            tokio::task::yield_now().await;
        }
        probes.stop.cancel();
        probes.tasks.close();
        probes.tasks.wait().await;
        wait_until("it is killed", || !programs.is_running("pid"));
        assert_eq!(report.await, None);
        programs.script("gemini", "#!/bin/sh\necho run >>runs\n");
        assert_eq!(probes.get("gemini", look_up(&programs, "gemini")).await, None);
        assert_eq!(lines(&programs, "runs"), 0);
    }

    #[tokio::test]
    async fn a_program_that_is_not_built_in_is_not_run() {
        let programs = Programs::new();
        programs.script("mine", "#!/bin/sh\necho run >>runs; echo 1.0\n");
        let entries = serde_json::from_value(serde_json::json!({"mine": {"protocol": "acp", "command": ["mine"]}}));
        let agent = AgentTable::builtin().merge(&entries.unwrap()).unwrap().get("mine").unwrap().clone();
        let program = Lookup::new(&agent, &programs.env()).program.unwrap();
        let report = probes_with(LONG, LONG, LONG).get("mine", program).await.unwrap();
        assert_eq!((report.available, report.version, report.problem), (true, None, None));
        assert_eq!(lines(&programs, "runs"), 0);
    }
}
