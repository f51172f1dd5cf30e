//! `bowline send`: type into a session, or signal its program, without attaching.

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
use crate::keys::Key;
use crate::place::{Place, Session};
use crate::{args, attach, ls, units};

/// The most text of one command. As JSON it may be six times as long, which still fits a frame and a request's body; and a
/// session takes a piece while three others wait to be read.
const PIECE: usize = 64 << 10;
/// When a piece is offered again that the program had no room for.
const AGAIN: Backoff = Backoff { base: Duration::from_millis(10), cap: Duration::from_secs(1), tries: None };

pub(crate) fn run(verb: &args::Send, place: &dyn Place) -> anyhow::Result<ExitCode> {
    let session = place.find(&verb.session)?;
    attach::require_terminal_kind(&session)?;
    if session.info.state != State::Running {
        let label = session.label();
        let message = format!("{label} is not running ({})", ls::state(&session.info));
        return Err(Failure::new(Code::Other, message, format!("`bowline restart {label}` starts it again")).into());
    }
    let accepted = match &verb.signal {
        Some(signal) => {
            place.command(&session, &fresh_id()?, &json!(TerminalCommand::Signal { name: signal.clone() }))?
        }
        None => {
            let keys = keys(verb, place, &session);
            let mut typist = Typist { place, session: &session, wait: verb.wait, typed: 0 };
            match verb.text.as_slice() {
                [dash] if dash == "-" => typist.send(std::io::stdin().lock().chain(keys.as_bytes())),
                words => typist.send((words.join(" ") + &keys).as_bytes()),
            }?
        }
    };
    if verb.json {
        println!("{}", serde_json::to_string(&accepted)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// An id for something that is to be done once.
pub(crate) fn fresh_id() -> std::io::Result<String> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(ClientId::from_random(random).to_string())
}

/// What the keys send that are pressed after the text.
fn keys(verb: &args::Send, place: &dyn Place, session: &Session) -> String {
    let is_cursor = |key: &Key| matches!(key, Key::Cursor(_));
    let application_cursor = verb.keys.iter().any(is_cursor) && has_application_cursor(place, session);
    let enter = verb.enter.then_some("\r");
    verb.keys.iter().map(|key| key.encode(application_cursor)).chain(enter.map(str::to_owned)).collect()
}

/// Whether the program has set cursor keys to application mode; no where that cannot be known.
fn has_application_cursor(place: &dyn Place, session: &Session) -> bool {
    let screen = place.screen(session, ScreenFormat::Json, 0).ok();
    let screen = screen.and_then(|screen| serde_json::from_str::<Value>(&screen).ok());
    screen.is_some_and(|screen| screen["modes"]["app_cursor"] == true)
}

/// Types a text of any length in pieces, each once and in order.
struct Typist<'a> {
    place: &'a dyn Place,
    session: &'a Session,
    /// How long a piece may wait for room.
    wait: Duration,
    /// Bytes that the session has taken.
    typed: u64,
}

impl Typist<'_> {
    /// Types all that there is to read; gives the answer to the last piece.
    fn send(&mut self, mut text: impl Read) -> anyhow::Result<CommandAccepted> {
        let (mut piece, mut last) = (Vec::with_capacity(PIECE), None);
        loop {
            let room = PIECE - piece.len();
            let ended = (&mut text).take(room as u64).read_to_end(&mut piece)? < room;
            if let Some(accepted) = last.take_if(|_| piece.is_empty()) {
                return Ok(accepted);
            }
            let whole = self.whole_characters(&piece, ended)?;
            let accepted = self.type_piece(whole)?;
            if ended {
                return Ok(accepted);
            }
            last = Some(accepted);
            self.typed += whole.len() as u64;
            let used = whole.len();
            piece.drain(..used);
        }
    }

    /// The characters that have come whole. What follows them is the beginning of another, or an error.
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

    /// Types a piece as soon as the program has read enough of what came before.
    fn type_piece(&self, text: &str) -> anyhow::Result<CommandAccepted> {
        // One id for all tries: whatever became of the others, the piece is typed once.
        let (id, command) = (fresh_id()?, json!(TerminalCommand::Input { text: text.to_owned() }));
        let (since, mut tries) = (Instant::now(), 0);
        loop {
            match self.place.command(self.session, &id, &command) {
                Err(error) if failure::code_of(&error) == Some(problem::Code::TooMany) => {
                    if since.elapsed() >= self.wait {
                        return Err(self.stuck(&error));
                    }
                    std::thread::sleep(AGAIN.delay(tries, 0.0).unwrap_or(AGAIN.cap));
                    tries += 1;
                }
                Err(error) if self.typed > 0 => return Err(error.context(self.progress())),
                done => return done,
            }
        }
    }

    fn stuck(&self, why: &anyhow::Error) -> anyhow::Error {
        let (label, wait) = (self.session.label(), units::write_duration(self.wait));
        let message = format!("{label} took no more text for {wait} ({why}); {}", self.progress());
        Failure::new(Code::Other, message, "check that it reads its input; --wait 10m waits longer").into()
    }

    fn progress(&self) -> String {
        match self.typed {
            0 => "nothing was typed".to_owned(),
            typed => format!("only the first {typed} bytes were typed"),
        }
    }
}
