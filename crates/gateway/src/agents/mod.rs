//! `GET /v1/agents`: the agents of the table, whether their programs are installed and can be run, and what is wrong.
//!
//! The files say most ([`lookup`]); programs are run only for their versions ([`probes`]). A call takes at most
//! [`CALL_TIMEOUT`], however many programs hang.

mod login;
mod lookup;
mod node;
mod offers;
mod probes;
mod run;
mod shared;
#[cfg(test)]
mod testing;
mod version;

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::agents::{AgentProgram, AgentTable, Protocol};
use bowline_host::home::Home;
use bowline_proto::agent::config::Config;
use bowline_proto::api::{AgentList, AgentProtocol, AgentStatus};
use bowline_proto::problem::Code;
use futures_util::future::{OptionFuture, join_all};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::lookup::Lookup;
use self::probes::{Probes, Report, SharedReport};
use self::shared::SharedWork;
use crate::app::App;
use crate::extract::Json;
use crate::guard::Reader;
use crate::problem::Problem;
use crate::sessions::blocking;

/// How long a call takes at most. An agent whose program has not answered by then is listed without its version.
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// What the callers of this module share.
pub(crate) struct Agents {
    probes: Probes,
    /// The programs of all agents, in the order of the table.
    lookups: SharedWork<Vec<Lookup>>,
    /// What each agent offered in its newest session that knows, by the agent's name.
    offers: SharedWork<HashMap<String, Config>>,
}

impl Agents {
    /// Programs that run when `stop` is cancelled are killed. `tasks` has ended after that.
    pub(crate) fn new(stop: CancellationToken, tasks: TaskTracker) -> Agents {
        Agents { probes: Probes::new(stop, tasks), lookups: SharedWork::default(), offers: SharedWork::default() }
    }
}

/// Lists the agents that sessions may run.
#[utoipa::path(
    get, path = "/v1/agents", tag = "sessions", operation_id = "list_agents",
    responses(
        (status = 200, body = AgentList),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 503, description = "`unreachable`: the programs cannot be looked up right now"),
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Reader) -> Result<Response, Problem> {
    let deadline = Instant::now() + CALL_TIMEOUT;
    let lookups = app.agents.lookups.get(|| look_up(app.clone()));
    let offers = app.agents.offers.get(|| offers::read(app.clone()));
    let (lookups, offers) = tokio::join!(timeout_at(deadline, lookups), timeout_at(deadline, offers));
    let slow = |_| {
        let detail = "the programs cannot be looked up in time; try again in a few seconds";
        Problem::new(Code::Unreachable, detail).retry_after(5)
    };
    let lookups = lookups.map_err(slow)??;
    // Without them, the rest is still true.
    let offers = offers.unwrap_or_else(|_| Ok(Default::default())).unwrap_or_default();
    let list = describe(&app.settings.agents, &lookups, &offers, &app.agents.probes, deadline).await;
    Ok(Json(list).into_response())
}

/// Lists the agents of a table in a process that serves no gateway. Their programs are looked for in the environment
/// `env`, and none outlives this call.
pub async fn list_agents(table: &AgentTable, env: &[(OsString, OsString)], home: &Home) -> AgentList {
    let deadline = Instant::now() + CALL_TIMEOUT;
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let probes = Probes::new(stop.clone(), tasks.clone());
    let lookups: Vec<Lookup> = table.iter().map(|(_, agent)| Lookup::new(agent, env)).collect();
    let list = describe(table, &lookups, &offers::of_files(table, home), &probes, deadline).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    list
}

async fn describe(
    table: &AgentTable,
    lookups: &[Lookup],
    offers: &HashMap<String, Config>,
    probes: &Probes,
    deadline: Instant,
) -> AgentList {
    let agents = table.iter().zip(lookups).map(|((name, agent), lookup)| {
        let report = lookup.program.clone().map(|program| probes.get(name, program));
        status(name, agent, report, lookup.login, offers.get(name), deadline)
    });
    AgentList { agents: join_all(agents).await }
}

async fn look_up(app: App) -> Result<Vec<Lookup>, Problem> {
    let env = app.environment.get().await.clone();
    let agents: Vec<AgentProgram> = app.settings.agents.iter().map(|(_, agent)| agent.clone()).collect();
    blocking(move || Ok(agents.iter().map(|agent| Lookup::new(agent, &env)).collect())).await
}

async fn status(
    name: &str,
    agent: &AgentProgram,
    report: Result<SharedReport, String>,
    login: Option<&'static str>,
    offered: Option<&Config>,
    deadline: Instant,
) -> AgentStatus {
    let (report, missing) = report.map_or_else(|missing| (None, Some(missing)), |report| (Some(report), None));
    let is_installed = missing.is_none();
    let report = OptionFuture::from(report.map(|report| timeout_at(deadline, report))).await;
    let report = report.and_then(|in_time| in_time.ok().flatten());
    let (available, version, problem) = match report {
        Some(Report { available, version, problem }) => {
            let login = login.filter(|_| available).map(ToOwned::to_owned);
            (available, version, problem.or(login))
        }
        None if is_installed => {
            (true, None, Some("its version is not known yet; try again in a few seconds".to_owned()))
        }
        None => (false, None, missing),
    };
    AgentStatus {
        name: name.to_owned(),
        label: agent.label.clone(),
        protocol: match agent.protocol {
            Protocol::Acp => AgentProtocol::Acp,
            Protocol::Claude => AgentProtocol::Claude,
            Protocol::Codex => AgentProtocol::Codex,
        },
        available,
        version,
        problem,
        install: agent.install.clone(),
        modes: offers::modes(agent, offered),
        models: offers::models(offered),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// The row of Claude Code, after this report and with this problem of its login.
    async fn row(report: Result<SharedReport, String>, login: Option<&'static str>) -> AgentStatus {
        let agent = AgentTable::builtin().get("claude").unwrap().clone();
        status("claude", &agent, report, login, None, Instant::now() + CALL_TIMEOUT).await
    }

    fn finished(available: bool, problem: Option<&str>) -> Result<SharedReport, String> {
        let (version, problem) = (Some("2.1.325".to_owned()), problem.map(ToOwned::to_owned));
        let report = Report { available, version, problem };
        Ok(std::future::ready(Some(report)).boxed().shared())
    }

    #[tokio::test(start_paused = true)]
    async fn r52_a_program_that_hangs_delays_a_call_for_a_bounded_time() {
        let begun = Instant::now();
        let row = row(Ok(std::future::pending().boxed().shared()), Some("seems not to be logged in")).await;
        assert_eq!(begun.elapsed().as_secs(), CALL_TIMEOUT.as_secs());
        assert_eq!((row.available, row.version), (true, None));
        assert_eq!(row.problem.as_deref(), Some("its version is not known yet; try again in a few seconds"));
    }

    #[tokio::test]
    async fn the_problem_that_has_to_be_solved_first_is_shown() {
        let login = Some("seems not to be logged in");
        let shown = async |report, login| {
            let row = row(report, login).await;
            (row.available, row.problem)
        };
        assert_eq!(shown(finished(true, None), None).await, (true, None));
        assert_eq!(shown(finished(true, None), login).await, (true, Some("seems not to be logged in".to_owned())));
        assert_eq!(shown(finished(true, Some("old Node")), login).await, (true, Some("old Node".to_owned())));
        assert_eq!(shown(finished(false, Some("failed")), login).await, (false, Some("failed".to_owned())));
        assert_eq!(shown(Err("missing".to_owned()), login).await, (false, Some("missing".to_owned())));
    }

    /// Clients outside of this repository rely on this shape.
    #[tokio::test]
    async fn a_row_has_the_shape_of_the_contract() {
        let row = row(finished(true, None), None).await;
        assert_eq!(
            serde_json::json!(row),
            serde_json::json!({"name": "claude", "label": "Claude Code", "protocol": "claude", "available": true,
                "version": "2.1.325", "install": "npm install -g @anthropic-ai/claude-code",
                "modes": ["default", "acceptEdits", "plan", "auto"]})
        );
    }
}
