//! A wire between viewers and a session, or a gateway, that can be cut and mended while the other end knows nothing of it.

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

/// Stands where a session's socket or a gateway was, and passes everything on.
pub(crate) struct Proxy {
    /// Where the real socket is, and where it belongs.
    moved: Option<(PathBuf, PathBuf)>,
    port: u16,
    wires: Arc<Mutex<Vec<OwnedFd>>>,
    broken: Arc<AtomicBool>,
}

impl Proxy {
    /// Puts itself before a session.
    pub(crate) fn before(world: &World, id: &str) -> Proxy {
        let dir = world.path().join("s/sessions").join(id);
        let (shown, real, mine) = (dir.join("sock"), dir.join("real"), dir.join("proxy"));
        let listener = UnixListener::bind(&mine).unwrap();
        fs::hard_link(&shown, &real).unwrap();
        // In one step, so that the session never misses its socket.
        symlink(&mine, dir.join("link")).unwrap();
        fs::rename(dir.join("link"), &shown).unwrap();
        let target = real.clone();
        let accept = move || Some(listener.accept().ok()?.0.into());
        Proxy::run(Some((real, shown)), 0, accept, move || Some(UnixStream::connect(&target).ok()?.into()))
    }

    /// Puts itself before a port of this machine, on a port of its own.
    pub(crate) fn before_port(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mine = listener.local_addr().unwrap().port();
        let accept = move || Some(listener.accept().ok()?.0.into());
        Proxy::run(None, mine, accept, move || Some(TcpStream::connect(("127.0.0.1", port)).ok()?.into()))
    }

    fn run(
        moved: Option<(PathBuf, PathBuf)>,
        port: u16,
        accept: impl Fn() -> Option<OwnedFd> + Send + 'static,
        connect: impl Fn() -> Option<OwnedFd> + Send + 'static,
    ) -> Proxy {
        let proxy = Proxy { moved, port, wires: Arc::default(), broken: Arc::default() };
        let (wires, broken) = (Arc::clone(&proxy.wires), Arc::clone(&proxy.broken));
        std::thread::spawn(move || {
            while let Some(viewer) = accept() {
                if !broken.load(Ordering::SeqCst)
                    && let Some(real) = connect()
                {
                    join(viewer, real, &wires);
                }
            }
        });
        proxy
    }

    /// Its own port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection, and lets no new one through.
    pub(crate) fn cut(&self) {
        self.broken.store(true, Ordering::SeqCst);
        for wire in self.wires.lock().unwrap().drain(..) {
            let _ = shutdown(wire, Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub(crate) fn mend(&self) {
        self.broken.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        if let Some((real, shown)) = &self.moved {
            let _ = fs::rename(real, shown);
        }
    }
}

fn join(viewer: OwnedFd, real: OwnedFd, wires: &Mutex<Vec<OwnedFd>>) {
    let ends = [
        (viewer.try_clone().unwrap(), real.try_clone().unwrap()),
        (real.try_clone().unwrap(), viewer.try_clone().unwrap()),
    ];
    wires.lock().unwrap().extend([viewer, real]);
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
