//! Terminal multiplexers as a user runs them: `bowline attach` and its alternatives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cleanup::{Process, TempDir};
use crate::pty::PtyChild;
use crate::session::{Bowline, Session};

/// A program that keeps sessions and shows one in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mux {
    Bowline,
    /// One server for all sessions.
    Tmux,
    /// One process per session.
    Screen,
    /// One process per session; keeps no screen.
    Dtach,
}

/// How long a client may take to finish its first drawing.
const DRAWN: Duration = Duration::from_millis(300);
/// The configuration file of screen, in its directory.
const SCREENRC: &str = "screenrc";

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

    /// Whether attaching shows what was printed before.
    pub(crate) fn has_screen(self) -> bool {
        self != Mux::Dtach
    }

    /// Name and version; `None` if it is not installed.
    fn version(self) -> Option<String> {
        let flag = if self == Mux::Tmux { "-V" } else { "--version" };
        let output = Command::new(self.program()).arg(flag).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).replace("version", "");
        let number = text.split_whitespace().find(|word| word.contains(|c: char| c.is_ascii_digit()))?;
        Some(format!("{} {number}", self.program()))
    }
}

/// The installed multiplexers.
#[derive(Debug)]
pub(crate) struct InstalledMuxes {
    /// Those except Bowline, with name and version.
    pub(crate) others: Vec<(Mux, String)>,
    /// Whether the bowline binary has the verb `attach`.
    bowline_attaches: bool,
}

impl InstalledMuxes {
    pub(crate) fn find(bowline: &Bowline) -> InstalledMuxes {
        let others = ALL.into_iter().filter(|mux| *mux != Mux::Bowline).filter_map(|mux| Some((mux, mux.version()?)));
        let attaches = Command::new(bowline.program()).args(["attach", "--help"]).output();
        InstalledMuxes {
            others: others.collect(),
            bowline_attaches: attaches.is_ok_and(|output| output.status.success()),
        }
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

/// Sessions of one multiplexer. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct MuxSessions {
    mux: Mux,
    directory: PathBuf,
    /// The path of the bowline binary.
    bowline: String,
    env: Vec<(String, String)>,
    /// Only for [`Mux::Bowline`].
    sessions: Vec<Session>,
    /// The processes of the other multiplexers.
    holders: Vec<Process>,
    count: usize,
}

impl MuxSessions {
    /// Starts `count` sessions that run `program`.
    pub(crate) fn start(
        mux: Mux,
        dir: &TempDir,
        bowline: &Bowline,
        program: &[&str],
        count: usize,
    ) -> Result<MuxSessions> {
        let directory = dir.path().join(mux.program());
        fs::create_dir_all(&directory)?;
        set_private(&directory)?;
        // A login record needs a file that some machines lack, and a startup message would hide the screen.
        fs::write(directory.join(SCREENRC), "startup_message off\ndeflogin off\n")?;
        let mut env = bowline.env();
        env.push(("SCREENDIR".into(), directory.display().to_string()));
        env.push(("TMUX".into(), String::new()));
        let path = bowline.program().display().to_string();
        let mut started =
            MuxSessions { mux, directory, bowline: path, env, sessions: Vec::new(), holders: Vec::new(), count };
        for n in 0..count {
            if mux == Mux::Bowline {
                started.sessions.push(bowline.start(program)?);
                continue;
            }
            let argv = started.start_argv(n, program);
            started.run(&argv)?;
            if mux != Mux::Tmux {
                started.holders.push(started.find_holder(n)?);
            } else if n == 0 {
                let pid = started.run(&started.tmux(&["display-message", "-p", "#{pid}"]))?;
                started.holders.push(Process::adopt(pid.trim().parse()?)?);
                started.run(&started.tmux(&["set-option", "-g", "status", "off"]))?;
            }
        }
        Ok(started)
    }

    /// The processes that keep the sessions.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let own = self.sessions.iter().map(Session::pid);
        own.chain(self.holders.iter().map(Process::pid)).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Attaches to the first session, in a terminal, and waits until it shows `mark`.
    pub(crate) fn attach_and_wait(&self, mark: &[u8]) -> Result<PtyChild> {
        let client = self.attach()?;
        if self.mux.has_screen() {
            client.read_until(mark)?;
        }
        // Some draw more than once at first, and dtach shows nothing.
        std::thread::sleep(DRAWN);
        Ok(client)
    }

    /// Attaches to the first session, in a terminal.
    pub(crate) fn attach(&self) -> Result<PtyChild> {
        let argv = match self.mux {
            Mux::Bowline => {
                let session = self.sessions.first().context("no session")?;
                vec![self.bowline.clone(), "attach".into(), session.id.clone()]
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
        let command: Vec<String> = match self.mux {
            Mux::Bowline => Vec::new(),
            Mux::Tmux => self.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-s", &name]),
            Mux::Screen => {
                ["screen", "-c", "/dev/null", "-h", "2000", "-d", "-m", "-S", &name].map(String::from).into()
            }
            Mux::Dtach => ["dtach", "-n", &self.directory.join(name).display().to_string()].map(String::from).into(),
        };
        command.into_iter().chain(program.iter().map(|arg| (*arg).to_owned())).collect()
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

    /// The process of session `n`: screen has its id in the name of the socket, dtach is found by its arguments.
    fn find_holder(&self, n: usize) -> Result<Process> {
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            let pid = match self.mux {
                Mux::Screen => {
                    file_names(&self.directory).find_map(|name| name.strip_suffix(&format!(".s{n}"))?.parse().ok())
                }
                _ => {
                    let socket = self.directory.join(format!("s{n}")).display().to_string();
                    file_names(Path::new("/proc"))
                        .filter_map(|name| name.parse().ok())
                        .find(|pid| has_argument(*pid, &socket))
                }
            };
            if let Some(pid) = pid {
                return Process::adopt(pid);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} did not start session {n} within 5 s", self.mux.program())
    }
}

impl Drop for MuxSessions {
    fn drop(&mut self) {
        self.sessions.clear();
        self.holders.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn file_names(directory: &Path) -> impl Iterator<Item = String> {
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
