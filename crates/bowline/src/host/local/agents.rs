//! The agent sessions of this machine: starting one, the agents that are installed, approvals and history.

use anyhow::Context;
use bowline_host::home::Home;
use bowline_host::launch::Launcher;
use bowline_host::meta::makers_of_this_session;
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::spec::{AgentSpec, BodySpec, Spec};
use bowline_host::start;
use bowline_host::transcript::{MAX_EVENTS, PageQuery, read_page};
use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::{AgentList, ApprovalList, EventPage, IfExists, WaitingApproval};
use bowline_proto::session::State;

use super::super::HistoryRange;
use crate::config::Config;
use crate::{args, new};

/// The caller of a command of this machine, as the journal names it.
pub(super) const CALLER: &str = "local";

pub(super) fn start(
    home: &Home,
    verb: &args::Agent,
    prompt: Option<FirstPrompt>,
    config: &Config,
) -> anyhow::Result<Entry> {
    let request = verb.request(String::new(), prompt);
    let agent = AgentSpec::new(request, &config.agent_table()?, || CALLER.to_owned())?;
    let spec = Spec {
        name: verb.name.clone(),
        cwd: new::directory(verb.cwd.clone())?,
        detached_ttl: 0,
        if_exists: IfExists::Fail,
        id: None,
        request: None,
        makers: makers_of_this_session(home),
        open_files: None,
        body: BodySpec::Agent(AgentSpec { env: new::environment(), ..agent }),
    };
    Ok(start::start(home, &Launcher::this_program(), spec, &config.retention())?.entry)
}

/// Looks for the agents' programs in the environment that sessions started from here get.
pub(super) fn list(home: &Home) -> anyhow::Result<AgentList> {
    let table = Config::load()?.agent_table()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(bowline_gateway::list_agents(&table, &new::environment(), home)))
}

/// What the agents of running sessions wait for, by session, oldest session first.
pub(super) fn approvals(home: &Home) -> Result<ApprovalList, RegistryError> {
    let is_running = |entry: &Entry| entry.is_local && entry.info.state == State::Running;
    let sessions = registry::list_files(home)?.into_iter().filter(is_running);
    let approvals = sessions.flat_map(|entry| {
        let session = entry.info.id;
        let approvals = entry.info.agent.map(|agent| agent.approvals).unwrap_or_default();
        approvals.into_iter().map(move |approval| WaitingApproval { session: session.clone(), approval })
    });
    Ok(ApprovalList { approvals: approvals.collect() })
}

pub(super) fn history(entry: &Entry, range: HistoryRange) -> anyhow::Result<EventPage> {
    let HistoryRange { before, after } = range;
    let page = read_page(&entry.dir, entry.is_local, PageQuery { before, after, limit: MAX_EVENTS });
    let page = page.with_context(|| format!("cannot read the journal of {}", entry.info.id))?;
    Ok(serde_json::from_str(&page)?)
}
