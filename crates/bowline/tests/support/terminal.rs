//! A terminal for tests: a PTY with an emulator that shows what a user would see and collects its replies to queries.

use std::io::Write;
use std::process::Child;
use std::time::{Duration, Instant};

use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use pty_process::blocking::{Command, Pty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, tcgetattr};

use super::{PATIENCE, World};

/// A terminal that runs `bowline`.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    pub(crate) screen: Screen,
    /// Every byte received.
    pub(crate) raw: Vec<u8>,
    /// Bytes per read and the pause before each; see [`Terminal::slow_down`].
    pace: Option<(usize, Duration)>,
    /// What the emulator would have sent in reply to queries.
    pub(crate) replies: Vec<u8>,
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
        Terminal { pty, child, screen, raw: Vec::new(), pace: None, replies: Vec::new() }
    }

    /// Attaches to a session in a terminal of 80 by 24.
    pub(crate) fn attach(world: &World, session: &str) -> Terminal {
        Terminal::run(world, &["attach", session], 80, 24)
    }

    /// Starts the session `w`, which echoes its input, in the world `server`, and attaches to it from `client`.
    pub(crate) fn attach_to_cat(server: &World, client: &World) -> Terminal {
        server.start("w", "echo here; cat");
        server.wait_for_screen("w", "here");
        let mut terminal = Terminal::attach(client, "w");
        terminal.wait_for("here");
        terminal
    }

    /// Kills the session `w`, and checks that the attach ends with the exit code of its program.
    pub(crate) fn assert_ended_by_kill(&mut self, server: &World) {
        server.ok(&["kill", "w", "--grace", "1s"]);
        let code = self.exit_code();
        assert!([129, 137].contains(&code), "{code}: {}", self.text());
    }

    /// Presses Enter to reconnect to a session that echoes, and checks that typing works again.
    pub(crate) fn reconnect_with_enter(&mut self) {
        self.press(b"\r");
        self.wait_gone("[bowline");
        self.press(b"back\r");
        self.wait_for("back\nback");
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.pty.write_all(keys).unwrap();
    }

    /// Waits until `bowline` has read every key.
    pub(crate) fn wait_until_keys_read(&mut self) {
        let stdin = std::fs::File::open(format!("/proc/{}/fd/0", self.child.id())).unwrap();
        self.wait_until("keys are read", |_| rustix::io::ioctl_fionread(&stdin).unwrap() == 0);
    }

    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        self.pty.resize(pty_process::Size::new(rows, cols)).unwrap();
        self.screen.resize(Size::new(cols.into(), rows.into()).unwrap());
    }

    /// The visible text.
    pub(crate) fn text(&mut self) -> String {
        self.screen.text(0)
    }

    /// The visible rows, including blank ones.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let text = self.text();
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.resize(usize::from(self.screen.size().rows()), String::new());
        rows
    }

    /// The scrollback and the visible text.
    pub(crate) fn history(&mut self) -> String {
        self.screen.text(5000)
    }

    /// Waits until `text` is visible.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} is visible"), |terminal| terminal.text().contains(text));
    }

    /// Waits until `text` is no longer visible.
    #[track_caller]
    pub(crate) fn wait_gone(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} is gone"), |terminal| !terminal.text().contains(text));
    }

    /// Waits until `holds` returns true, reading output meanwhile. Panics with `fact` if it never does.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, fact: &str, mut holds: impl FnMut(&mut Terminal) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let open = self.read();
            let late = Instant::now() > deadline || !open;
            assert!(!late || holds(self), "not in {PATIENCE:?}: {fact}; visible:\n{}", self.text());
        }
    }

    /// Makes the terminal slow: it reads at most `bytes` at a time, with a pause before each read.
    pub(crate) fn slow_down(&mut self, bytes: usize, pause: Duration) {
        self.pace = Some((bytes, pause));
    }

    /// Reads output for up to 20 ms. Returns false at the end of the output.
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
                self.replies.extend(self.screen.take_replies());
                true
            }
        }
    }

    /// Waits until `bowline` exits and all its output is read; returns its exit code.
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

    /// Whether the terminal is in raw mode: no line editing, no echo.
    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.pty).unwrap().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Queries the emulator whether a private mode is set.
    pub(crate) fn has_mode(&mut self, mode: u16) -> bool {
        self.screen.advance(format!("\x1b[?{mode}$p").as_bytes());
        let reply = String::from_utf8(self.screen.take_replies()).unwrap();
        assert!(reply.starts_with(&format!("\x1b[?{mode};")), "{reply:?}");
        reply.ends_with(";1$y")
    }

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
