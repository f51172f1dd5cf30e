//! The temporary directory and the processes of a run. They are removed and ended when the run ends or is interrupted.

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

/// How long a process may take to end after SIGHUP and SIGTERM; then it is killed.
const GRACE: Duration = Duration::from_secs(3);

/// What to clean up if the run is interrupted.
static RESOURCES: Mutex<Resources> = Mutex::new(Resources { processes: BTreeMap::new(), directory: None });

struct Resources {
    processes: BTreeMap<u32, Arc<OwnedFd>>,
    directory: Option<PathBuf>,
}

/// The directory of the run; removed on drop.
#[derive(Debug)]
pub(crate) struct TempDir {
    path: PathBuf,
}

impl TempDir {
    pub(crate) fn new() -> Result<TempDir> {
        let path = std::env::temp_dir().join(format!("bowline-bench-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        resources().directory = Some(path.clone());
        Ok(TempDir { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        resources().directory = None;
    }
}

/// A process that this run started, not necessarily as its child. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    pidfd: Arc<OwnedFd>,
}

impl Process {
    /// Takes charge of a running process.
    pub(crate) fn adopt(pid: u32) -> Result<Process> {
        let raw = Pid::from_raw(pid as i32).context("process id 0 is not valid")?;
        let pidfd =
            Arc::new(pidfd_open(raw, PidfdFlags::empty()).with_context(|| format!("cannot open process {pid}"))?);
        resources().processes.insert(pid, pidfd.clone());
        Ok(Process { pid, pidfd })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&self.pidfd);
        resources().processes.remove(&self.pid);
    }
}

/// Ends a process: SIGHUP and SIGTERM, then SIGKILL after a while.
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

/// Cleans up and exits on SIGHUP, SIGINT and SIGTERM.
pub(crate) fn end_on_signals() -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let resources = resources();
            resources.processes.values().for_each(|pidfd| end(pidfd));
            if let Some(directory) = &resources.directory {
                let _ = fs::remove_dir_all(directory);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn resources() -> MutexGuard<'static, Resources> {
    RESOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}
