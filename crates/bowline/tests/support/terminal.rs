//! A terminal to sit at: a PTY with an emulator behind it that shows what a person would see, and answers if it is asked.

use std::io::Write;
use std::process::Child;
use std::time::{Duration, Instant};

use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use pty_process::blocking::{Command, Pty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, tcgetattr};

use super::{PATIENCE, World};

/// The terminal, with a program running in it.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    pub(crate) screen: Screen,
    /// Every byte that came.
    pub(crate) raw: Vec<u8>,
    /// How slowly it reads, if it does.
    pace: Option<(usize, Duration)>,
    /// Everything that the emulator would have answered.
    pub(crate) answers: Vec<u8>,
}

impl Terminal {
    /// Runs `bowline` with these arguments in a terminal of this size.
    pub(crate) fn run(world: &World, args: &[&str], cols: u16, rows: u16) -> Terminal {
        let bowline = world.bowline(args);
        let mut command = Command::new(bowline.get_program()).args(args).env_clear().current_dir(world.path());
        for (name, value) in world.env() {
            command = command.env(name, value);
        }
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(rows, cols)).unwrap();
        let child = command.spawn(pts).unwrap();
        let screen = Screen::new(Size::new(cols.into(), rows.into()).unwrap(), 5000);
        Terminal { pty, child, screen, raw: Vec::new(), pace: None, answers: Vec::new() }
    }

    /// Attaches to a session in a terminal of 80 by 24.
    pub(crate) fn attach(world: &World, session: &str) -> Terminal {
        Terminal::run(world, &["attach", session], 80, 24)
    }

    /// Starts the session `w`, which echoes what it gets, on one machine, and attaches to it from another or the same.
    pub(crate) fn at_cat(here: &World, there: &World) -> Terminal {
        here.start("w", "echo here; cat");
        here.wait_for_screen("w", "here");
        let mut terminal = Terminal::attach(there, "w");
        terminal.wait_for("here");
        terminal
    }

    /// Ends the session `w`; the attach must end as its program did.
    pub(crate) fn is_ended_by_kill(&mut self, here: &World) {
        here.ok(&["kill", "w", "--grace", "1s"]);
        let code = self.exit_code();
        assert!([129, 137].contains(&code), "{code}: {}", self.text());
    }

    /// Retries the connection to a session that echoes, and types to it again.
    pub(crate) fn comes_back_by_enter(&mut self) {
        self.press(b"\r");
        self.wait_gone("[bowline");
        self.press(b"back\r");
        self.wait_for("back\nback");
    }

    /// Types keys.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.pty.write_all(keys).unwrap();
    }

    /// Waits until the program has read every key.
    pub(crate) fn wait_for_reading(&mut self) {
        let its_end = std::fs::File::open(format!("/proc/{}/fd/0", self.child.id())).unwrap();
        self.wait_until("keys are read", |_| rustix::io::ioctl_fionread(&its_end).unwrap() == 0);
    }

    /// Changes the window's size, as dragging its corner does.
    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        self.pty.resize(pty_process::Size::new(rows, cols)).unwrap();
        self.screen.resize(Size::new(cols.into(), rows.into()).unwrap());
    }

    /// What is visible.
    pub(crate) fn text(&mut self) -> String {
        self.screen.text(0)
    }

    /// The visible rows, also blank ones.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let text = self.text();
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.resize(usize::from(self.screen.size().rows()), String::new());
        rows
    }

    /// Everything that scrolled away, and what is visible.
    pub(crate) fn history(&mut self) -> String {
        self.screen.text(5000)
    }

    /// Waits until something is visible.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} is visible"), |terminal| terminal.text().contains(text));
    }

    /// Waits until something is no longer visible.
    #[track_caller]
    pub(crate) fn wait_gone(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} is gone"), |terminal| !terminal.text().contains(text));
    }

    /// Waits for a fact about this terminal, reading what comes.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, fact: &str, mut holds: impl FnMut(&mut Terminal) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let open = self.read();
            let late = Instant::now() > deadline || !open;
            assert!(!late || holds(self), "not in {PATIENCE:?}: {fact}; visible:\n{}", self.text());
        }
    }

    /// Makes this a terminal at the end of a slow wire: at most so many bytes a read, with a pause after each.
    pub(crate) fn slow_down(&mut self, bytes: usize, pause: Duration) {
        self.pace = Some((bytes, pause));
    }

    /// Reads what comes within a moment; false at the end.
    pub(crate) fn read(&mut self) -> bool {
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let mut fds = [PollFd::new(&self.pty, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return true,
            ready => ready.unwrap(),
        };
        let mut bytes = vec![0; self.pace.map_or(65536, |(bytes, _)| bytes)];
        self.pace.iter().for_each(|(_, pause)| std::thread::sleep(*pause));
        match rustix::io::read(&self.pty, &mut bytes) {
            Err(rustix::io::Errno::INTR) => true,
            Ok(0) | Err(_) => false,
            Ok(n) => {
                self.raw.extend_from_slice(&bytes[..n]);
                self.screen.advance(&bytes[..n]);
                self.answers.extend(self.screen.take_replies());
                true
            }
        }
    }

    /// Waits for the program's end; its exit code, and everything is read.
    #[track_caller]
    pub(crate) fn exit_code(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        while self.read() {
            if self.child.try_wait().unwrap().is_some() {
                while self.read() && self.has_more() {}
                break;
            }
            assert!(Instant::now() < deadline, "it does not end; visible:\n{}", self.text());
        }
        self.child.wait().unwrap().code().unwrap()
    }

    fn has_more(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.pty, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Whether keys are handed on one by one, without echo.
    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.pty).unwrap().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Asks the emulator for a private mode: whether it is set.
    pub(crate) fn has_mode(&mut self, mode: u16) -> bool {
        self.screen.advance(format!("\x1b[?{mode}$p").as_bytes());
        let reply = String::from_utf8(self.screen.take_replies()).unwrap();
        assert!(reply.starts_with(&format!("\x1b[?{mode};")), "{reply:?}");
        reply.ends_with(";1$y")
    }

    /// The program's process.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.child.id() as i32).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
