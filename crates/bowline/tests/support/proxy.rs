//! A wire between viewers and a session that can be cut and mended, while the session knows nothing of it.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::World;

/// Stands where a session's socket was, and passes everything on.
pub(crate) struct Proxy {
    real: PathBuf,
    shown: PathBuf,
    wires: Arc<Mutex<Vec<UnixStream>>>,
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
        let proxy = Proxy { real, shown, wires: Arc::default(), broken: Arc::default() };
        let (wires, broken, real) = (Arc::clone(&proxy.wires), Arc::clone(&proxy.broken), proxy.real.clone());
        std::thread::spawn(move || {
            for viewer in listener.incoming().flatten() {
                if !broken.load(Ordering::SeqCst) {
                    connect(viewer, &real, &wires);
                }
            }
        });
        proxy
    }

    /// Cuts every connection, and lets no new one through.
    pub(crate) fn cut(&self) {
        self.broken.store(true, Ordering::SeqCst);
        for wire in self.wires.lock().unwrap().drain(..) {
            let _ = wire.shutdown(Shutdown::Both);
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
        let _ = fs::rename(&self.real, &self.shown);
    }
}

fn connect(viewer: UnixStream, real: &Path, wires: &Mutex<Vec<UnixStream>>) {
    let Ok(session) = UnixStream::connect(real) else { return };
    let ends = [
        (viewer.try_clone().unwrap(), session.try_clone().unwrap()),
        (session.try_clone().unwrap(), viewer.try_clone().unwrap()),
    ];
    wires.lock().unwrap().extend([viewer, session]);
    for (mut from, mut to) in ends {
        std::thread::spawn(move || {
            let mut bytes = [0; 16384];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                if to.write_all(&bytes[..n]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
}
