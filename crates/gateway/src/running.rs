//! `gateway.json` and `gateway.lock`, by which other processes find the running gateway.

use std::fs;
use std::io;
use std::path::PathBuf;

use bowline_host::files::{self, write_whole};
use bowline_host::home::Home;
use bowline_host::lock::Lock;
use serde::{Deserialize, Serialize};

/// The most bytes of `gateway.json`; a longer one is ignored.
const MAX_FILE: u64 = 64 << 10;

/// The content of `gateway.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningGateway {
    pub pid: u32,
    /// The URL that browsers use.
    pub url: String,
    pub listen: String,
    pub started: String,
}

impl RunningGateway {
    /// Claims this home for the calling process, for as long as it holds the lock. `None` if another gateway is
    /// running.
    pub fn claim(home: &Home) -> io::Result<Option<Lock>> {
        Lock::take(&lock(home))
    }

    /// Publishes this gateway. Only the holder of the lock may call this.
    pub fn write(&self, home: &Home) -> io::Result<()> {
        write_whole(&file(home), &serde_json::to_vec_pretty(self)?)
    }

    /// Removes the file. Only the holder of the lock may call this.
    pub fn remove(home: &Home) -> io::Result<()> {
        fs::remove_file(file(home))
    }

    /// The running gateway of this home, if any.
    pub fn find(home: &Home) -> Option<RunningGateway> {
        // A killed gateway leaves the file behind, but not the lock.
        let content = files::read(&file(home), MAX_FILE).ok().filter(|_| Lock::is_held(&lock(home)))?;
        serde_json::from_slice(&content).ok()
    }
}

fn file(home: &Home) -> PathBuf {
    home.state().join("gateway.json")
}

fn lock(home: &Home) -> PathBuf {
    home.state().join("gateway.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_found_only_while_it_runs() {
        let temp = tempfile::tempdir().unwrap();
        let home = crate::testing::home(temp.path());
        home.ensure().unwrap();
        let lock = RunningGateway::claim(&home).unwrap().unwrap();
        assert!(RunningGateway::claim(&home).unwrap().is_none(), "only one gateway per home");
        assert_eq!(RunningGateway::find(&home), None, "not published yet");
        let running =
            RunningGateway { pid: 1, url: "http://a".into(), listen: "127.0.0.1:1".into(), started: String::new() };
        running.write(&home).unwrap();
        assert_eq!(RunningGateway::find(&home), Some(running));
        RunningGateway::remove(&home).unwrap();
        assert_eq!(RunningGateway::find(&home), None);
        drop(lock);
        assert_eq!(RunningGateway::find(&home), None);
    }
}
