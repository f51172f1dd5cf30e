//! The gateway that runs, as other processes of its owner find it.

use std::fs;
use std::io;
use std::path::PathBuf;

use bowline_host::files::write_whole;
use bowline_host::home::Home;
use bowline_host::lock::Lock;
use serde::{Deserialize, Serialize};

/// What a running gateway says of itself in `gateway.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Its process.
    pub pid: u32,
    /// The URL that browsers call.
    pub url: String,
    /// The address that it listens on.
    pub listen: String,
    /// When it started.
    pub started: String,
}

impl Running {
    /// Becomes the gateway of this home, or `None` when one runs already. It is one for as long as the lock is held.
    pub fn claim(home: &Home) -> io::Result<Option<Lock>> {
        Lock::take(&lock(home))
    }

    /// Lets others find this gateway.
    pub fn write(&self, home: &Home) -> io::Result<()> {
        write_whole(&file(home), &serde_json::to_vec_pretty(self)?)
    }

    /// Takes back what was written. Only for whoever holds the lock.
    pub fn remove(home: &Home) -> io::Result<()> {
        fs::remove_file(file(home))
    }

    /// The gateway of this home, if one runs.
    pub fn find(home: &Home) -> Option<Running> {
        // The file outlives a gateway that was killed; its lock does not.
        let content = fs::read(file(home)).ok().filter(|_| Lock::is_held(&lock(home)))?;
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
    fn a_gateway_is_found_while_it_runs() {
        let temp = tempfile::tempdir().unwrap();
        let home = crate::testing::home(temp.path());
        home.ensure().unwrap();
        let lock = Running::claim(&home).unwrap().unwrap();
        assert!(Running::claim(&home).unwrap().is_none(), "one at a time");
        assert_eq!(Running::find(&home), None, "it has not said where yet");
        let running = Running { pid: 1, url: "http://a".into(), listen: "127.0.0.1:1".into(), started: String::new() };
        running.write(&home).unwrap();
        assert_eq!(Running::find(&home), Some(running));
        Running::remove(&home).unwrap();
        assert_eq!(Running::find(&home), None);
        drop(lock);
        assert_eq!(Running::find(&home), None);
    }
}
