//! Attaches a viewer after its hello, and applies the size owner's window and colours.

use super::caller::{Caller, ClientKey};
use super::input_queue::Serial;
use super::places::no_place_for;
use super::stream::Stream;
use super::viewer::{PendingMessages, Viewer};
use super::{ConnId, Server, ServerEvent};
use crate::close;
use crate::hello::{self, BadHello};
use crate::ids::ClientId;
use crate::message::Hello;
use crate::problem::Code;

impl Server {
    pub(super) fn read_hello(&mut self, id: ConnId, text: &str) {
        match hello::read(text) {
            Ok(hello) => self.attach(id, hello),
            Err(bad) => self.refuse_hello(id, &bad),
        }
    }

    pub(super) fn refuse_hello(&mut self, id: ConnId, bad: &BadHello) {
        let (code, problem) = bad.codes();
        self.refuse(id, code, problem, bad.to_string());
    }

    /// Sends a fatal error, then closes the connection.
    pub(super) fn refuse(&mut self, id: ConnId, code: u16, problem: Code, message: String) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.push_error(problem, message, true);
        self.close(id, code, problem.name());
    }

    fn attach(&mut self, id: ConnId, hello: Hello) {
        let client = ClientKey::of(&hello);
        let record = self.input.find(&client);
        let (last_dial, earlier) = record.map_or((0, None), |record| (record.dial, record.attached));
        let granted = hello.grant.as_ref().is_none_or(|grant| grant.write);
        if !granted && record.is_some_and(|record| record.writer) {
            // An older gateway does not tell its callers apart. A reader must not replace a writer there, either.
            let message = "this client id belongs to a viewer that may write".to_owned();
            return self.refuse(id, close::NOT_ALLOWED, Code::NotAllowed, message);
        }
        if hello.conn < last_dial {
            return self.close(id, close::SUPERSEDED, "this client has attached on a newer connection");
        }
        let write = !hello.observe && granted;
        // A client that is attached already takes its own place.
        if earlier.is_none()
            && let Some(reason) = no_place_for(&client.caller, write, self.config.viewers, || self.attached())
        {
            return self.close(id, close::TOO_MANY, reason);
        }
        if let Some(earlier) = earlier {
            self.close(earlier, close::SUPERSEDED, "the same client attached again");
        }
        let serial = self.input.attach(&client, hello.conn, id, granted);
        let record = self.input.get(serial);
        let received = record.map_or(0, |record| record.received);
        let input = record.filter(|record| !record.forgotten).map(|record| record.received);
        let stream = Stream::new(&self.config, &self.output, hello.lag, hello.cursor.as_ref(), self.now);
        self.last_rank += 1;
        let viewer = Viewer {
            serial,
            client: client.clone(),
            public_id: self.public_id(serial),
            write,
            window: hello.size,
            theme: hello.theme,
            // One kind of snapshot, however much more than everything is asked for.
            scrollback: hello.scrollback.min(self.config.scrollback),
            rank: self.last_rank,
            announced: false,
            input,
            stream,
            pending: PendingMessages {
                title: self.title.is_some(),
                cwd: self.cwd.is_some(),
                // Input may have been written while the client was detached.
                ack: (received > 0).then_some(self.now),
                presence: Some(self.now),
                ..PendingMessages::default()
            },
            unanswered_commands: 0,
            gap_reported: false,
        };
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.viewer = Some(viewer);
        }
        if !write && self.owner.is(&client) {
            // The owner reconnected read-only.
            self.pass_size_on();
        } else if write && hello.size.is_some() {
            let was = hello.was.map(|was| client.sibling(&was));
            if self.owner.attach(&client, was.as_ref()) {
                self.apply_owner_size();
            }
        }
        self.presence_changed();
    }

    /// For whom each viewer connects, and whether it may write.
    fn attached(&self) -> impl Iterator<Item = (&Caller, bool)> {
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        viewers.map(|viewer| (&viewer.client.caller, viewer.write))
    }

    /// An id for presence, which stays the same while the client is remembered and leads to nothing else.
    fn public_id(&self, serial: Serial) -> ClientId {
        let id = u128::from_be_bytes(self.config.public_ids) ^ u128::from(serial.0);
        ClientId::from_random(id.to_be_bytes())
    }

    /// Requests the owner's size and colours for the terminal, if the owner is attached.
    pub(super) fn apply_owner_size(&mut self) {
        if self.output.exit.is_some() {
            return;
        }
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let Some(owner) = viewers.into_iter().find(|viewer| self.owner.is(&viewer.client)) else { return };
        let (window, theme) = (owner.window, owner.theme.clone());
        if let Some(size) = window.filter(|size| *size != self.requested_size.unwrap_or(self.output.size())) {
            self.requested_size = Some(size);
            self.events.push_back(ServerEvent::Resize(size));
        }
        if let Some(theme) = theme
            && self.theme.as_ref() != Some(&theme)
        {
            self.theme = Some(theme.clone());
            self.events.push_back(ServerEvent::Theme(theme));
        }
    }

    /// Makes the writer with a window that has been attached longest the size owner.
    pub(super) fn pass_size_on(&mut self) {
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let writers = viewers.filter(|viewer| viewer.write && viewer.window.is_some());
        let next = writers.min_by_key(|viewer| viewer.rank).map(|viewer| viewer.client.clone());
        self.owner.pass(next.as_ref());
        self.apply_owner_size();
        self.presence_changed();
    }
}
