//! What only a terminal can be asked: its screen, its log, and commands (text to type, a signal to send).

use bowline_host::digest::fnv1a;
use bowline_host::events::Event;
use bowline_host::log::Read;
use bowline_host::signal;
use bowline_proto::Offset;
use bowline_proto::config::COMMAND_ID;
use bowline_proto::control::{self, Reply, Request};
use bowline_proto::message::ServerMessage;
use bowline_proto::message::TerminalCommand;
use bowline_proto::problem::Code;
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::Value;

use super::super::body::BodyEvent;
use super::super::core::Core;
use super::super::requests::error;
use super::Terminal;
use crate::emulator::Ask;

/// The longest text of a command, and the most that may wait to be typed when it comes; past this it is refused.
const MAX_TEXT: usize = 256 << 10;
/// The most of the log that one answer has.
const MAX_PIECE: usize = 128 << 10;

/// Why a command was refused, for good.
struct Refusal {
    code: Code,
    message: String,
}

impl Terminal {
    pub(in super::super) fn handle_request(&mut self, core: &mut Core, conn: u64, request: Request) -> Option<Reply> {
        match request {
            Request::Screen { format, scrollback } => {
                self.next_ticket += 1;
                self.screens.insert(self.next_ticket, conn);
                self.emulator.ask(Ask::Show { ticket: self.next_ticket, format, scrollback });
                None
            }
            Request::Log { from, max } => Some(self.piece(core, from, max)),
            Request::Command { id, command } => Some(match self.command(core, id, &command) {
                ServerMessage::Accepted { id, seq, duplicate } => Reply::Accepted { id, seq, duplicate },
                ServerMessage::Rejected { code, message, .. } => Reply::Error { code, message },
                _ => error(Code::Internal, "a command got a strange answer"),
            }),
            Request::Status { .. } | Request::End { .. } | Request::Set { .. } | Request::Unknown => {
                Some(error(Code::BadRequest, "a terminal does not answer that request"))
            }
        }
    }

    /// A screen that was asked for has come.
    pub(super) fn handle_shown(&mut self, ticket: u64, screen: Value) {
        if let Some(conn) = self.screens.remove(&ticket) {
            self.events.push_back(BodyEvent::Reply { conn, reply: Reply::Screen { screen } });
        }
    }

    /// A part of the log, which may be in no file.
    fn piece(&mut self, core: &mut Core, from: Option<Offset>, max: u32) -> Reply {
        self.log_newest(core);
        let (start, end) = (self.log.start(), self.log.end());
        let mut bytes = vec![0; MAX_PIECE.min(max as usize)];
        let read = match self.log.read(from.unwrap_or(start), &mut bytes) {
            Ok(Read::Data(n)) => n,
            Ok(Read::CaughtUp | Read::Trimmed { .. } | Read::Ahead { .. }) => 0,
            Err(why) => return error(Code::Internal, &format!("the log cannot be read: {why}")),
        };
        Reply::Log { start, end, bytes: control::bytes_to_text(&bytes[..read]) }
    }

    /// Does a command once: it is recorded before it is acted on, and a repeat is told from a reused id.
    pub(super) fn command(&mut self, core: &mut Core, id: String, command: &Value) -> ServerMessage {
        match self.try_command(core, &id, command) {
            Ok((seq, duplicate)) => ServerMessage::Accepted { id, seq, duplicate },
            Err(Refusal { code, message }) => ServerMessage::Rejected { id, code, message },
        }
    }

    fn try_command(&mut self, core: &mut Core, id: &str, command: &Value) -> Result<(u64, bool), Refusal> {
        let refuse = |code, message: String| Refusal { code, message };
        if id.is_empty() || id.len() > COMMAND_ID {
            return Err(refuse(Code::BadRequest, format!("a command's id has 1 to {COMMAND_ID} bytes")));
        }
        let digest = fnv1a(command.to_string().as_bytes());
        if let Some((_, before, seq)) = self.history.commands.iter().rfind(|(seen, _, _)| seen == id) {
            return if *before == digest {
                Ok((*seq, true))
            } else {
                Err(refuse(Code::IdReused, "another command had this id".into()))
            };
        }
        if core.info.exit.is_some() {
            return Err(refuse(Code::SessionGone, "the session has ended".into()));
        }
        let parsed = TerminalCommand::deserialize(command).map_err(|why| refuse(Code::BadRequest, why.to_string()))?;
        match parsed {
            TerminalCommand::Input { text } => {
                if text.len() > MAX_TEXT {
                    return Err(refuse(Code::TooLarge, format!("at most {MAX_TEXT} bytes of text at once")));
                }
                // Far less than the queue takes: viewers' keys have room behind it.
                if self.link.input().len() + text.len() > MAX_TEXT {
                    return Err(refuse(Code::TooMany, "the program has not read what was sent before".into()));
                }
                let seq = self.accept(core, id, digest)?;
                self.link.handle_typed(text.as_bytes()).map_err(|full| refuse(Code::TooMany, full.to_string()))?;
                Ok((seq, false))
            }
            TerminalCommand::Signal { name } => {
                let signal = signal_named(&name)
                    .ok_or_else(|| refuse(Code::BadRequest, format!("{name:?} is not a signal that can be sent")))?;
                let seq = self.accept(core, id, digest)?;
                // The foreground group, as a key would; the program itself where there is none.
                let target = self.pty.foreground().unwrap_or_else(|| self.pty.child());
                let _ = rustix::process::kill_process_group(target, signal);
                Ok((seq, false))
            }
        }
    }

    fn accept(&mut self, core: &mut Core, id: &str, digest: u64) -> Result<u64, Refusal> {
        let event = Event::Command { id: id.to_owned(), digest };
        let refuse =
            |why| Refusal { code: Code::NoSpace, message: format!("the command could not be recorded: {why}") };
        let seq = self.try_record(core, event).map_err(refuse)?;
        // Recorded, it counts: a refusal now would be followed by a repeat that is taken for a duplicate.
        if let Err(error) = core.journal.sync() {
            self.degrade(core, &error);
        }
        Ok(seq)
    }
}

fn signal_named(name: &str) -> Option<Signal> {
    Signal::from_named_raw(signal::number(control::sendable_signal(name)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_that_the_protocol_names_can_be_sent() {
        assert!(control::SIGNALS.iter().all(|name| signal_named(name).is_some()));
        assert_eq!((signal_named("SIGINT"), signal_named("SEGV")), (Some(Signal::INT), None));
    }
}
