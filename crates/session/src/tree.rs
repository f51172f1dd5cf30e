//! Everything that a session started, also what left its process group or its terminal.
//!
//! The session process is a subreaper: a child whose parents end becomes its own, so nothing can leave the tree by
//! forking twice. What is spared is a documented choice: see [`SPARED`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Programs that users start from a terminal and mean to outlive it, by the name the kernel knows them by. Ending a
/// session leaves them and what they started alone; everything else goes.
pub const SPARED: [&str; 7] =
    ["bowline-session", "tmux: server", "screen", "gpg-agent", "ssh-agent", "dbus-daemon", "dtach"];

/// A process of the tree, held so that its number cannot come to mean another one.
#[derive(Debug)]
pub struct Member {
    /// Its number.
    pub pid: Pid,
    handle: OwnedFd,
}

impl Member {
    /// Sends a signal, and tells whether that was allowed. A process of another user (by `sudo`, say) is out of reach;
    /// one that has ended meanwhile is not an error.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.handle, signal) != Err(Errno::PERM)
    }
}

#[derive(Debug)]
struct Stat {
    parent: i32,
    name: String,
    zombie: bool,
}

/// All living descendants of this process, without the spared ones and theirs. The session's own `program` is never
/// spared: who ends a session that runs screen means screen.
pub fn members(program: Pid) -> io::Result<Vec<Member>> {
    let program = program.as_raw_nonzero().get();
    let root = rustix::process::getpid().as_raw_nonzero().get();
    let before = snapshot()?;
    let held: Vec<Member> = descendants(&before, root, program)
        .into_iter()
        .filter_map(|pid| {
            let pid = Pid::from_raw(pid)?;
            Some(Member { pid, handle: pidfd_open(pid, PidfdFlags::empty()).ok()? })
        })
        .collect();
    // A number may have changed hands between the look and the hold: what is held counts only if it is still ours.
    let now = descendants(&snapshot()?, root, program);
    Ok(held.into_iter().filter(|member| now.contains(&member.pid.as_raw_nonzero().get())).collect())
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

fn snapshot() -> io::Result<BTreeMap<i32, Stat>> {
    let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(|pid| Some((pid, parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect())
}

/// `pid (name) state parent ...`, where the name may hold anything, brackets too.
fn parse(stat: &str) -> Option<Stat> {
    let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?;
    let mut rest = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = rest.next()?;
    Some(Stat { parent: rest.next()?.parse().ok()?, name: name.to_owned(), zombie: matches!(state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_confuse_the_parser() {
        let stat = parse("7 (a) R 1 (b) S 42 7 7 0 -1").unwrap();
        assert_eq!((stat.parent, stat.name.as_str(), stat.zombie), (42, "a) R 1 (b", false));
        assert!(parse("7 nothing").is_none());
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
