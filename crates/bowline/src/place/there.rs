//! The sessions behind a gateway, over HTTP; attaching goes over a WebSocket.

use std::io::{self, Read};
use std::time::Duration;

use bowline_client::remote::call::Call;
use bowline_client::remote::{Answer, CallError, Gateway, Remote};
use bowline_client::transport::Dial;
use bowline_proto::backoff::Backoff;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::SessionName;
use bowline_proto::message::State;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Accepted, End, Log, Piece, Place, Pruned, Session};
use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::{args, new, send};

/// For what is to be done once, and can be asked for again: a gateway that restarts is back by then.
const AGAIN: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(2), tries: Some(4) };
/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Another machine, by its gateway.
pub(super) struct There {
    gateway: Gateway,
}

#[derive(Deserialize)]
struct List {
    sessions: Vec<Session>,
}

impl There {
    pub(super) fn new(gateway: Gateway) -> There {
        There { gateway }
    }
}

/// Asks until there is an answer, or patience ends. Only for what may be asked twice.
fn patiently(gateway: &Gateway, call: &Call, backoff: Backoff) -> Result<Answer, CallError> {
    let mut tries = 0;
    loop {
        let answer = gateway.call(call);
        let again = answer.as_ref().is_err_and(CallError::is_passing);
        match backoff.delay(tries, 0.0).filter(|_| again) {
            Some(delay) => std::thread::sleep(delay),
            None => return answer,
        }
        tries += 1;
    }
}

fn path(session: &Session, rest: &str) -> String {
    format!("/v1/sessions/{}{rest}", session.info.id)
}

impl Place for There {
    fn list(&self) -> anyhow::Result<Vec<Session>> {
        Ok(self.gateway.call(&Call::get("/v1/sessions"))?.json::<List>()?.sessions)
    }

    fn find(&self, key: &str) -> anyhow::Result<Session> {
        // Ids look like names. What is neither has no place in a path, and no session has it.
        if key.parse::<SessionName>().is_err() {
            let hint = "`bowline ls` lists the sessions there are";
            return Err(Failure::new(Code::Unknown, format!("no session is called {key:?}"), hint).into());
        }
        Ok(self.gateway.call(&Call::get(format!("/v1/sessions/{key}")))?.json()?)
    }

    fn start(&self, verb: args::New, _config: &Config) -> anyhow::Result<Session> {
        let key = send::fresh_id()?;
        let call = Call::new(Method::POST, "/v1/sessions").body(order(verb)?).key(&key);
        Ok(patiently(&self.gateway, &call, AGAIN)?.json()?)
    }

    fn restart(&self, session: &Session) -> anyhow::Result<Session> {
        // The epoch makes a second try harmless: it finds another one, and gets the session as it is.
        let call = Call::new(Method::POST, path(session, "/restart")).body(json!({"epoch": session.info.epoch}));
        Ok(patiently(&self.gateway, &call, AGAIN)?.json()?)
    }

    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()> {
        if grace.is_some() {
            let hint = "leave --grace out, or run bowline on that machine";
            return Err(Failure::new(Code::Usage, "a server ends sessions with a grace of its own", hint).into());
        }
        let call = Call::new(Method::DELETE, path(session, if keep { "?keep=true" } else { "" }));
        match patiently(&self.gateway, &call, AGAIN) {
            // Gone since it was found: by an earlier try whose answer was lost, or by somebody else.
            Err(error) if matches!(error.code(), Some("unknown_session" | "session_gone")) => Ok(()),
            ended => Ok(ended.map(drop)?),
        }
    }

    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()> {
        let call = Call::new(Method::PATCH, path(session, "")).body(json!({"name": name}));
        Ok(patiently(&self.gateway, &call, AGAIN).map(drop)?)
    }

    fn command(&self, session: &Session, command: &Value) -> anyhow::Result<Accepted> {
        // One id for all tries: a second one after a lost answer types nothing twice.
        let body = json!({"id": send::fresh_id()?, "command": command});
        let call = Call::new(Method::POST, path(session, "/commands")).body(body);
        Ok(patiently(&self.gateway, &call, AGAIN)?.json()?)
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
fn order(verb: args::New) -> anyhow::Result<Value> {
    let text = |text: std::ffi::OsString| {
        text.into_string().map_err(|bad| {
            let message = format!("{} is not UTF-8, which is all that a server takes", bad.display());
            Failure::new(Code::Usage, message, "run bowline on that machine")
        })
    };
    if verb.log_size.is_some() || verb.scrollback.is_some() {
        let message = "a server keeps as much output and scrollback as its own configuration says";
        return Err(Failure::new(Code::Usage, message, "leave --log-size and --scrollback out").into());
    }
    let mut order = Map::new();
    let mut put = |name: &str, value: Value| drop(order.insert(name.to_owned(), value));
    put("kind", json!("terminal"));
    put("size", json!(verb.size.or_else(new::terminal_size).unwrap_or_default()));
    put("if_exists", json!(bowline_session::start::IfExists::from(verb.if_exists)));
    if let Some(name) = verb.name {
        put("name", json!(name));
    }
    if !verb.argv.is_empty() {
        put("argv", json!(verb.argv.into_iter().map(text).collect::<Result<Vec<_>, _>>()?));
    }
    if let Some(cwd) = verb.cwd {
        put("cwd", json!(text(cwd.into_os_string())?));
    }
    if !verb.env.is_empty() {
        put("env", verb.env.into_iter().map(|(name, value)| (name, json!(value))).collect::<Map<_, _>>().into());
    }
    if let Some(ttl) = verb.ttl {
        put("detached_ttl", json!(ttl.as_secs()));
    }
    Ok(order.into())
}

/// A log that is read in ranges. An offset names each byte, so that no failure on the way loses or repeats one.
struct LogThere {
    gateway: Gateway,
    path: String,
    backoff: Backoff,
}

impl LogThere {
    fn range(&self, from: u64, to: u64) -> Result<Answer, CallError> {
        patiently(&self.gateway, &Call::get(format!("{}/log?from={from}&to={to}", self.path)), self.backoff)
    }
}

impl Log for LogThere {
    fn start(&self) -> anyhow::Result<u64> {
        if self.end()?.offset == 0 {
            return Ok(0);
        }
        match self.range(0, 1) {
            Err(error) => Ok(kept_from(&error).ok_or(error)?),
            Ok(_) => Ok(0),
        }
    }

    fn end(&self) -> anyhow::Result<End> {
        let session: Session = patiently(&self.gateway, &Call::get(self.path.as_str()), self.backoff)?.json()?;
        Ok(End { offset: session.info.offset, is_last: session.info.state != State::Running })
    }

    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<Piece> {
        let answer = match self.range(from, from + buf.len() as u64) {
            Ok(answer) => answer,
            Err(error) => match kept_from(&error) {
                Some(start) if start > from => return Ok(Piece::Trimmed(start)),
                // Told of a moment before it is written.
                Some(_) => return Ok(Piece::Bytes(0)),
                None => return Err(error.into()),
            },
        };
        let (mut body, mut read) = (answer.reader(), 0);
        while read < buf.len() {
            match body.read(&mut buf[read..]) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What came before the cut counts; the rest is asked for again.
                Err(_) if read > 0 => break,
                Err(error) => {
                    let address = self.gateway.address().to_string();
                    return Err(CallError::Unreachable { address, why: error.to_string() }.into());
                }
            }
        }
        Ok(Piece::Bytes(read))
    }

    fn wait(&self) -> anyhow::Result<()> {
        std::thread::sleep(LOOK);
        Ok(())
    }
}

/// The oldest byte that is kept, where a range was refused: `Content-Range: bytes START-LAST/END`.
fn kept_from(error: &CallError) -> Option<u64> {
    let CallError::Refused { range: Some(range), .. } = error else { return None };
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
