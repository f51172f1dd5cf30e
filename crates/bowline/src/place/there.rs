//! The sessions behind a gateway, over HTTP; attaching goes over a WebSocket.

use bowline_proto::api::{
    Checked, CommandAccepted, NewCommand, NewSession, NewTerminal, Restart, SessionChange, SessionList,
};
use bowline_proto::problem;
use std::cell::RefCell;
use std::time::Duration;

use bowline_client::remote::call::Call;
use bowline_client::remote::{CallError, Gateway, Remote};
use bowline_client::transport::Dial;
use bowline_proto::backoff::Backoff;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::State;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{End, Log, Piece, Place, Pruned, Session};
use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::{args, new, send, units};

/// For what is to be done once, and can be asked for again: a gateway that restarts is back by then.
const AGAIN: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(2), tries: Some(4) };
/// How long after the grace a session may take to be gone, and the gateway to say so.
const END_WITHIN: Duration = Duration::from_secs(30);
/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Another machine, by its gateway.
pub(super) struct There {
    gateway: Gateway,
}

impl There {
    pub(super) fn new(gateway: Gateway) -> There {
        There { gateway }
    }

    /// Has something done that may be asked for twice.
    fn do_once<T: DeserializeOwned>(&self, call: &Call) -> Result<T, CallError> {
        patiently(AGAIN, || self.gateway.call(call)?.json())
    }
}

/// Asks until there is a whole answer, or patience ends. Only for what may be asked twice.
fn patiently<T>(backoff: Backoff, ask: impl Fn() -> Result<T, CallError>) -> Result<T, CallError> {
    let mut tries = 0;
    loop {
        let answer = ask();
        let again = answer.as_ref().is_err_and(CallError::is_passing);
        match backoff.delay(tries, 0.0).filter(|_| again) {
            Some(delay) => std::thread::sleep(delay),
            None => return answer,
        }
        tries += 1;
    }
}

/// Like [`patiently`], but for a session that is full: how long to wait for that is the caller's to say.
fn patiently_unless_full<T>(ask: impl Fn() -> Result<T, CallError>) -> Result<T, CallError> {
    let full = |error: &CallError| error.code() == Some(problem::Code::TooMany);
    patiently(AGAIN, || match ask() {
        Err(error) if full(&error) => Ok(Err(error)),
        answer => answer.map(Ok),
    })?
}

fn path(session: &Session, rest: &str) -> String {
    format!("/v1/sessions/{}{rest}", session.info.id)
}

impl Place for There {
    fn list(&self) -> anyhow::Result<Vec<Session>> {
        Ok(self
            .gateway
            .call(&Call::get("/v1/sessions"))?
            .json::<SessionList>()?
            .sessions
            .into_iter()
            .map(|info| Session { info })
            .collect())
    }

    fn find_exact(&self, key: &str) -> anyhow::Result<Session> {
        // Ids look like names. What is neither has no place in a path, and no session has it.
        if key.parse::<SessionName>().is_err() {
            let hint = "`bowline ls` lists the sessions there are";
            return Err(Failure::new(Code::Unknown, format!("no session is called {key:?}"), hint).into());
        }
        Ok(self.gateway.call(&Call::get(format!("/v1/sessions/{key}")))?.json()?)
    }

    fn start(&self, verb: args::New, _config: &Config) -> anyhow::Result<Session> {
        let key = send::fresh_id()?;
        Ok(self.do_once(&Call::new(Method::POST, "/v1/sessions").body(&new_session(verb)?).key(&key))?)
    }

    fn restart(&self, session: &Session) -> anyhow::Result<Session> {
        // The epoch makes a second try harmless: it finds another one, and gets the session as it is.
        let body = Restart { epoch: Some(session.info.epoch.clone()) };
        Ok(self.do_once(&Call::new(Method::POST, path(session, "/restart")).body(&body))?)
    }

    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()> {
        let call = Call::new(Method::DELETE, path(session, &how_to_end(grace, keep)))
            .within(grace.unwrap_or_default() + END_WITHIN);
        match patiently(AGAIN, || self.gateway.call(&call)) {
            // Gone since it was found: by an earlier try whose answer was lost, or by somebody else.
            Err(error) if matches!(error.code(), Some(problem::Code::UnknownSession | problem::Code::SessionGone)) => {
                Ok(())
            }
            ended => Ok(ended.map(drop)?),
        }
    }

    fn forget_damaged(&self, key: &str, why: anyhow::Error) -> anyhow::Result<SessionId> {
        let refused = why.downcast_ref::<CallError>().and_then(CallError::code);
        // A server says so of whatever it cannot read, and knows better when it is told to forget it.
        let (Some(problem::Code::Unreachable), Ok(id)) = (refused, key.parse::<SessionId>()) else { return Err(why) };
        self.gateway.call(&Call::new(Method::DELETE, format!("/v1/sessions/{id}")).within(END_WITHIN))?;
        Ok(id)
    }

    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()> {
        let call = Call::new(Method::PATCH, path(session, ""))
            .body(&SessionChange { name: Some(name.to_string()), ..SessionChange::default() });
        Ok(patiently(AGAIN, || self.gateway.call(&call)).map(drop)?)
    }

    fn command(&self, session: &Session, id: &str, command: &Value) -> anyhow::Result<CommandAccepted> {
        let body = NewCommand { id: id.to_owned(), command: command.clone() };
        let call = Call::new(Method::POST, path(session, "/commands")).body(&body);
        Ok(patiently_unless_full(|| self.gateway.call(&call)?.json())?)
    }

    fn screen(&self, session: &Session, format: ScreenFormat, scrollback: u32) -> anyhow::Result<String> {
        let format = match format {
            ScreenFormat::Text => "text",
            ScreenFormat::Ansi => "ansi",
            ScreenFormat::Json => "json",
        };
        let call = Call::get(path(session, &format!("/screen?format={format}&scrollback={scrollback}")));
        Ok(String::from_utf8_lossy(&self.gateway.call(&call)?.bytes()?).into_owned())
    }

    fn log(&self, session: &Session, config: &Config) -> anyhow::Result<Box<dyn Log>> {
        Ok(Box::new(LogThere { gateway: self.gateway.clone(), path: path(session, ""), backoff: config.backoff() }))
    }

    fn dial(&self, session: &Session) -> anyhow::Result<Box<dyn Dial>> {
        Ok(Box::new(Remote::new(self.gateway.clone(), &session.info.id)))
    }

    fn prune(&self, _verb: &args::Prune, _config: &Config) -> anyhow::Result<Pruned> {
        let message = "a server forgets ended sessions by its own limits, which only its owner sets";
        let hint = "`bowline kill NAME` forgets one; `bowline prune` on that machine forgets the old ones";
        Err(Failure::new(Code::Usage, message, hint).into())
    }
}

/// What a new session shall be. Its directory and environment are the server's, but for what is given.
fn new_session(verb: args::New) -> anyhow::Result<NewSession> {
    let text = |text: std::ffi::OsString| {
        text.into_string().map_err(|bad| {
            let message = format!("{} is not UTF-8, which is all that a server takes", bad.display());
            Failure::new(Code::Usage, message, "run bowline on that machine")
        })
    };
    let size = verb.size.or_else(new::terminal_size).unwrap_or_default();
    Ok(NewSession::Terminal(NewTerminal {
        name: verb.name.map(|name| name.to_string()),
        argv: verb.argv.into_iter().map(text).collect::<Result<_, _>>()?,
        cwd: verb.cwd.map(|cwd| text(cwd.into_os_string())).transpose()?,
        env: verb.env.into_iter().collect(),
        size: Some(Checked::Good(size)),
        if_exists: verb.if_exists.into(),
        detached_ttl: verb.ttl.map(units::whole_seconds).unwrap_or_default(),
        log_size: verb.log_size,
        scrollback: verb.scrollback,
    }))
}

/// The query of a session's end.
fn how_to_end(grace: Option<Duration>, keep: bool) -> String {
    let grace = grace.map_or_else(String::new, |grace| format!("&grace={}", units::whole_seconds(grace)));
    format!("?keep={keep}{grace}")
}

/// A log that is read in ranges. An offset names each byte, so that no failure on the way loses or repeats one.
struct LogThere {
    gateway: Gateway,
    path: String,
    backoff: Backoff,
}

impl LogThere {
    /// Bytes from `from`, as many as `buf` takes, or as there are.
    fn range(&self, from: u64, buf: &mut [u8]) -> Result<usize, CallError> {
        let call = Call::get(format!("{}/log?from={from}&to={}", self.path, from + buf.len() as u64));
        let buf = RefCell::new(buf);
        patiently(self.backoff, || self.gateway.call(&call)?.read(&mut buf.borrow_mut()))
    }
}

impl Log for LogThere {
    fn start(&self) -> anyhow::Result<u64> {
        if self.end()?.offset == 0 {
            return Ok(0);
        }
        match self.range(0, &mut [0]) {
            Err(error) => Ok(kept_from(&error).ok_or(error)?),
            Ok(_) => Ok(0),
        }
    }

    fn end(&self) -> anyhow::Result<End> {
        let call = Call::get(self.path.as_str());
        let session: Session = patiently(self.backoff, || self.gateway.call(&call)?.json())?;
        Ok(End { offset: session.info.offset, is_last: session.info.state != State::Running })
    }

    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<Piece> {
        match self.range(from, buf) {
            Ok(read) => Ok(Piece::Bytes(read)),
            Err(error) => match kept_from(&error) {
                Some(start) if start > from => Ok(Piece::Trimmed(start)),
                // Told of a moment before it is written.
                Some(_) => Ok(Piece::Bytes(0)),
                None => Err(error.into()),
            },
        }
    }

    fn wait(&self) -> anyhow::Result<()> {
        std::thread::sleep(LOOK);
        Ok(())
    }
}

/// The oldest byte that is kept, where a range was refused.
fn kept_from(error: &CallError) -> Option<u64> {
    match error {
        CallError::Refused { oldest, .. } => *oldest,
        CallError::Unreachable { .. } | CallError::Untrusted { .. } | CallError::NotOurs { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_second_is_some_grace() {
        let query = |millis| how_to_end(Some(Duration::from_millis(millis)), false);
        assert_eq!(
            [query(0), query(900), query(1500)],
            ["?keep=false&grace=0", "?keep=false&grace=1", "?keep=false&grace=2"]
        );
        assert_eq!(how_to_end(None, true), "?keep=true");
    }
}
