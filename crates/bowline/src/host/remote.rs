//! The sessions of another machine, over its gateway's HTTP API. An attach uses a WebSocket.

mod agents;

use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::{
    AgentList, ApprovalList, Checked, CommandAccepted, EventPage, NewCommand, NewSession, NewTerminal, Restart,
    SessionChange,
};
use bowline_proto::problem;
use std::cell::RefCell;
use std::ffi::OsString;
use std::time::Duration;

use bowline_client::post::Deliver;
use bowline_client::remote::api::ApiRequest;
use bowline_client::remote::{ApiError, Gateway, RemoteDialer};
use bowline_client::transport::Dialer;
use bowline_proto::backoff::Backoff;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::{SessionInfo, State};
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{HistoryRange, Host, Log, LogEnd, LogRead, PruneOutcome, Session};
use crate::config::Config;
use crate::failure::{Code, Failure, LIST_SESSIONS};
use crate::{args, new, send, units};

/// Retries of idempotent calls. Long enough for a gateway to restart.
const RETRY: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(2), tries: Some(4) };
/// How long a session may take to end after its grace period, including the gateway's response.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to check a followed log for more output.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Another machine, reached through its gateway.
#[derive(Clone)]
pub(super) struct RemoteHost {
    gateway: Gateway,
}

impl RemoteHost {
    pub(super) fn new(gateway: Gateway) -> RemoteHost {
        RemoteHost { gateway }
    }

    /// Sends an idempotent request, with retries.
    fn send_with_retry<T: DeserializeOwned>(&self, request: &ApiRequest) -> Result<T, ApiError> {
        retry(RETRY, || self.gateway.send(request)?.json())
    }
}

/// A list of sessions. One that cannot be read does not hide the others.
#[derive(Deserialize)]
struct List {
    sessions: Vec<Checked<SessionInfo>>,
}

impl List {
    /// The sessions that can be read, and the number of the others.
    fn readable(self) -> (Vec<SessionInfo>, usize) {
        let all = self.sessions.len();
        let sessions: Vec<_> = self.sessions.into_iter().filter_map(|session| session.get().ok()).collect();
        let unreadable = all - sessions.len();
        (sessions, unreadable)
    }
}

/// Repeats an idempotent request until it succeeds, fails permanently, or `backoff` gives up.
fn retry<T>(backoff: Backoff, send: impl Fn() -> Result<T, ApiError>) -> Result<T, ApiError> {
    let mut tries = 0;
    loop {
        let result = send();
        let may_succeed_later = result.as_ref().is_err_and(ApiError::is_transient);
        match backoff.delay(tries, 0.0).filter(|_| may_succeed_later) {
            Some(delay) => std::thread::sleep(delay),
            None => return result,
        }
        tries += 1;
    }
}

/// Like [`retry`], but returns at once when the session's input queue is full; the caller decides how long to wait.
fn retry_unless_full<T>(send: impl Fn() -> Result<T, ApiError>) -> Result<T, ApiError> {
    let is_full = |error: &ApiError| error.code() == Some(problem::Code::TooMany);
    retry(RETRY, || match send() {
        Err(error) if is_full(&error) => Ok(Err(error)),
        result => result.map(Ok),
    })?
}

/// Repeats a request while the gateway gets too many with this token; any other error is returned at once.
fn retry_if_too_many<T>(send: impl Fn() -> Result<T, ApiError>) -> Result<T, ApiError> {
    retry(RETRY, || match send() {
        Err(error) if error.code() != Some(problem::Code::TooMany) => Ok(Err(error)),
        result => result.map(Ok),
    })?
}

fn path(session: &Session, rest: &str) -> String {
    format!("/v1/sessions/{}{rest}", session.info.id)
}

impl Host for RemoteHost {
    fn share(&self) -> Box<dyn Host> {
        Box::new(self.clone())
    }

    fn server(&self) -> Option<String> {
        Some(self.gateway.address().to_string())
    }

    fn list(&self) -> anyhow::Result<Vec<Session>> {
        let list: List = retry_if_too_many(|| self.gateway.send(&ApiRequest::get("/v1/sessions")))?.json()?;
        let (sessions, unreadable) = list.readable();
        match unreadable {
            0 => {}
            1 => eprintln!("bowline: left out a session that this version cannot read"),
            _ => eprintln!("bowline: left out {unreadable} sessions that this version cannot read"),
        }
        Ok(sessions.into_iter().map(|info| Session { info }).collect())
    }

    fn find_exact(&self, key: &str) -> anyhow::Result<Session> {
        // Every id is a valid name. Anything else matches no session, and must not get into the URL path.
        if key.parse::<SessionName>().is_err() {
            return Err(Failure::new(Code::NotFound, format!("no session is called {key:?}"), LIST_SESSIONS).into());
        }
        let request = ApiRequest::get(format!("/v1/sessions/{key}"));
        Ok(retry_if_too_many(|| self.gateway.send(&request))?.json()?)
    }

    fn start(&self, verb: args::New, _config: &Config) -> anyhow::Result<Session> {
        let key = send::new_command_id()?;
        Ok(self.send_with_retry(&ApiRequest::new(Method::POST, "/v1/sessions").body(&new_session(verb)?).key(&key))?)
    }

    fn restart(&self, session: &Session) -> anyhow::Result<Session> {
        // The epoch makes a retry harmless: once the session has restarted, its epoch differs and it is left alone.
        let body = Restart { epoch: Some(session.info.epoch.clone()) };
        Ok(self.send_with_retry(&ApiRequest::new(Method::POST, path(session, "/restart")).body(&body))?)
    }

    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()> {
        let request = ApiRequest::new(Method::DELETE, path(session, &end_query(grace, keep)))
            .within(grace.unwrap_or_default() + END_TIMEOUT);
        match retry(RETRY, || self.gateway.send(&request)) {
            // Already removed: by an earlier try whose response was lost, or by another client.
            Err(error) if matches!(error.code(), Some(problem::Code::UnknownSession | problem::Code::SessionGone)) => {
                Ok(())
            }
            ended => Ok(ended.map(drop)?),
        }
    }

    fn forget_damaged(&self, key: &str, error: anyhow::Error) -> anyhow::Result<SessionId> {
        let code = error.downcast_ref::<ApiError>().and_then(ApiError::code);
        // The gateway reports a damaged session as unreachable. It checks again before it removes one.
        let (Some(problem::Code::Unreachable), Ok(id)) = (code, key.parse::<SessionId>()) else { return Err(error) };
        self.gateway.send(&ApiRequest::new(Method::DELETE, format!("/v1/sessions/{id}")).within(END_TIMEOUT))?;
        Ok(id)
    }

    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()> {
        let request = ApiRequest::new(Method::PATCH, path(session, ""))
            .body(&SessionChange { name: Some(name.to_string()), ..SessionChange::default() });
        Ok(retry(RETRY, || self.gateway.send(&request)).map(drop)?)
    }

    fn command(&self, session: &Session, id: &str, command: &Value) -> anyhow::Result<CommandAccepted> {
        let body = NewCommand { id: id.to_owned(), command: command.clone() };
        let request = ApiRequest::new(Method::POST, path(session, "/commands")).body(&body);
        Ok(retry_unless_full(|| self.gateway.send(&request)?.json())?)
    }

    fn screen(&self, session: &Session, format: ScreenFormat, scrollback: u32) -> anyhow::Result<String> {
        let format = match format {
            ScreenFormat::Text => "text",
            ScreenFormat::Ansi => "ansi",
            ScreenFormat::Json => "json",
        };
        let request = ApiRequest::get(path(session, &format!("/screen?format={format}&scrollback={scrollback}")));
        let screen = retry_if_too_many(|| self.gateway.send(&request))?.bytes()?;
        Ok(String::from_utf8_lossy(&screen).into_owned())
    }

    fn log(&self, session: &Session, config: &Config) -> anyhow::Result<Box<dyn Log>> {
        Ok(Box::new(RemoteLog { gateway: self.gateway.clone(), path: path(session, ""), backoff: config.backoff() }))
    }

    fn start_agent(
        &self,
        verb: &args::Agent,
        prompt: Option<FirstPrompt>,
        _config: &Config,
    ) -> anyhow::Result<Session> {
        agents::start(self, verb, prompt)
    }

    fn agents(&self) -> anyhow::Result<AgentList> {
        agents::list(self)
    }

    fn approvals(&self) -> anyhow::Result<ApprovalList> {
        agents::approvals(self)
    }

    fn delivery(&self) -> Box<dyn Deliver> {
        Box::new(self.gateway.clone())
    }

    fn history(&self, session: &Session, range: HistoryRange) -> anyhow::Result<EventPage> {
        agents::history(self, session, range)
    }

    fn dial(&self, session: &Session) -> anyhow::Result<Box<dyn Dialer>> {
        Ok(Box::new(RemoteDialer::new(self.gateway.clone(), &session.info.id)))
    }

    fn prune(&self, _verb: &args::Prune, _config: &Config) -> anyhow::Result<PruneOutcome> {
        Err(Failure::local_only("prune").into())
    }
}

/// Builds the request for a new session. The server supplies the directory and environment that are not given.
fn new_session(verb: args::New) -> anyhow::Result<NewSession> {
    let size = verb.size.or_else(new::terminal_size).unwrap_or_default();
    Ok(NewSession::Terminal(NewTerminal {
        name: verb.name.map(|name| name.to_string()),
        argv: verb.argv.into_iter().map(utf8).collect::<Result<_, _>>()?,
        cwd: verb.cwd.map(|cwd| utf8(cwd.into_os_string())).transpose()?,
        env: verb.env.into_iter().collect(),
        size: Some(Checked::Good(size)),
        if_exists: verb.if_exists.into(),
        detached_ttl: verb.ttl.map(units::round_up_to_seconds).unwrap_or_default(),
        log_size: verb.log_size,
        scrollback: verb.scrollback,
    }))
}

/// An argument or path as text, which JSON needs.
fn utf8(text: OsString) -> Result<String, Failure> {
    text.into_string().map_err(|bad| {
        let message = format!("{} is not UTF-8; with --server, arguments and paths must be UTF-8", bad.display());
        Failure::new(Code::Usage, message, "run bowline on that machine, without --server")
    })
}

/// The query string of the request that ends a session.
fn end_query(grace: Option<Duration>, keep: bool) -> String {
    let grace = grace.map_or_else(String::new, |grace| format!("&grace={}", units::round_up_to_seconds(grace)));
    format!("?keep={keep}{grace}")
}

/// A log that is read in ranges. Each range has explicit offsets, so a retry neither loses nor repeats bytes.
struct RemoteLog {
    gateway: Gateway,
    path: String,
    backoff: Backoff,
}

impl RemoteLog {
    /// Reads bytes from `from` until `buf` is full or the log ends; returns how many.
    fn read_range(&self, from: u64, buf: &mut [u8]) -> Result<usize, ApiError> {
        let request = ApiRequest::get(format!("{}/log?from={from}&to={}", self.path, from + buf.len() as u64));
        let buf = RefCell::new(buf);
        retry(self.backoff, || self.gateway.send(&request)?.read(&mut buf.borrow_mut()))
    }
}

impl Log for RemoteLog {
    fn start(&self) -> anyhow::Result<u64> {
        if self.end()?.offset == 0 {
            return Ok(0);
        }
        match self.read_range(0, &mut [0]) {
            Err(error) => Ok(oldest_kept(&error).ok_or(error)?),
            Ok(_) => Ok(0),
        }
    }

    fn end(&self) -> anyhow::Result<LogEnd> {
        let request = ApiRequest::get(self.path.as_str());
        let session: Session = retry(self.backoff, || self.gateway.send(&request)?.json())?;
        Ok(LogEnd { offset: session.info.offset, is_final: session.info.state != State::Running })
    }

    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<LogRead> {
        match self.read_range(from, buf) {
            Ok(read) => Ok(LogRead::Bytes(read)),
            Err(error) => match oldest_kept(&error) {
                Some(start) if start > from => Ok(LogRead::Trimmed(start)),
                // The session reports its end a moment before the bytes are in the log.
                Some(_) => Ok(LogRead::Bytes(0)),
                None => Err(error.into()),
            },
        }
    }

    fn wait(&self) -> anyhow::Result<()> {
        std::thread::sleep(POLL_INTERVAL);
        Ok(())
    }
}

/// The offset of the oldest byte kept, if the error is that the requested range is not.
fn oldest_kept(error: &ApiError) -> Option<u64> {
    match error {
        ApiError::Refused { oldest, .. } => *oldest,
        ApiError::Unreachable { .. }
        | ApiError::Untrusted { .. }
        | ApiError::NotBowline { .. }
        | ApiError::TooLong { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn r52_a_session_that_cannot_be_read_does_not_hide_the_others() {
        let session = json!({"id": "k3v9x0q2m7aa", "name": null, "kind": "terminal", "state": "lost", "created": "",
            "cwd": "/", "epoch": "9f3c61d2", "version": "0.1.0", "argv": ["cat"], "size": {"cols": 80, "rows": 24}});
        let mut odd = session.clone();
        odd["offset"] = json!(-1);
        let list: List = serde_json::from_value(json!({"sessions": [odd, 7, session]})).unwrap();
        let (sessions, unreadable) = list.readable();
        assert_eq!((sessions.len(), unreadable), (1, 2));
        assert_eq!(sessions[0].command_line(), "cat");
    }

    #[test]
    fn a_grace_below_a_second_is_rounded_up() {
        let query = |millis| end_query(Some(Duration::from_millis(millis)), false);
        assert_eq!(
            [query(0), query(900), query(1500)],
            ["?keep=false&grace=0", "?keep=false&grace=1", "?keep=false&grace=2"]
        );
        assert_eq!(end_query(None, true), "?keep=true");
    }
}
