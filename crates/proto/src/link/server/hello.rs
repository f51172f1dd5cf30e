//! The first message of a connection: who is it, may it, and whose size rules now.

use super::conn::{Owed, Viewer};
use super::stream::Stream;
use super::{ConnId, Server, ServerEvent};
use crate::close;
use crate::hello::{self, BadHello};
use crate::message::Hello;
use crate::problem::Code;

impl Server {
    pub(super) fn greet(&mut self, id: ConnId, text: &str) {
        match hello::read(text) {
            Ok(hello) => self.attach(id, hello),
            Err(bad) => self.refuse_hello(id, &bad),
        }
    }

    pub(super) fn refuse_hello(&mut self, id: ConnId, bad: &BadHello) {
        let (code, problem) = bad.codes();
        self.refuse(id, code, problem, bad.to_string());
    }

    /// Says why, then closes.
    pub(super) fn refuse(&mut self, id: ConnId, code: u16, problem: Code, message: String) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.complain(problem, message, true);
        self.close(id, code, problem.name());
    }

    fn attach(&mut self, id: ConnId, hello: Hello) {
        let known = self.typing.find(&hello.client);
        let (last_dial, earlier) = known.map_or((0, None), |known| (known.conn, known.attached));
        let granted = hello.grant.is_none_or(|grant| grant.write);
        if !granted && known.is_some_and(|known| known.writer) {
            // Everybody here sees everybody's id. Whoever may only look must not push a writer out with it.
            return self.refuse(id, close::NOT_ALLOWED, Code::NotAllowed, "this client id is a writer's".to_owned());
        }
        if hello.conn < last_dial {
            return self.close(id, close::SUPERSEDED, "a newer connection of this client is here");
        }
        // Whoever comes again takes its own place.
        if earlier.is_none() && self.clients() as usize >= self.config.viewers {
            return self.close(id, close::TOO_MANY, "too many viewers; retry_after=5");
        }
        if let Some(earlier) = earlier {
            self.close(earlier, close::SUPERSEDED, "the same client attached again");
        }
        let serial = self.typing.attach(&hello.client, hello.conn, id, granted);
        let known = self.typing.get(serial);
        let received = known.map_or(0, |known| known.received);
        let input = known.filter(|known| !known.forgotten).map(|known| known.received);
        let write = !hello.observe && granted;
        let stream = Stream::new(&self.config, &self.tape, hello.lag, hello.cursor.as_ref(), self.now);
        self.ranks += 1;
        let viewer = Viewer {
            serial,
            client: hello.client.clone(),
            write,
            window: hello.size,
            theme: hello.theme,
            scrollback: hello.scrollback,
            rank: self.ranks,
            announced: false,
            input,
            stream,
            owed: Owed {
                title: self.title.is_some(),
                cwd: self.cwd.is_some(),
                // What was written while the client was away.
                ack: (received > 0).then_some(self.now),
                presence: Some(self.now),
                ..Owed::default()
            },
            commands: 0,
            hole_told: false,
        };
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.viewer = Some(viewer);
        }
        if !write && self.owner.is(&hello.client) {
            // It came back to look only.
            self.pass_size();
        } else if write && hello.size.is_some() && self.owner.arrive(&hello.client, hello.was.as_ref()) {
            self.follow_owner();
        }
        self.changed();
    }

    /// The terminal takes the owner's size and colours, if both are here.
    pub(super) fn follow_owner(&mut self) {
        if self.tape.exit.is_some() {
            return;
        }
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let Some(owner) = viewers.into_iter().find(|viewer| self.owner.is(&viewer.client)) else { return };
        let (window, theme) = (owner.window, owner.theme.clone());
        if let Some(size) = window.filter(|size| *size != self.asked.unwrap_or(self.tape.size())) {
            self.asked = Some(size);
            self.events.push_back(ServerEvent::Resize(size));
        }
        if let Some(theme) = theme
            && self.theme.as_ref() != Some(&theme)
        {
            self.theme = Some(theme.clone());
            self.events.push_back(ServerEvent::Theme(theme));
        }
    }

    /// The owner is no more: the writer here longest has the size.
    pub(super) fn pass_size(&mut self) {
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let writers = viewers.filter(|viewer| viewer.write && viewer.window.is_some());
        let next = writers.min_by_key(|viewer| viewer.rank).map(|viewer| viewer.client.clone());
        self.owner.pass(next.as_ref());
        self.follow_owner();
        self.changed();
    }
}
