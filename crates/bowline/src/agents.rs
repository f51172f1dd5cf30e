//! `bowline agents`: lists the agents that sessions may run.

use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use bowline_proto::api::AgentStatus;

use crate::host::Host;
use crate::{args, table};

/// After this long, the user is told what takes so long.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(verb: &args::Agents, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let list = with_progress("bowline: looking for the agents' programs…", || host.agents())?;
    if verb.json {
        println!("{}", serde_json::to_string(&list)?);
    } else {
        table::print(["NAME", "VERSION", "STATUS", "MODES"], &list.agents.iter().map(row).collect::<Vec<_>>());
    }
    Ok(ExitCode::SUCCESS)
}

/// Does some work, and prints `text` to standard error if it takes longer than [`PATIENCE`].
fn with_progress<T>(text: &str, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{text}");
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn row(agent: &AgentStatus) -> [String; 4] {
    let or_dash = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    [
        agent.name.clone(),
        or_dash(agent.version.as_deref()),
        status(agent),
        or_dash(Some(agent.modes.join(", ").as_str())),
    ]
}

/// Whether the agent can be used, and what to do if not.
fn status(agent: &AgentStatus) -> String {
    match (agent.available, &agent.problem, &agent.install) {
        (true, None, _) => "available".to_owned(),
        (true, Some(problem), _) => format!("available; {problem}"),
        (false, problem, install) => {
            let problem = problem.as_deref().unwrap_or("not available");
            install.as_ref().map_or_else(|| problem.to_owned(), |install| format!("{problem}; `{install}` installs it"))
        }
    }
}
