//! Control requests, which arrive on the session's socket from the command line and the gateway.

use std::time::Duration;

use bowline_host::files;
use bowline_host::remove::{MAX_GRACE, default_grace};
use bowline_host::spec::MAX_TTL;
use bowline_proto::control::{Reply, Request};
use bowline_proto::frame;
use bowline_proto::ids::SessionName;
use bowline_proto::problem::Code;

use super::conn::Role;
use super::session::Session;

impl Session {
    /// Whether `text`, the first message of a connection, makes it a control connection.
    pub(super) fn is_request(text: &str) -> bool {
        serde_json::from_str::<Request>(text).is_ok_and(|request| request != Request::Unknown)
    }

    pub(super) fn handle_request(&mut self, id: u64, text: &str) {
        let reply = match serde_json::from_str(text) {
            Ok(Request::Status { follow, brief }) => {
                self.set_role(id, Role::Control { follows: follow, brief });
                Some(self.status_reply(brief))
            }
            Ok(Request::End { grace_ms }) => {
                let grace =
                    grace_ms.map_or_else(|| default_grace(self.core.meta.kind), Duration::from_millis).min(MAX_GRACE);
                self.end(grace);
                Some(Reply::Ending)
            }
            Ok(Request::Set { name, detached_ttl }) => Some(self.set(name, detached_ttl)),
            Ok(Request::Unknown) => Some(error(
                Code::BadRequest,
                "this session process does not support that request; it may be an older version of bowline",
            )),
            Ok(request) => self.body.handle_request(&mut self.core, id, request),
            Err(why) => Some(error(Code::BadRequest, &why.to_string())),
        };
        if let Some(reply) = reply {
            self.send_text(id, &encode(&reply));
        }
    }

    /// Sends the description to every control connection that follows it. A connection that does not read
    /// is dropped; its client can reconnect.
    pub(super) fn send_status(&mut self) {
        for brief in [false, true] {
            let role = Role::Control { follows: true, brief };
            let followers: Vec<u64> =
                self.conns.iter().filter(|(_, conn)| conn.role == role).map(|(id, _)| *id).collect();
            if !followers.is_empty() {
                let reply = encode(&self.status_reply(brief));
                followers.into_iter().for_each(|id| self.send_text(id, &reply));
            }
        }
    }

    /// Sends the text of a reply, or drops the connection if it has too much unread output.
    pub(super) fn send_text(&mut self, id: u64, text: &str) {
        let mut frames = Vec::new();
        // A huge screen can exceed the frame limit, and the client could not decode such a frame.
        if text.len() > frame::MAX_PAYLOAD {
            let message = format!("the reply is larger than {} bytes; request less scrollback", frame::MAX_PAYLOAD);
            frame::put_text(&mut frames, &encode(&error(Code::TooLarge, &message)));
        } else {
            frame::put_text(&mut frames, text);
        }
        let sent = self.conns.get_mut(&id).is_some_and(|conn| conn.has_room() && conn.send(&frames).is_ok());
        if !sent {
            self.drop_conn(id);
        }
    }

    fn status_reply(&mut self, brief: bool) -> Reply {
        self.body.update_info(&mut self.core);
        let mut session = Box::new(self.core.info.clone());
        if let (true, Some(agent)) = (brief, &mut session.agent) {
            agent.commands = None;
        }
        Reply::Status { session }
    }

    fn set(&mut self, name: Option<SessionName>, detached_ttl: Option<u64>) -> Reply {
        if detached_ttl.is_some_and(|ttl| ttl > MAX_TTL) {
            return error(
                Code::BadRequest,
                "a session can wait without viewers for at most ten years; use 0 for no limit",
            );
        }
        let core = &mut self.core;
        let mut meta = core.meta.clone();
        meta.name = name.or(meta.name);
        meta.detached_ttl = detached_ttl.unwrap_or(meta.detached_ttl);
        if let Err(why) = meta.write(&core.dir.meta()) {
            return error(files::code(&why), &format!("cannot write the change to meta.json: {why}"));
        }
        core.info.name.clone_from(&meta.name);
        core.meta = meta;
        core.info_changed = true;
        Reply::Done
    }
}

/// The text of a reply.
pub(super) fn encode(reply: &Reply) -> String {
    serde_json::to_string(reply).unwrap_or_default()
}

pub(super) fn error(code: Code, message: &str) -> Reply {
    Reply::Error { code, message: message.into(), answered: None }
}
