//! The agent sessions of another machine, over its gateway's HTTP API.

use bowline_client::remote::api::ApiRequest;
use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::{AgentList, ApprovalList, EventPage, NewSession};
use http::Method;

use super::super::{HistoryRange, Session};
use super::{RemoteHost, path, retry_if_too_many};
use crate::failure::{Code, Failure};
use crate::{args, send};

/// The most events of a page of history.
const PAGE: usize = 1000;

pub(super) fn start(host: &RemoteHost, verb: &args::Agent, prompt: Option<FirstPrompt>) -> anyhow::Result<Session> {
    // The server knows its home directory.
    let Some(cwd) = verb.cwd.clone().filter(|cwd| cwd.is_absolute() || cwd.starts_with("~")) else {
        let message = "with --server, --cwd is required: a directory of the server, by a path that begins with / or ~";
        return Err(Failure::new(Code::Usage, message, "use --cwd '~/project', with the quotes, for example").into());
    };
    let cwd = super::utf8(cwd.into_os_string())?;
    let body = NewSession::Agent(verb.request(cwd, prompt));
    let key = send::new_command_id()?;
    Ok(host.send_with_retry(&ApiRequest::new(Method::POST, "/v1/sessions").body(&body).key(&key))?)
}

pub(super) fn list(host: &RemoteHost) -> anyhow::Result<AgentList> {
    Ok(retry_if_too_many(|| host.gateway.send(&ApiRequest::get("/v1/agents")))?.json()?)
}

pub(super) fn approvals(host: &RemoteHost) -> anyhow::Result<ApprovalList> {
    Ok(retry_if_too_many(|| host.gateway.send(&ApiRequest::get("/v1/approvals")))?.json()?)
}

pub(super) fn history(host: &RemoteHost, session: &Session, range: HistoryRange) -> anyhow::Result<EventPage> {
    let bound = |name: &str, seq: Option<u64>| seq.map_or_else(String::new, |seq| format!("&{name}={seq}"));
    let query = format!("?limit={PAGE}{}{}", bound("before", range.before), bound("after", range.after));
    Ok(host.send_with_retry(&ApiRequest::get(path(session, &format!("/events{query}"))))?)
}
