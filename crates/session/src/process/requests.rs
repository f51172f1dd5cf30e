//! Control requests: what the owner's tools ask of a session over its socket.

use bowline_proto::problem::Code;
use std::time::Duration;

use bowline_host::remove::{DEFAULT_GRACE, MAX_GRACE};
use bowline_host::start::MAX_TTL;
use bowline_proto::control::{Reply, Request};
use bowline_proto::frame;
use bowline_proto::ids::SessionName;

use super::conn::Role;
use super::session::Session;

impl Session {
    /// Whether a first message makes its connection a control connection.
    pub(super) fn is_request(text: &str) -> bool {
        serde_json::from_str::<Request>(text).is_ok_and(|request| request != Request::Unknown)
    }

    pub(super) fn handle_request(&mut self, id: u64, text: &str) {
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
            Ok(Request::Unknown) => Some(error(Code::BadRequest, "this session process does not know that request")),
            Ok(request) => self.body.handle_request(&mut self.core, id, request),
            Err(why) => Some(error(Code::BadRequest, &why.to_string())),
        };
        if let Some(reply) = reply {
            self.answer(id, &reply);
        }
    }

    /// Sends the changed description to those who follow it. One that does not read is dropped: it can come back.
    pub(super) fn send_status(&mut self) {
        let reply = self.status_reply();
        let followers: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.role == (Role::Control { follows: true }))
            .map(|(id, _)| *id)
            .collect();
        followers.into_iter().for_each(|id| self.answer(id, &reply));
    }

    pub(super) fn answer(&mut self, id: u64, reply: &Reply) {
        let mut frames = Vec::new();
        // A reply over the frame limit (a huge screen) is refused rather than sent in a form that cannot be read.
        let mut text = serde_json::to_string(reply).unwrap_or_default();
        if text.len() > frame::MAX_PAYLOAD {
            let refusal = error(Code::TooLarge, "the answer is larger than a frame; ask for less scrollback");
            text = serde_json::to_string(&refusal).unwrap_or_default();
        }
        frame::put_text(&mut frames, &text);
        let sent = self.conns.get_mut(&id).is_some_and(|conn| conn.has_room() && conn.send(&frames).is_ok());
        if !sent {
            self.drop_conn(id);
        }
    }

    fn status_reply(&mut self) -> Reply {
        self.body.describe(&mut self.core);
        Reply::Status { session: Box::new(self.core.info.clone()) }
    }

    fn set(&mut self, name: Option<SessionName>, detached_ttl: Option<u64>) -> Reply {
        if detached_ttl.is_some_and(|ttl| ttl > MAX_TTL) {
            return error(Code::BadRequest, "a session waits for a viewer at most ten years; 0 is for ever");
        }
        let core = &mut self.core;
        let mut meta = core.meta.clone();
        meta.name = name.or(meta.name);
        meta.detached_ttl = detached_ttl.unwrap_or(meta.detached_ttl);
        if let Err(why) = meta.write(&core.dir.meta()) {
            return error(Code::NoSpace, &format!("the change could not be written: {why}"));
        }
        core.info.name.clone_from(&meta.name);
        core.meta = meta;
        core.info_changed = true;
        Reply::Done
    }
}

pub(super) fn error(code: Code, message: &str) -> Reply {
    Reply::Error { code, message: message.into() }
}
