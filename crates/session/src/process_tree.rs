//! Finds every process that a session started, including those that left its process group or its terminal.
//!
//! The session process is a subreaper: it adopts processes whose parents exit, so a process cannot leave
//! the tree by forking twice. Some programs are spared on purpose: see [`SPARED`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Programs that users start in a terminal but expect to outlive it, by their kernel name (`comm`). Ending
/// a session does not kill them or their descendants.
pub const SPARED: [&str; 7] =
    ["bowline-session", "tmux: server", "screen", "gpg-agent", "ssh-agent", "dbus-daemon", "dtach"];

/// A process in the tree, held by a pidfd so that a signal cannot reach another process that reuses its pid.
#[derive(Debug)]
pub struct Member {
    pub pid: Pid,
    pidfd: OwnedFd,
}

impl Member {
    /// Sends a signal. Returns `false` if this is not permitted, as for a process that `sudo` started for
    /// another user. A process that has ended in the meantime is not an error.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.pidfd, signal) != Err(Errno::PERM)
    }
}

#[derive(Debug)]
struct Stat {
    parent: i32,
    name: String,
    zombie: bool,
}

/// All running descendants of this process, except for spared programs and their descendants. The session's own
/// `program` is never spared: ending a session that runs `screen` ends that `screen`.
pub fn members(program: Pid) -> io::Result<Vec<Member>> {
    let program = program.as_raw_nonzero().get();
    let root = rustix::process::getpid().as_raw_nonzero().get();
    let before = read_processes()?;
    let opened: Vec<Member> = descendants(&before, root, program)
        .into_iter()
        .filter_map(|pid| {
            let pid = Pid::from_raw(pid)?;
            Some(Member { pid, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok()? })
        })
        .collect();
    // A pid may have been reused between the listing and `pidfd_open`: keep only what is a descendant now, too.
    let now = descendants(&read_processes()?, root, program);
    Ok(opened.into_iter().filter(|member| now.contains(&member.pid.as_raw_nonzero().get())).collect())
}

fn descendants(all: &BTreeMap<i32, Stat>, root: i32, program: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let (mut found, mut todo) = (BTreeSet::new(), vec![root]);
    while let Some(parent) = todo.pop() {
        for pid in children.get(&parent).into_iter().flatten() {
            let Some(stat) = all.get(pid) else { continue };
            if *pid != program && SPARED.contains(&stat.name.as_str()) {
                continue;
            }
            todo.push(*pid);
            if !stat.zombie {
                found.insert(*pid);
            }
        }
    }
    found
}

/// Reads `/proc/PID/stat` of every process.
fn read_processes() -> io::Result<BTreeMap<i32, Stat>> {
    let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids
        .filter_map(|pid| Some((pid, parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect())
}

/// Parses `pid (name) state parent ...`. The name may contain anything, including parentheses.
fn parse_stat(stat: &str) -> Option<Stat> {
    let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?;
    let mut rest = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = rest.next()?;
    Some(Stat { parent: rest.next()?.parse().ok()?, name: name.to_owned(), zombie: matches!(state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_parser() {
        let stat = parse_stat("7 (a) R 1 (b) S 42 7 7 0 -1").unwrap();
        assert_eq!((stat.parent, stat.name.as_str(), stat.zombie), (42, "a) R 1 (b", false));
        assert!(parse_stat("7 nothing").is_none());
    }

    #[test]
    fn r31_spared_programs_keep_their_children() {
        let stat = |parent, name: &str| Stat { parent, name: name.into(), zombie: false };
        let all = BTreeMap::from([
            (2, stat(1, "bash")),
            (3, stat(1, "tmux: server")),
            (4, stat(3, "vim")),
            (5, stat(2, "sleep")),
            (6, stat(9, "other")),
        ]);
        assert_eq!(descendants(&all, 1, 2), BTreeSet::from([2, 5]));
        assert_eq!(descendants(&all, 1, 3), BTreeSet::from([2, 3, 4, 5]), "the session's own program is never spared");
    }
}
