//! A gateway, started like a user does: `bowline serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::cleanup::Process;
use crate::http::Client;
use crate::pty::SILENCE;
use crate::session::{Bowline, Session};
use crate::wire::{Route, Wire};

/// A running gateway. Dropping it kills the gateway, but not the sessions.
#[derive(Debug)]
pub(crate) struct Gateway {
    address: SocketAddr,
    token: String,
    child: Child,
    process: Process,
}

impl Gateway {
    /// Starts a gateway on a free port.
    pub(crate) fn start(bowline: &Bowline) -> Result<Gateway> {
        Gateway::start_at(bowline, SocketAddr::from(([127, 0, 0, 1], 0)), None)
    }

    fn start_at(bowline: &Bowline, listen: SocketAddr, token: Option<String>) -> Result<Gateway> {
        let token = match token {
            Some(token) => token,
            None => bowline.new_token("admin")?,
        };
        let mut child = Command::new(bowline.program())
            .args(["serve", "--listen", &listen.to_string()])
            .envs(bowline.env())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let process = Process::adopt(child.id())?;
        let mut lines = BufReader::new(child.stdout.take().context("the gateway has no stdout")?).lines();
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_once("listening on http://")?.1.trim_end_matches('/').parse().ok()
        });
        let address = address.context("the gateway ended without listening")?;
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Gateway { address, token, child, process })
    }

    /// Kills the gateway with SIGKILL, and starts another on the same port.
    pub(crate) fn kill_and_restart(mut self, bowline: &Bowline) -> Result<Gateway> {
        self.child.kill()?;
        self.child.wait()?;
        Gateway::start_at(bowline, self.address, Some(self.token.clone()))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request. The answer can be read from the returned connection, which the gateway closes after it.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Result<TcpStream> {
        let (mut stream, host, token) = (TcpStream::connect(self.address)?, self.address, &self.token);
        stream.set_read_timeout(Some(SILENCE))?;
        let len = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        )?;
        Ok(stream)
    }

    /// Sends a request and reads the whole answer. Returns its status and body.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let mut answer = String::new();
        self.request(method, path, body)?.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("the gateway closed the connection")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("the answer has no status")?, body.to_owned()))
    }

    /// A connection for requests that stays open between them.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::connect(self.address, &self.token)
    }

    /// Opens a WebSocket.
    pub(crate) fn upgrade(&self, path: &str) -> Result<Wire> {
        Wire::upgrade(self.address, path, &self.token)
    }

    pub(crate) fn route_to(&self, session: &Session) -> GatewayRoute {
        GatewayRoute {
            address: self.address,
            token: self.token.clone(),
            path: format!("/v1/sessions/{}/attach", session.id),
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The route to a session through a gateway.
#[derive(Clone, Debug)]
pub(crate) struct GatewayRoute {
    address: SocketAddr,
    token: String,
    path: String,
}

impl Route for GatewayRoute {
    fn connect(&self) -> Result<Wire> {
        Wire::upgrade(self.address, &self.path, &self.token)
    }
}
