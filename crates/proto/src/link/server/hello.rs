//! The first message of a connection: who is it, may it, and whose size rules now.

use crate::problem::Code;
use serde::Deserialize;
use serde_json::Value;

use super::conn::{Owed, Viewer};
use super::stream::Stream;
use super::{ConnId, Server, ServerEvent};
use crate::close;
use crate::config::TEXT;
use crate::message::{ClientMessage, Hello, Theme, VERSION};

/// Read before anything else, so that a hello of a later version is not called malformed.
#[derive(Deserialize)]
struct Peek {
    r#type: String,
    #[serde(default)]
    version: Value,
}

/// Why a hello is refused: close code, problem code, words.
struct Refused(u16, Code, String);

impl Server {
    pub(super) fn greet(&mut self, id: ConnId, text: &str) {
        match read_hello(text) {
            Ok(hello) => self.attach(id, hello),
            Err(Refused(code, problem, message)) => self.refuse(id, code, problem, message),
        }
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

fn read_hello(text: &str) -> Result<Hello, Refused> {
    let malformed = |message: String| Refused(close::MALFORMED, Code::BadRequest, message);
    if text.len() > TEXT {
        return Err(malformed(format!("a hello of {} bytes is too long", text.len())));
    }
    let peek: Peek = serde_json::from_str(text).map_err(|why| malformed(format!("not a hello: {why}")))?;
    if peek.r#type != "hello" {
        return Err(malformed("the first message is hello".to_owned()));
    }
    if peek.version.is_number() && peek.version != VERSION {
        return Err(Refused(close::NO_VERSION, Code::NoVersion, format!("this end speaks version {VERSION}")));
    }
    match serde_json::from_str(text) {
        Ok(ClientMessage::Hello(hello)) if hello.theme.as_ref().is_none_or(is_theme) => Ok(hello),
        Ok(ClientMessage::Hello(_)) => Err(malformed("theme colours are #rrggbb".to_owned())),
        Ok(_) => Err(malformed("the first message is hello".to_owned())),
        Err(why) => Err(malformed(format!("bad hello: {why}"))),
    }
}

/// Colours end up in what the program reads, so they are colours and nothing else.
fn is_theme(theme: &Theme) -> bool {
    [&theme.fg, &theme.bg].iter().all(|colour| {
        colour.len() == 7 && colour.starts_with('#') && colour.bytes().skip(1).all(|b| b.is_ascii_hexdigit())
    })
}
