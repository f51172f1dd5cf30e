//! `bowline log`: the bytes that a session's program wrote.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use bowline_client::filter::Filter;
use bowline_proto::message::State;
use bowline_session::archive::{ArchiveError, LogFile};
use bowline_session::home::Home;
use bowline_session::registry::{self, Entry};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;

use crate::args;
use crate::failure::{Code, Failure};

/// How long to wait for a change before looking all the same.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(verb: &args::Log) -> anyhow::Result<ExitCode> {
    let entry = registry::find(&Home::from_env()?, &verb.session)?;
    let log = LogFile::open(&entry.dir)?;
    let (start, end) = log.range()?;
    let mut at = verb.from.unwrap_or(start);
    let until = verb.to.unwrap_or(end);
    if at < start || at > end || until > end || until < at {
        let message = format!("bytes {at} to {until} were asked for; {start} to {end} are kept");
        return Err(Failure::new(Code::Other, message, "start sessions with a larger --log-size to keep more").into());
    }
    let mut out = Output::new();
    at = copy(&log, at, until, &mut out)?;
    if verb.follow {
        follow(&entry, &log, at, &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn copy(log: &LogFile, mut at: u64, until: u64, out: &mut Output) -> anyhow::Result<u64> {
    let mut buf = vec![0; 64 << 10];
    while at < until {
        let want = buf.len().min((until - at) as usize);
        match log.read(at, &mut buf[..want]) {
            Ok(0) => break,
            Ok(n) => {
                out.write(&buf[..n])?;
                at += n as u64;
            }
            // It was overwritten while we were busy writing what came before.
            Err(ArchiveError::Trimmed { start, .. }) if start > at => {
                eprintln!("\nbowline: bytes {at} to {start} were overwritten before they could be printed");
                at = start;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(at)
}

/// Goes on with what comes until the session has ended and everything is printed.
fn follow(entry: &Entry, log: &LogFile, mut at: u64, out: &mut Output) -> anyhow::Result<()> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    for file in [entry.dir.log(), entry.dir.events()] {
        inotify::add_watch(&watch, &file, inotify::WatchFlags::MODIFY)?;
    }
    loop {
        // The state first: what was written before it ended is in the log by then.
        let ended = registry::read(entry.dir.clone()).is_none_or(|now| now.info.state != State::Running);
        let (_, end) = log.range()?;
        at = copy(log, at, end, out)?;
        if ended {
            return Ok(());
        }
        let mut fds = [PollFd::new(&watch, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&LOOK.try_into()?));
        let mut drain = [0; 4096];
        while rustix::io::read(&watch, &mut drain).is_ok_and(|n| n > 0) {}
    }
}

/// Standard output: as it is, or, in a terminal, without what would make it answer.
struct Output {
    filter: Option<Filter>,
    filtered: Vec<u8>,
}

impl Output {
    fn new() -> Output {
        Output { filter: std::io::stdout().is_terminal().then(Filter::new), filtered: Vec::new() }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        match &mut self.filter {
            None => stdout.write_all(bytes)?,
            Some(filter) => {
                self.filtered.clear();
                filter.filter(bytes, &mut self.filtered);
                stdout.write_all(&self.filtered)?;
            }
        }
        stdout.flush()
    }
}
