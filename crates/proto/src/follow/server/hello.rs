//! Attaches a follower after its hello.

use super::follower::Follower;
use super::{ConnId, Server};
use crate::close;
use crate::hello::{self, BadHello};
use crate::link::server::caller::ClientKey;
use crate::link::server::places::no_place_for;
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
    fn refuse(&mut self, id: ConnId, code: u16, problem: Code, message: String) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.push_error(problem, message, true);
        self.close(id, code, problem.name());
    }

    fn attach(&mut self, id: ConnId, hello: Hello) {
        let client = ClientKey::of(&hello);
        let granted = hello.grant.as_ref().is_none_or(|grant| grant.write);
        let follower = Follower::new(client, hello, granted);
        let attached = self.conns.iter().filter_map(|(id, conn)| Some((*id, conn.viewer.as_ref()?)));
        let earlier = attached.into_iter().find(|(_, other)| other.client == follower.client);
        let earlier = earlier.map(|(id, other)| (id, other.dial, other.granted));
        match earlier {
            Some((_, _, true)) if !granted => {
                // An older gateway does not tell its callers apart. A reader must not replace a writer there, either.
                let message = "this client id belongs to a viewer that may write".to_owned();
                return self.refuse(id, close::NOT_ALLOWED, Code::NotAllowed, message);
            }
            Some((_, dial, _)) if follower.dial < dial => {
                return self.close(id, close::SUPERSEDED, "this client has attached on a newer connection");
            }
            // A client that is attached already takes its own place.
            Some((earlier, ..)) => self.close(earlier, close::SUPERSEDED, "the same client attached again"),
            None => {
                let attached = || self.followers().map(|other| (&other.client.caller, other.write));
                let places = self.config.viewers;
                if let Some(reason) = no_place_for(&follower.client.caller, follower.write, places, attached) {
                    return self.close(id, close::TOO_MANY, reason);
                }
            }
        }
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.viewer = Some(follower);
        }
        self.clients_changed();
    }
}
