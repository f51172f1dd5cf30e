//! What a user has in a terminal window: `bowline attach`, and what could be picked instead of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::place::{Place, Process};
use crate::pty::PtyChild;
use crate::session::{Bowline, Session};

/// A program that keeps terminals and shows them in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mux {
    /// This project's own command line.
    Bowline,
    /// tmux: one server for all sessions.
    Tmux,
    /// GNU screen: a process a session.
    Screen,
    /// dtach: a process a session, without a screen of its own.
    Dtach,
}

/// Until a client that was started is there for certain.
const DRAWN: Duration = Duration::from_millis(300);
/// Settings of screen, in its directory.
const SCREENRC: &str = "screenrc";

/// All of them.
const ALL: [Mux; 4] = [Mux::Bowline, Mux::Tmux, Mux::Screen, Mux::Dtach];

impl Mux {
    fn program(self) -> &'static str {
        match self {
            Mux::Bowline => "bowline",
            Mux::Tmux => "tmux",
            Mux::Screen => "screen",
            Mux::Dtach => "dtach",
        }
    }

    /// Whether a late attach shows what was printed before.
    pub(crate) fn has_screen(self) -> bool {
        self != Mux::Dtach
    }

    /// Name and version.
    fn version(self) -> Option<String> {
        let flag = if self == Mux::Tmux { "-V" } else { "--version" };
        let output = Command::new(self.program()).arg(flag).output().ok()?;
        let words = String::from_utf8_lossy(&output.stdout).replace("version", "");
        let number = words.split_whitespace().find(|word| word.contains(|c: char| c.is_ascii_digit()))?;
        Some(format!("{} {number}", self.program()))
    }
}

/// Those that are installed, each with its name and version.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) others: Vec<(Mux, String)>,
    bowline_attaches: bool,
}

impl Installed {
    /// Looks what there is.
    pub(crate) fn find(bowline: &Bowline) -> Installed {
        let others = ALL.into_iter().filter(|mux| *mux != Mux::Bowline).filter_map(|mux| Some((mux, mux.version()?)));
        let attaches = Command::new(bowline.program()).args(["attach", "--help"]).output();
        Installed { others: others.collect(), bowline_attaches: attaches.is_ok_and(|output| output.status.success()) }
    }

    /// All of them, Bowline first.
    pub(crate) fn all(&self) -> Vec<Mux> {
        let own = self.bowline_attaches.then_some(Mux::Bowline);
        own.into_iter().chain(self.others.iter().map(|(mux, _)| *mux)).collect()
    }

    pub(crate) fn name(&self, mux: Mux) -> &str {
        self.others.iter().find(|(other, _)| *other == mux).map_or("bowline attach", |(_, name)| name)
    }
}

/// Sessions of one of them. They end with this value.
#[derive(Debug)]
pub(crate) struct Kept {
    mux: Mux,
    directory: PathBuf,
    /// The bowline binary.
    own: String,
    env: Vec<(String, String)>,
    /// Bowline's, where that is what it is.
    sessions: Vec<Session>,
    /// The processes that hold the sessions of the others.
    holders: Vec<Process>,
    count: usize,
}

impl Kept {
    /// Starts `count` sessions with a program in each.
    pub(crate) fn start(mux: Mux, place: &Place, bowline: &Bowline, program: &[&str], count: usize) -> Result<Kept> {
        let directory = place.path().join(mux.program());
        fs::create_dir_all(&directory)?;
        set_private(&directory)?;
        // Without a login record, which needs a file that not every machine has and a message that hides the screen.
        fs::write(directory.join(SCREENRC), "startup_message off\ndeflogin off\n")?;
        let mut env = bowline.env();
        env.push(("SCREENDIR".into(), directory.display().to_string()));
        env.push(("TMUX".into(), String::new()));
        let own = bowline.program().display().to_string();
        let mut kept = Kept { mux, directory, own, env, sessions: Vec::new(), holders: Vec::new(), count };
        for n in 0..count {
            if mux == Mux::Bowline {
                kept.sessions.push(bowline.start(program)?);
                continue;
            }
            let argv = kept.start_argv(n, program);
            kept.run(&argv)?;
            if mux != Mux::Tmux {
                kept.holders.push(kept.find_holder(n)?);
            } else if n == 0 {
                let pid = kept.run(&kept.tmux(&["display-message", "-p", "#{pid}"]))?;
                kept.holders.push(Process::adopt(pid.trim().parse()?)?);
                kept.run(&kept.tmux(&["set-option", "-g", "status", "off"]))?;
            }
        }
        Ok(kept)
    }

    /// The processes that hold the sessions.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let own = self.sessions.iter().map(Session::pid);
        own.chain(self.holders.iter().map(Process::pid)).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Attaches to the first session, in a terminal, and returns when it shows `mark`.
    pub(crate) fn attach_at(&self, mark: &[u8]) -> Result<PtyChild> {
        let client = self.attach()?;
        if self.mux.has_screen() {
            client.read_until(mark)?;
        }
        // Some draw more than once at first, and one has nothing to show.
        std::thread::sleep(DRAWN);
        Ok(client)
    }

    /// Attaches to the first session, in a terminal.
    pub(crate) fn attach(&self) -> Result<PtyChild> {
        let argv = match self.mux {
            Mux::Bowline => {
                let session = self.sessions.first().context("no session")?;
                vec![self.own.clone(), "attach".into(), session.id.clone()]
            }
            Mux::Tmux => self.tmux(&["attach-session", "-t", "s0"]),
            Mux::Screen => ["screen", "-r", "s0"].map(String::from).into(),
            Mux::Dtach => ["dtach", "-a", &self.directory.join("s0").display().to_string(), "-E", "-r", "winch"]
                .map(String::from)
                .into(),
        };
        PtyChild::spawn(&argv, &self.env)
    }

    fn start_argv(&self, n: usize, program: &[&str]) -> Vec<String> {
        let name = format!("s{n}");
        let own: Vec<String> = match self.mux {
            Mux::Bowline => Vec::new(),
            Mux::Tmux => self.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-s", &name]),
            Mux::Screen => {
                ["screen", "-c", "/dev/null", "-h", "2000", "-d", "-m", "-S", &name].map(String::from).into()
            }
            Mux::Dtach => ["dtach", "-n", &self.directory.join(name).display().to_string()].map(String::from).into(),
        };
        own.into_iter().chain(program.iter().map(|arg| (*arg).to_owned())).collect()
    }

    fn tmux(&self, args: &[&str]) -> Vec<String> {
        let socket = self.directory.join("server").display().to_string();
        ["tmux", "-f", "/dev/null", "-S", &socket].iter().chain(args).map(|arg| (*arg).to_owned()).collect()
    }

    fn run(&self, argv: &[String]) -> Result<String> {
        let (program, args) = argv.split_first().context("no program")?;
        let output = Command::new(program)
            .args(args)
            .envs(self.env.iter().cloned())
            .output()
            .with_context(|| program.clone())?;
        if !output.status.success() {
            bail!("{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The process that holds session `n`: screen names its socket after it, dtach is found by its arguments.
    fn find_holder(&self, n: usize) -> Result<Process> {
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            let pid = match self.mux {
                Mux::Screen => {
                    names(&self.directory).find_map(|name| name.strip_suffix(&format!(".s{n}"))?.parse().ok())
                }
                _ => {
                    let socket = self.directory.join(format!("s{n}")).display().to_string();
                    names(Path::new("/proc"))
                        .filter_map(|name| name.parse().ok())
                        .find(|pid| has_argument(*pid, &socket))
                }
            };
            if let Some(pid) = pid {
                return Process::adopt(pid);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} started no session", self.mux.program())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.sessions.clear();
        self.holders.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(directory).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

fn has_argument(pid: u32, wanted: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|b| *b == 0).any(|argument| argument == wanted.as_bytes())
}

fn set_private(directory: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?)
}
