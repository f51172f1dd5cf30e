//! Finds and ends processes that an agent session started and that outlived its session process.
//!
//! A dead session process cannot name its descendants any more. Its agent's program is recorded in a file, by its process
//! id and start time; what that started are its descendants. Other processes are known by the session's id in their
//! environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::home::SessionDir;

/// The kernel's name (`comm`) of a session process.
const SESSION_PROCESS: &str = "bowline-session";
/// Programs that users and agents start and expect to outlive what started them, by their kernel name. Ending a session
/// ends neither them nor their descendants.
pub const SPARED: [&str; 7] =
    [SESSION_PROCESS, "tmux: server", "screen", "gpg-agent", "ssh-agent", "dbus-daemon", "dtach"];

/// How long they may take to exit after SIGTERM. After that they are killed.
const EXIT_WITHIN: Duration = Duration::from_secs(2);
/// The most bytes of an environment that are read. The kernel's limit for arguments and environment is lower.
const MAX_ENVIRONMENT: u64 = 8 << 20;
/// The most bytes of the file that records a program.
const MAX_RECORD: u64 = 4 << 10;

/// A process, so that it is not taken for another one that got its id later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    pid: i32,
    /// In clock ticks after the boot.
    start: u64,
}

impl ProcessRecord {
    /// Records a running process.
    pub fn of(pid: Pid) -> Option<ProcessRecord> {
        let pid = pid.as_raw_nonzero().get();
        Some(ProcessRecord { pid, start: ProcessStat::read(pid)?.start })
    }

    /// Writes the record of a session's agent program. On error, the program is still known by its environment.
    pub fn write(&self, dir: &SessionDir) -> io::Result<()> {
        files::write_whole(&dir.agent(), &serde_json::to_vec(self)?)
    }

    fn read(dir: &SessionDir) -> Option<ProcessRecord> {
        serde_json::from_slice(&files::read(&dir.agent(), MAX_RECORD).ok()?).ok()
    }

    fn is_running(&self) -> bool {
        ProcessStat::read(self.pid).is_some_and(|stat| stat.start == self.start && !stat.is_zombie)
    }
}

/// Whether the recorded agent program of a session is running.
pub fn has_agent(dir: &SessionDir) -> bool {
    ProcessRecord::read(dir).is_some_and(|record| record.is_running())
}

/// Ends all processes of this user that a session started. Only for a session whose process has ended. An error if its
/// agent's program does not end.
pub fn end(dir: &SessionDir) -> io::Result<()> {
    let found = find(dir)?;
    for process in &found {
        let _ = pidfd_send_signal(process, Signal::TERM);
        let _ = pidfd_send_signal(process, Signal::CONT); // a stopped process would not handle SIGTERM
    }
    wait(&found, EXIT_WITHIN);
    // Also those that they started meanwhile.
    let left = find(dir)?;
    for process in &left {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    wait(&left, EXIT_WITHIN);
    if has_agent(dir) {
        return Err(io::Error::other("the agent of an earlier session process does not end"));
    }
    Ok(())
}

/// Waits until the processes have ended.
fn wait(processes: &[OwnedFd], within: Duration) {
    let deadline = Instant::now() + within;
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], left.try_into().ok().as_ref());
    }
}

fn find(dir: &SessionDir) -> io::Result<Vec<OwnedFd>> {
    let variable = format!("BOWLINE_SESSION={}", dir.id());
    let all = all_processes()?;
    let recorded = ProcessRecord::read(dir).filter(ProcessRecord::is_running).map(|record| record.pid);
    let marked = all.keys().copied().filter(|pid| has_variable(*pid, variable.as_bytes()));
    let spared = ancestors_of_this_process(&all);
    let ids = with_descendants(&all, recorded, marked, &spared);
    let open = |pid: i32| {
        let before = all.get(&pid)?.start;
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        // While it is open, the id cannot be reused.
        (is_own(pid) && ProcessStat::read(pid)?.start == before).then_some(process)
    };
    Ok(ids.into_iter().filter_map(open).collect())
}

/// The recorded and the marked processes and everything that they started, without spared programs and what those started.
///
/// Session processes above them spare nothing: what a session process starts is marked as its own. The agent may be below
/// its dead session process, which releases its lock before its children get another parent, and below the session in
/// which its own one was started.
fn with_descendants(
    all: &BTreeMap<i32, ProcessStat>,
    recorded: Option<i32>,
    marked: impl Iterator<Item = i32>,
    spared: &BTreeSet<i32>,
) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    all.iter().for_each(|(pid, stat)| children.entry(stat.parent).or_default().push(*pid));
    let is_spared =
        |pid: &i32| spared.contains(pid) || all.get(pid).is_none_or(|stat| SPARED.contains(&stat.name.as_str()));
    let outliving: Vec<&str> = SPARED.into_iter().filter(|name| *name != SESSION_PROCESS).collect();
    let below_spared = |pid: i32| {
        let mut parent = all.get(&pid).map(|stat| stat.parent);
        while let Some(stat) = parent.filter(|pid| *pid > 1).and_then(|pid| all.get(&pid)) {
            if outliving.contains(&stat.name.as_str()) {
                return true;
            }
            parent = Some(stat.parent);
        }
        false
    };
    let (mut found, mut todo) = (BTreeSet::new(), recorded.into_iter().collect::<Vec<_>>());
    todo.extend(marked.filter(|pid| !below_spared(*pid)));
    while let Some(pid) = todo.pop() {
        if !is_spared(&pid) && found.insert(pid) {
            todo.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// This process and those that started it: a gateway may run in a session.
fn ancestors_of_this_process(all: &BTreeMap<i32, ProcessStat>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut pid = std::process::id().cast_signed();
    while found.insert(pid) {
        match all.get(&pid) {
            Some(stat) if stat.parent > 1 => pid = stat.parent,
            _ => break,
        }
    }
    found
}

/// What `/proc/PID/stat` says about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    pub parent: i32,
    /// The kernel's name for the program.
    pub name: String,
    pub is_zombie: bool,
    /// The session that it belongs to, in the sense of `setsid`.
    pub session: i32,
    /// In clock ticks after the boot.
    pub start: u64,
}

impl ProcessStat {
    pub fn read(pid: i32) -> Option<ProcessStat> {
        ProcessStat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses `pid (name) state parent ...`. The name may contain anything, including parentheses.
    fn parse(stat: &str) -> Option<ProcessStat> {
        let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?.to_owned();
        let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        let start = fields.get(19).and_then(|start| start.parse().ok()).unwrap_or(0);
        let is_zombie = matches!(*fields.first()?, "Z" | "X");
        Some(ProcessStat { parent: number(1)?, name, is_zombie, session: number(3).unwrap_or(0), start })
    }
}

/// Every process of the machine, by its id.
pub fn all_processes() -> io::Result<BTreeMap<i32, ProcessStat>> {
    let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(|pid| Some((pid, ProcessStat::read(pid)?))).collect())
}

fn is_own(pid: i32) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == me || me == 0)
}

fn has_variable(pid: i32, variable: &[u8]) -> bool {
    let file = fs::File::open(format!("/proc/{pid}/environ"));
    let environment = file.and_then(|file| files::read_open(&file, MAX_ENVIRONMENT));
    environment.is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use bowline_proto::ids::SessionId;

    use super::*;
    use crate::home::Home;

    fn session(temp: &tempfile::TempDir, n: u8) -> SessionDir {
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([n; 12]));
        fs::create_dir(dir.path()).unwrap();
        dir
    }

    /// A shell that has printed, so that its traps are set.
    fn spawn(session: Option<&SessionDir>, script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).env_remove("BOWLINE_SESSION");
        session.iter().for_each(|dir| _ = command.env("BOWLINE_SESSION", dir.id().as_str()));
        let mut child = command.spawn().unwrap();
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 2]).unwrap();
        child
    }

    #[test]
    fn r42_only_processes_of_the_session_are_ended() {
        let temp = tempfile::tempdir().unwrap();
        let [dir, other] = [41, 42].map(|n| session(&temp, n));
        let mut ended = [
            spawn(Some(&dir), "echo a; exec sleep 600"),
            spawn(Some(&dir), "trap '' TERM; echo a; while :; do sleep 600; done"),
            // It has no variable, but is recorded, and so is what it started.
            spawn(None, "env -i sleep 600 & echo a; wait"),
        ];
        let record = ProcessRecord::of(Pid::from_child(&ended[2])).unwrap();
        record.write(&dir).unwrap();
        assert!(has_agent(&dir) && !has_agent(&other));
        let mut kept = spawn(Some(&other), "echo a; exec sleep 600");
        let children =
            with_descendants(&all_processes().unwrap(), Some(record.pid), std::iter::empty(), &BTreeSet::new());
        assert_eq!(children.len(), 2, "the shell and its child");
        end(&dir).unwrap();
        for child in &mut ended {
            assert!(!child.wait().unwrap().success());
        }
        assert!(!has_agent(&dir));
        assert!(children.iter().all(|pid| ProcessStat::read(*pid).is_none_or(|stat| stat.is_zombie)));
        assert!(kept.try_wait().unwrap().is_none());
        kept.kill().unwrap();
        kept.wait().unwrap();
    }

    #[test]
    fn r42_a_process_that_got_the_id_later_is_not_the_recorded_one() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp, 43);
        let own = ProcessRecord::of(rustix::process::getpid()).unwrap();
        ProcessRecord { start: own.start + 1, ..own }.write(&dir).unwrap();
        assert!(!has_agent(&dir));
        fs::write(dir.agent(), "nonsense").unwrap();
        assert!(!has_agent(&dir));
    }

    #[test]
    fn r31_spared_programs_keep_their_children_and_this_process_is_never_ended() {
        let stat =
            |parent, name: &str| ProcessStat { parent, name: name.into(), is_zombie: false, session: 0, start: 0 };
        let all = BTreeMap::from([
            (10, stat(1, "node")),
            (11, stat(10, "tmux: server")),
            (12, stat(11, "vim")),
            (13, stat(10, "sh")),
            (14, stat(13, "bowline")),
        ]);
        let found = |spared: &[i32]| {
            with_descendants(&all, Some(10), [10, 12, 13].into_iter(), &spared.iter().copied().collect())
        };
        assert_eq!(found(&[]), BTreeSet::from([10, 13, 14]));
        assert_eq!(found(&[14, 13]), BTreeSet::from([10]));
        assert!(ancestors_of_this_process(&all_processes().unwrap()).contains(&std::process::id().cast_signed()));
    }

    #[test]
    fn r33_a_session_process_above_an_agent_does_not_spare_it() {
        let stat =
            |parent, name: &str| ProcessStat { parent, name: name.into(), is_zombie: false, session: 0, start: 0 };
        let all = BTreeMap::from([
            (20, stat(1, "bowline-session")),
            (21, stat(20, "bash")),
            (22, stat(20, "bowline-session")),
            (23, stat(22, "node")),
            (24, stat(23, "sh")),
            (25, stat(20, "make")),
            (26, stat(23, "bowline-session")),
            (27, stat(26, "vim")),
        ]);
        // The agent 23 of the session process 22, which was started in another session, and 25, which 23 has left behind.
        let found = with_descendants(&all, Some(23), [24, 25].into_iter(), &BTreeSet::new());
        assert_eq!(found, BTreeSet::from([23, 24, 25]));
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_parser() {
        let stat = ProcessStat::parse("7 (a) R 1 (b) S 42 7 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 555 0").unwrap();
        assert_eq!((stat.parent, stat.name.as_str(), stat.is_zombie), (42, "a) R 1 (b", false));
        assert_eq!((stat.session, stat.start), (9, 555));
        assert!(ProcessStat::parse("7 nothing").is_none());
    }
}
