//! Finds every process that a session started, including those that left its process group or its terminal.
//!
//! The session process is a subreaper: it adopts processes whose parents exit, so a process cannot leave
//! the tree by forking twice. Some programs are spared on purpose: see [`SPARED`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;

use bowline_host::leftovers::{ProcessStat, SPARED, all_processes};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process in the tree, held by a pidfd so that a signal cannot reach another process that reuses its pid.
#[derive(Debug)]
pub struct Member {
    pub pid: Pid,
    pidfd: OwnedFd,
}

impl Member {
    /// Asks it to exit. A stopped process would not handle that, so it is continued.
    pub fn ask_to_exit(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Sends a signal. Returns `false` if this is not permitted, as for a process that `sudo` started for
    /// another user. A process that has ended in the meantime is not an error.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.pidfd, signal) != Err(Errno::PERM)
    }
}

/// All running descendants of this process, except for spared programs and their descendants. The session's own
/// `program` is never spared: ending a session that runs `screen` ends that `screen`.
pub fn members(program: Option<Pid>) -> io::Result<Vec<Member>> {
    let program = program.map_or(0, |program| program.as_raw_nonzero().get());
    let root = rustix::process::getpid().as_raw_nonzero().get();
    let before = all_processes()?;
    let opened: Vec<Member> = descendants(&before, root, program)
        .into_iter()
        .filter_map(|pid| {
            let pid = Pid::from_raw(pid)?;
            Some(Member { pid, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok()? })
        })
        .collect();
    // A pid may have been reused between the listing and `pidfd_open`: keep only what is a descendant now, too.
    let now = descendants(&all_processes()?, root, program);
    Ok(opened.into_iter().filter(|member| now.contains(&member.pid.as_raw_nonzero().get())).collect())
}

fn descendants(all: &BTreeMap<i32, ProcessStat>, root: i32, program: i32) -> BTreeSet<i32> {
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
            if !stat.is_zombie {
                found.insert(*pid);
            }
        }
    }
    found
}

/// Running descendants of this process that belong to another session, in the sense of `setsid`, than `program`, and were
/// started in this time, in clock ticks after the boot. Agents run each tool in a session of its own, but not the servers
/// that they need as long as they live.
pub fn tools(program: Pid, since: u64, until: Option<u64>) -> io::Result<Vec<Member>> {
    let all = all_processes()?;
    let session = all.get(&program.as_raw_nonzero().get()).map(|stat| stat.session);
    let is_tool = |member: &Member| {
        let stat = all.get(&member.pid.as_raw_nonzero().get());
        let is_in_time = |stat: &ProcessStat| stat.start >= since && until.is_none_or(|until| stat.start <= until);
        stat.is_some_and(|stat| is_in_time(stat) && Some(stat.session) != session)
    };
    Ok(members(Some(program))?.into_iter().filter(is_tool).collect())
}

/// Now, in clock ticks after the boot.
pub fn now_in_ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    now.tv_sec.cast_unsigned() * per_second + now.tv_nsec.cast_unsigned() * per_second / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r31_spared_programs_keep_their_children() {
        let stat =
            |parent, name: &str| ProcessStat { parent, name: name.into(), is_zombie: false, session: 0, start: 0 };
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
