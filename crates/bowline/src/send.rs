//! `bowline send`: types into a session, signals its program or prompts its agent, without attaching.

use bowline_proto::api::CommandAccepted;
use bowline_proto::message::TerminalCommand;
use bowline_proto::problem;
use std::io::Read;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bowline_proto::backoff::Backoff;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::ClientId;
use bowline_proto::session::State;
use serde_json::{Value, json};

use crate::failure::{self, Code, Failure};
use crate::host::{Host, Session};
use crate::keys::Key;
use crate::{agent_command, args, attach, ls, prompts, units};

/// The most bytes of text in one command. Even if JSON escapes make it six times as long, it fits a frame and a request
/// body. A session accepts a piece while at most three others are queued.
const PIECE: usize = 64 << 10;
/// When to send a piece again that did not fit into the session's queue.
const RETRY: Backoff = Backoff { base: Duration::from_millis(10), cap: Duration::from_secs(1), tries: None };

pub(crate) fn run(verb: &args::Send, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let session = host.find(&verb.session)?;
    let is_agent = session.info.agent.is_some();
    if !is_agent {
        attach::require_terminal_session(&session)?;
    }
    if session.info.state != State::Running {
        return Err(not_running(&session));
    }
    if is_agent {
        return send_prompt(verb, host, &session);
    }
    let accepted = match &verb.signal {
        Some(signal) => {
            host.command(&session, &new_command_id()?, &json!(TerminalCommand::Signal { name: signal.clone() }))?
        }
        None => {
            let keys = keys(verb, host, &session);
            let mut input = InputSender { host, session: &session, wait: verb.wait, typed: 0 };
            match verb.text.as_slice() {
                [dash] if dash == "-" => input.send(std::io::stdin().lock().chain(keys.as_bytes())),
                words => input.send((words.join(" ") + &keys).as_bytes()),
            }?
        }
    };
    if verb.json {
        println!("{}", serde_json::to_string(&accepted)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn not_running(session: &Session) -> anyhow::Error {
    let label = session.label();
    let message = format!("{label} is not running ({})", ls::describe_state(&session.info));
    Failure::new(Code::Other, message, format!("`bowline restart {label}` starts it again")).into()
}

/// Sends a prompt to an agent session.
fn send_prompt(verb: &args::Send, host: &dyn Host, session: &Session) -> anyhow::Result<ExitCode> {
    let label = session.label();
    let refused = match verb {
        args::Send { signal: Some(_), .. } => {
            Some(("--signal", "Ctrl-C in `bowline attach` stops a run; `bowline kill` ends the session"))
        }
        args::Send { keys, .. } if !keys.is_empty() => Some(("--key", "a prompt is text; it is sent as a whole")),
        args::Send { enter: true, .. } => Some(("--enter", "a prompt is sent as a whole; leave --enter out")),
        _ => None,
    };
    if let Some((flag, hint)) = refused {
        return Err(
            Failure::new(Code::Usage, format!("{label} is an agent session, which takes no {flag}"), hint).into()
        );
    }
    let command = prompts::command(&prompts::text(&verb.text)?)?;
    let accepted = agent_command::send(host, session, command, verb.wait).map_err(|error| {
        match failure::problem_code(&error) {
            // It ended meanwhile.
            Some(problem::Code::SessionGone) => {
                not_running(&host.find_exact(session.info.id.as_str()).unwrap_or(session.clone()))
            }
            _ => error,
        }
    })?;
    if verb.json {
        println!("{}", serde_json::to_string(&accepted)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a random id for a command or a request that must take effect once.
pub(crate) fn new_command_id() -> std::io::Result<String> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(ClientId::from_random(random).to_string())
}

/// The input for the keys that are pressed after the text.
fn keys(verb: &args::Send, host: &dyn Host, session: &Session) -> String {
    let is_cursor = |key: &Key| matches!(key, Key::Cursor(_));
    let application_cursor = verb.keys.iter().any(is_cursor) && has_application_cursor(host, session);
    let enter = verb.enter.then_some("\r");
    verb.keys.iter().map(|key| key.encode(application_cursor)).chain(enter.map(str::to_owned)).collect()
}

/// Whether the program has set application cursor mode. False if the screen cannot be read.
fn has_application_cursor(host: &dyn Host, session: &Session) -> bool {
    let screen = host.screen(session, ScreenFormat::Json, 0).ok();
    let screen = screen.and_then(|screen| serde_json::from_str::<Value>(&screen).ok());
    screen.is_some_and(|screen| screen["modes"]["app_cursor"] == true)
}

/// Sends text of any length in pieces, each once and in order.
struct InputSender<'a> {
    host: &'a dyn Host,
    session: &'a Session,
    /// How long to wait for room in the session's queue.
    wait: Duration,
    /// Bytes that the session has accepted.
    typed: u64,
}

impl InputSender<'_> {
    /// Sends `text` to its end; returns the reply to the last piece.
    fn send(&mut self, mut text: impl Read) -> anyhow::Result<CommandAccepted> {
        let (mut piece, mut last) = (Vec::with_capacity(PIECE), None);
        loop {
            let room = PIECE - piece.len();
            let ended = (&mut text).take(room as u64).read_to_end(&mut piece)? < room;
            if let Some(accepted) = last.take_if(|_| piece.is_empty()) {
                return Ok(accepted);
            }
            let whole = self.whole_characters(&piece, ended)?;
            let accepted = self.send_piece(whole)?;
            if ended {
                return Ok(accepted);
            }
            last = Some(accepted);
            self.typed += whole.len() as u64;
            let used = whole.len();
            piece.drain(..used);
        }
    }

    /// The complete characters of a piece. The rest must be the start of another one; it is an error if the text has ended.
    fn whole_characters<'p>(&self, piece: &'p [u8], ended: bool) -> anyhow::Result<&'p str> {
        let bad = match std::str::from_utf8(piece) {
            Ok(text) => return Ok(text),
            Err(bad) => bad,
        };
        let (good, _) = piece.split_at(bad.valid_up_to());
        if bad.error_len().is_none() && !ended {
            return Ok(std::str::from_utf8(good)?);
        }
        let at = self.typed + good.len() as u64;
        let message = format!("standard input is not UTF-8 at byte {at}; {}", self.progress());
        Err(Failure::new(Code::Other, message, "only text can be typed; `iconv -t UTF-8` converts other encodings")
            .into())
    }

    /// Sends a piece, and waits until the session's queue has room for it.
    fn send_piece(&self, text: &str) -> anyhow::Result<CommandAccepted> {
        // All tries have the same id, so the piece is typed once even if a reply is lost.
        let (id, command) = (new_command_id()?, json!(TerminalCommand::Input { text: text.to_owned() }));
        let (since, mut tries) = (Instant::now(), 0);
        loop {
            match self.host.command(self.session, &id, &command) {
                Err(error) if failure::problem_code(&error) == Some(problem::Code::TooMany) => {
                    if since.elapsed() >= self.wait {
                        return Err(self.timed_out(&error));
                    }
                    std::thread::sleep(RETRY.delay(tries, 0.0).unwrap_or(RETRY.cap));
                    tries += 1;
                }
                Err(error) if self.typed > 0 => return Err(error.context(self.progress())),
                result => return result,
            }
        }
    }

    fn timed_out(&self, error: &anyhow::Error) -> anyhow::Error {
        let (label, wait) = (self.session.label(), units::format_duration_exact(self.wait));
        let message = format!("{label} accepted no more input for {wait} ({error}); {}", self.progress());
        Failure::new(Code::Other, message, "check that the program reads its input, or use --wait 10m to wait longer")
            .into()
    }

    fn progress(&self) -> String {
        match self.typed {
            0 => "nothing was typed".to_owned(),
            typed => format!("only the first {typed} bytes were typed"),
        }
    }
}
