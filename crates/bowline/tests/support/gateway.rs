//! A gateway for the sessions of a [`World`], which can be killed and restarted on the same port.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::World;

/// A running `bowline serve`, killed when dropped.
pub(crate) struct Gateway<'a> {
    world: &'a World,
    child: Option<Child>,
    port: u16,
}

impl<'a> Gateway<'a> {
    /// Starts it on a free port.
    pub(crate) fn start(world: &'a World) -> Gateway<'a> {
        let mut gateway = Gateway { world, child: None, port: 0 };
        gateway.restart();
        gateway
    }

    /// Starts it again on the same port.
    pub(crate) fn restart(&mut self) {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = self.world.bowline(&["serve", "--listen", &listen]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, url) = line.split_once("listening on http://127.0.0.1:")?;
            url.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        });
        self.port = port.unwrap();
        self.child = Some(child);
        // Read on, so that further output does not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Creates a token for it.
    pub(crate) fn token(&self, name: &str, scope: &str) -> String {
        self.world.ok(&["token", "create", "--name", name, "--scope", scope]).trim().to_owned()
    }
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}
