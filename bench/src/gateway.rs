//! A gateway, started like a user does: `bowline serve`.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cleanup::Process;
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
            None => new_token(bowline)?,
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

fn new_token(bowline: &Bowline) -> Result<String> {
    let output = Command::new(bowline.program())
        .args(["token", "create", "--name", "bench", "--scope", "admin"])
        .envs(bowline.env())
        .output()?;
    if !output.status.success() {
        bail!("bowline token create failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
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
