//! What a run leaves behind when nobody looks after it: a directory and processes. All of it goes at the end, also when
//! the run is interrupted.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// Everything to end when the run is interrupted.
static LEFT: Mutex<Left> = Mutex::new(Left { processes: BTreeMap::new(), directory: None });

struct Left {
    processes: BTreeMap<u32, Arc<OwnedFd>>,
    directory: Option<PathBuf>,
}

/// The run's own directory, removed at the end.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Result<Place> {
        let path = std::env::temp_dir().join(format!("bowline-bench-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        left().directory = Some(path.clone());
        Ok(Place { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        left().directory = None;
    }
}

/// A process that this run started, not necessarily as its child. It ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    pidfd: Arc<OwnedFd>,
}

impl Process {
    /// Looks after a living process.
    pub(crate) fn adopt(pid: u32) -> Result<Process> {
        let raw = Pid::from_raw(pid as i32).context("no process has the id 0")?;
        let pidfd = Arc::new(pidfd_open(raw, PidfdFlags::empty()).with_context(|| format!("process {pid}"))?);
        left().processes.insert(pid, pidfd.clone());
        Ok(Process { pid, pidfd })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&self.pidfd);
        left().processes.remove(&self.pid);
    }
}

/// Asks a process to end, then makes it.
fn end(pidfd: &OwnedFd) {
    for signal in [Signal::HUP, Signal::TERM] {
        let _ = pidfd_send_signal(pidfd, signal);
    }
    if !has_ended(pidfd, GRACE) {
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
        has_ended(pidfd, GRACE);
    }
}

fn has_ended(pidfd: &OwnedFd, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        let rest = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], rest.as_ref()) {
            Ok(n) => return n > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// An interrupted run ends what it started, too.
pub(crate) fn end_on_signals() -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let left = left();
            left.processes.values().for_each(|pidfd| end(pidfd));
            if let Some(directory) = &left.directory {
                let _ = fs::remove_dir_all(directory);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}
