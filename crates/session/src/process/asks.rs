//! Requests of control connections, and commands: what a session does when it is asked.

use std::time::Duration;

use bowline_proto::Offset;
use bowline_proto::config::COMMAND_ID;
use bowline_proto::control::{self, Reply, Request};
use bowline_proto::frame;
use bowline_proto::message::ServerMessage;
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::Value;

use super::conn::Role;
use super::serve::{Phase, Session};
use crate::emulator::Ask;
use bowline_host::events::Event;
use bowline_host::log::Read;
use bowline_host::remove::{DEFAULT_GRACE, MAX_GRACE};
use bowline_host::start::MAX_TTL;

/// The longest text of a command, and the most that may wait to be typed when it comes; past this it is refused.
const MAX_TYPED: usize = 256 << 10;
/// The most of the log that one answer has.
const MAX_PIECE: usize = 128 << 10;

/// What a command may do to a terminal.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TerminalCommand {
    Input { text: String },
    Signal { name: String },
}

/// Why a command was refused, for good.
struct Refusal {
    code: &'static str,
    message: String,
}

impl Session {
    /// Whether a first message makes its connection one that asks.
    pub(super) fn is_ask(text: &str) -> bool {
        serde_json::from_str::<Request>(text).is_ok_and(|request| request != Request::Unknown)
    }

    pub(super) fn handle_ask(&mut self, id: u64, text: &str) {
        let reply = match serde_json::from_str(text) {
            Ok(Request::Status { follow }) => {
                self.set_role(id, Role::Control { follows: follow });
                Some(self.status_reply())
            }
            Ok(Request::End { grace_ms }) => {
                let grace = grace_ms.map_or(DEFAULT_GRACE, Duration::from_millis).min(MAX_GRACE);
                self.end(grace);
                Some(Reply::Ending)
            }
            Ok(Request::Set { name, detached_ttl }) => Some(self.set(name, detached_ttl)),
            Ok(Request::Screen { format, scrollback }) => {
                self.next_ticket += 1;
                self.shows.insert(self.next_ticket, id);
                self.emulator.ask(Ask::Show { ticket: self.next_ticket, format, scrollback });
                None
            }
            Ok(Request::Log { from, max }) => Some(self.piece(from, max)),
            Ok(Request::Command { id: command_id, command }) => Some(match self.command(command_id, &command) {
                ServerMessage::Accepted { id, seq, duplicate } => Reply::Accepted { id, seq, duplicate },
                ServerMessage::Rejected { code, message, .. } => Reply::Error { code, message },
                _ => error("internal", "a command got a strange answer"),
            }),
            Ok(Request::Unknown) => Some(error("bad_request", "this session process does not know that request")),
            Err(why) => Some(error("bad_request", &why.to_string())),
        };
        if let Some(reply) = reply {
            self.answer(id, &reply);
        }
    }

    /// A screen that was asked for has come.
    pub(super) fn show(&mut self, ticket: u64, screen: Value) {
        if let Some(id) = self.shows.remove(&ticket) {
            self.answer(id, &Reply::Screen { screen });
        }
    }

    /// Tells the changed description to those who follow it. One that does not read is dropped: it can ask again.
    pub(super) fn tell_followers(&mut self) {
        let reply = self.status_reply();
        let followers: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.role == (Role::Control { follows: true }))
            .map(|(id, _)| *id)
            .collect();
        followers.into_iter().for_each(|id| self.answer(id, &reply));
    }

    fn answer(&mut self, id: u64, reply: &Reply) {
        let mut frames = Vec::new();
        // A reply over the frame limit (a huge screen) is refused rather than sent in a form nobody reads.
        let mut text = serde_json::to_string(reply).unwrap_or_default();
        if text.len() > frame::MAX_PAYLOAD {
            let refusal = error("too_large", "the answer is larger than a frame; ask for less scrollback");
            text = serde_json::to_string(&refusal).unwrap_or_default();
        }
        frame::put_text(&mut frames, &text);
        let sent = self.conns.get_mut(&id).is_some_and(|conn| conn.has_room() && conn.send(&frames).is_ok());
        if !sent {
            self.drop_conn(id);
        }
    }

    fn status_reply(&mut self) -> Reply {
        self.describe();
        Reply::Status { session: Box::new(self.info.clone()) }
    }

    /// A part of the log, which may be in no file.
    fn piece(&mut self, from: Option<Offset>, max: u32) -> Reply {
        self.log_newest();
        let (start, end) = (self.log.start(), self.log.end());
        let mut bytes = vec![0; MAX_PIECE.min(max as usize)];
        let read = match self.log.read(from.unwrap_or(start), &mut bytes) {
            Ok(Read::Data(n)) => n,
            Ok(Read::CaughtUp | Read::Trimmed { .. } | Read::Ahead { .. }) => 0,
            Err(why) => return error("internal", &format!("the log cannot be read: {why}")),
        };
        Reply::Log { start, end, bytes: control::bytes_to_text(&bytes[..read]) }
    }

    fn set(&mut self, name: Option<bowline_proto::ids::SessionName>, detached_ttl: Option<u64>) -> Reply {
        if detached_ttl.is_some_and(|ttl| ttl > MAX_TTL) {
            return error("bad_request", "a session waits for a viewer at most ten years; 0 is for ever");
        }
        let mut meta = self.meta.clone();
        meta.name = name.or(meta.name);
        meta.detached_ttl = detached_ttl.unwrap_or(meta.detached_ttl);
        if let Err(why) = meta.write(&self.dir.meta()) {
            return error("no_space", &format!("the change could not be written: {why}"));
        }
        self.info.name.clone_from(&meta.name);
        self.meta = meta;
        self.info_changed = true;
        Reply::Done
    }

    /// Does a command once: it is recorded before it is acted on, and a repeat is told from a reused id.
    pub(super) fn command(&mut self, id: String, command: &Value) -> ServerMessage {
        match self.try_command(&id, command) {
            Ok((seq, duplicate)) => ServerMessage::Accepted { id, seq, duplicate },
            Err(Refusal { code, message }) => ServerMessage::Rejected { id, code: code.into(), message },
        }
    }

    fn try_command(&mut self, id: &str, command: &Value) -> Result<(u64, bool), Refusal> {
        let refuse = |code, message: String| Refusal { code, message };
        if id.is_empty() || id.len() > COMMAND_ID {
            return Err(refuse("bad_request", format!("a command's id has 1 to {COMMAND_ID} bytes")));
        }
        let digest = digest(command);
        if let Some((_, before, seq)) = self.events.history().commands.iter().rfind(|(seen, _, _)| seen == id) {
            return if *before == digest {
                Ok((*seq, true))
            } else {
                Err(refuse("id_reused", "another command had this id".into()))
            };
        }
        if let Phase::Serving { .. } = self.phase {
            return Err(refuse("session_gone", "the session has ended".into()));
        }
        let parsed = TerminalCommand::deserialize(command).map_err(|why| refuse("bad_request", why.to_string()))?;
        match parsed {
            TerminalCommand::Input { text } => {
                if text.len() > MAX_TYPED {
                    return Err(refuse("too_large", format!("at most {MAX_TYPED} bytes of text at once")));
                }
                // Far less than the queue takes: viewers' keys have room behind it.
                if self.link.input().len() + text.len() > MAX_TYPED {
                    return Err(refuse("too_many", "the program has not read what was sent before".into()));
                }
                let seq = self.accept_command(id, digest)?;
                self.link.handle_typed(text.as_bytes()).map_err(|full| refuse("too_many", full.to_string()))?;
                Ok((seq, false))
            }
            TerminalCommand::Signal { name } => {
                let signal = signal_named(&name)
                    .ok_or_else(|| refuse("bad_request", format!("{name:?} is not a signal that can be sent")))?;
                let seq = self.accept_command(id, digest)?;
                // The foreground group, as a key would; the program itself where there is none.
                let target = self.pty.foreground().unwrap_or_else(|| self.pty.child());
                let _ = rustix::process::kill_process_group(target, signal);
                Ok((seq, false))
            }
        }
    }

    fn accept_command(&mut self, id: &str, digest: u64) -> Result<u64, Refusal> {
        let event = Event::Command { id: id.to_owned(), digest };
        let refuse = |why| Refusal { code: "no_space", message: format!("the command could not be recorded: {why}") };
        let seq = self.events.record(event).map_err(refuse)?;
        // Recorded, it counts: a refusal now would be followed by a repeat that is taken for a duplicate.
        if let Err(error) = self.events.sync() {
            self.degrade(&error);
        }
        Ok(seq)
    }
}

/// FNV-1a: enough to tell a repeat from a reused id, and the same in every version that may read it back.
fn digest(command: &Value) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    command.to_string().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

fn signal_named(name: &str) -> Option<Signal> {
    Some(match name.strip_prefix("SIG").unwrap_or(name) {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "TERM" => Signal::TERM,
        "CONT" => Signal::CONT,
        "STOP" => Signal::STOP,
        "TSTP" => Signal::TSTP,
        "WINCH" => Signal::WINCH,
        _ => return None,
    })
}

fn error(code: &str, message: &str) -> Reply {
    Reply::Error { code: code.into(), message: message.into() }
}
