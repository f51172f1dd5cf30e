//! A proxy in front of a session's socket or a gateway's port, whose connections can be cut and restored.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::net::{Shutdown, shutdown};

use super::World;

/// Forwards connections to a session's socket or a gateway's port.
pub(crate) struct Proxy {
    /// The path to which the session's socket was moved, and its original path.
    moved: Option<(PathBuf, PathBuf)>,
    port: u16,
    connections: Arc<Mutex<Vec<OwnedFd>>>,
    is_cut: Arc<AtomicBool>,
}

impl Proxy {
    /// Takes the place of a session's socket.
    pub(crate) fn for_session(world: &World, id: &str) -> Proxy {
        let dir = world.path().join("s/sessions").join(id);
        let (original, real, own) = (dir.join("sock"), dir.join("real"), dir.join("proxy"));
        let listener = UnixListener::bind(&own).unwrap();
        fs::hard_link(&original, &real).unwrap();
        // Atomically, because the session binds its socket again if it is missing.
        symlink(&own, dir.join("link")).unwrap();
        fs::rename(dir.join("link"), &original).unwrap();
        let target = real.clone();
        let accept = move || Some(listener.accept().ok()?.0.into());
        Proxy::run(Some((real, original)), 0, accept, move || Some(UnixStream::connect(&target).ok()?.into()))
    }

    /// Listens on a free port and forwards to `port`.
    pub(crate) fn for_port(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let accept = move || Some(listener.accept().ok()?.0.into());
        Proxy::run(None, own_port, accept, move || Some(TcpStream::connect(("127.0.0.1", port)).ok()?.into()))
    }

    fn run(
        moved: Option<(PathBuf, PathBuf)>,
        port: u16,
        accept: impl Fn() -> Option<OwnedFd> + Send + 'static,
        connect: impl Fn() -> Option<OwnedFd> + Send + 'static,
    ) -> Proxy {
        let proxy = Proxy { moved, port, connections: Arc::default(), is_cut: Arc::default() };
        let (connections, is_cut) = (Arc::clone(&proxy.connections), Arc::clone(&proxy.is_cut));
        std::thread::spawn(move || {
            while let Some(viewer) = accept() {
                if !is_cut.load(Ordering::SeqCst)
                    && let Some(real) = connect()
                {
                    forward(viewer, real, &connections);
                }
            }
        });
        proxy
    }

    /// The port on which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection, and closes new ones.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for connection in self.connections.lock().unwrap().drain(..) {
            let _ = shutdown(connection, Shutdown::Both);
        }
    }

    /// Forwards new connections again.
    pub(crate) fn restore(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        if let Some((real, original)) = &self.moved {
            let _ = fs::rename(real, original);
        }
    }
}

/// Copies bytes both ways until one end closes.
fn forward(viewer: OwnedFd, real: OwnedFd, connections: &Mutex<Vec<OwnedFd>>) {
    let ends = [
        (viewer.try_clone().unwrap(), real.try_clone().unwrap()),
        (real.try_clone().unwrap(), viewer.try_clone().unwrap()),
    ];
    connections.lock().unwrap().extend([viewer, real]);
    for (from, to) in ends {
        std::thread::spawn(move || {
            let (mut from, mut to) = (File::from(from), File::from(to));
            let mut bytes = [0; 16384];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                if to.write_all(&bytes[..n]).is_err() {
                    break;
                }
            }
            let _ = shutdown(&to, Shutdown::Both);
            let _ = shutdown(&from, Shutdown::Both);
        });
    }
}
