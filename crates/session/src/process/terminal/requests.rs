//! Requests that are specific to a terminal: its screen, its log, and commands (text to type, a signal to send).

use std::sync::Arc;

use bowline_host::digest::fnv1a;
use bowline_host::events::Event;
use bowline_host::files;
use bowline_host::log::ReadOutcome;
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
use super::super::requests::{encode, error};
use super::Terminal;
use crate::emulator::{Job, Rendering};

/// The longest text of a command, and the most input that may be queued with it. A command over the limit
/// is refused.
const MAX_TEXT: usize = 256 << 10;
/// The most bytes of the log in one reply.
const MAX_LOG_REPLY: usize = 128 << 10;

struct Refusal {
    code: Code,
    message: String,
}

impl Terminal {
    pub(in super::super) fn handle_request(&mut self, core: &mut Core, conn: u64, request: Request) -> Option<Reply> {
        match request {
            Request::Screen { format, scrollback } => {
                // The rendering has all output from before the request.
                self.log_latest(core);
                // More lines than there can be make no other rendering.
                let most = core.meta.terminal.as_ref().map_or(u32::MAX, |terminal| terminal.scrollback);
                self.screen_requests.add(conn, Rendering { format, scrollback: scrollback.min(most) });
                self.render_next();
                None
            }
            Request::Log { from, max } => Some(self.read_log(core, from, max)),
            Request::Command { id, command, by: _ } => Some(match self.command(core, id, &command) {
                ServerMessage::Accepted { id, seq, duplicate } => Reply::Accepted { id, seq, run: None, duplicate },
                ServerMessage::Rejected { code, message, .. } => Reply::Error { code, message, answered: None },
                _ => error(Code::Internal, "unexpected reply to a command"),
            }),
            Request::Status { .. } | Request::End { .. } | Request::Set { .. } | Request::Unknown => {
                Some(error(Code::BadRequest, "a terminal does not support that request"))
            }
        }
    }

    fn render_next(&mut self) {
        if let Some(rendering) = self.screen_requests.start_next() {
            self.emulator.submit(Job::Render(rendering));
        }
    }

    /// Replies to requests for the screen.
    pub(super) fn handle_rendered(&mut self, screen: Option<String>) {
        let reply = match screen {
            Some(screen) => control::screen_reply(&screen),
            None => encode(&error(Code::Internal, "the screen cannot be rendered")),
        };
        let reply: Arc<str> = reply.into();
        let replies = self.screen_requests.finish().into_iter();
        self.events.extend(replies.map(|conn| BodyEvent::Reply { conn, reply: reply.clone() }));
        self.render_next();
    }

    /// Reads a part of the log. Clients cannot always read the file instead: after a write error the log is
    /// in memory.
    fn read_log(&mut self, core: &mut Core, from: Option<Offset>, max: u32) -> Reply {
        self.log_latest(core);
        let (start, end) = (self.log.start(), self.log.end());
        let mut bytes = vec![0; MAX_LOG_REPLY.min(max as usize)];
        let read = match self.log.read(from.unwrap_or(start), &mut bytes) {
            Ok(ReadOutcome::Data(n)) => n,
            Ok(ReadOutcome::CaughtUp | ReadOutcome::Trimmed { .. } | ReadOutcome::Ahead { .. }) => 0,
            Err(why) => return error(Code::Internal, &format!("cannot read the log: {why}")),
        };
        Reply::Log { start, end, bytes: control::bytes_to_text(&bytes[..read]) }
    }

    /// Runs a command once. It is recorded before it runs, so that a repeat is recognised, and so is
    /// another command with the same id.
    pub(super) fn command(&mut self, core: &mut Core, id: String, command: &Value) -> ServerMessage {
        match self.try_command(core, &id, command) {
            Ok((seq, duplicate)) => ServerMessage::Accepted { id, seq, duplicate },
            Err(Refusal { code, message }) => ServerMessage::Rejected { id, code, message },
        }
    }

    fn try_command(&mut self, core: &mut Core, id: &str, command: &Value) -> Result<(u64, bool), Refusal> {
        let refuse = |code, message: String| Refusal { code, message };
        if id.is_empty() || id.len() > COMMAND_ID {
            return Err(refuse(Code::BadRequest, format!("a command id must have 1 to {COMMAND_ID} bytes")));
        }
        let digest = fnv1a(command.to_string().as_bytes());
        if let Some((_, before, seq)) = self.history.commands.iter().rfind(|(seen, _, _)| seen == id) {
            return if *before == digest {
                Ok((*seq, true))
            } else {
                Err(refuse(Code::IdReused, "another command already used this id".into()))
            };
        }
        if core.info.exit.is_some() {
            return Err(refuse(Code::SessionGone, "the session has ended".into()));
        }
        let parsed = TerminalCommand::deserialize(command).map_err(|why| refuse(Code::BadRequest, why.to_string()))?;
        match parsed {
            TerminalCommand::Input { text } => {
                if text.len() > MAX_TEXT {
                    let message = format!("the text has {} bytes; send at most {MAX_TEXT} at once", text.len());
                    return Err(refuse(Code::TooLarge, message));
                }
                // The link's input queue is far larger, so this leaves room for viewers' keys.
                if self.link.input().len() + text.len() > MAX_TEXT {
                    let message = "the program has not read earlier input yet; try again later";
                    return Err(refuse(Code::TooMany, message.into()));
                }
                let seq = self.record_command(core, id, digest)?;
                self.link
                    .handle_command_input(text.as_bytes())
                    .map_err(|full| refuse(Code::TooMany, full.to_string()))?;
                Ok((seq, false))
            }
            TerminalCommand::Signal { name } => {
                let signal = signal_named(&name).ok_or_else(|| {
                    let known = control::SIGNALS.join(", ");
                    refuse(Code::BadRequest, format!("cannot send the signal {name:?}; use one of {known}"))
                })?;
                let seq = self.record_command(core, id, digest)?;
                // The foreground process group, as Ctrl-C would; the program's own if there is none.
                let target = self.pty.foreground().unwrap_or_else(|| self.pty.child());
                let _ = rustix::process::kill_process_group(target, signal);
                Ok((seq, false))
            }
        }
    }

    fn record_command(&mut self, core: &mut Core, id: &str, digest: u64) -> Result<u64, Refusal> {
        let event = Event::Command { id: id.to_owned(), digest };
        let refuse = |why| Refusal { code: files::code(&why), message: format!("cannot record the command: {why}") };
        let seq = self.try_record(core, event).map_err(refuse)?;
        // Once recorded the command must run: after a refusal the client would repeat it, and get `duplicate`.
        if let Err(error) = self.journal.sync() {
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
    fn every_signal_of_the_protocol_can_be_sent() {
        assert!(control::SIGNALS.iter().all(|name| signal_named(name).is_some()));
        assert_eq!((signal_named("SIGINT"), signal_named("SEGV")), (Some(Signal::INT), None));
    }
}
