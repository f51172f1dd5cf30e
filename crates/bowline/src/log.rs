//! `bowline log`: prints the output of a session.

use std::process::ExitCode;

use crate::args;
use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::host::{Host, Log, LogRead};
use crate::journal;
use crate::print::SessionOutput;

/// The most bytes to read at a time.
const CHUNK: usize = 256 << 10;

pub(crate) fn run(verb: &args::Log, host: &dyn Host, config: &Config) -> anyhow::Result<ExitCode> {
    let session = host.find(&verb.session)?;
    if session.info.agent.is_some() {
        return journal::run(verb, host, &session, config);
    }
    if verb.json {
        let message = format!("{} is a terminal, whose output is not JSON", session.label());
        let hint = format!("`bowline screen {} --format json` prints its screen as JSON", session.label());
        return Err(Failure::new(Code::Usage, message, hint).into());
    }
    let log = host.log(&session, config)?;
    let (start, end) = (log.start()?, log.end()?.offset);
    let mut at = verb.from.unwrap_or(start);
    let until = verb.to.unwrap_or(end);
    check_range(at, until, start, end)?;
    let out = SessionOutput::new()?;
    at = copy(&*log, at, until, &out)?;
    if verb.follow {
        follow(&*log, at, &out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that a log from `start` to `end` has the requested range.
fn check_range(from: u64, to: u64, start: u64, end: u64) -> anyhow::Result<()> {
    let (message, hint) = if from < start {
        let message = format!("--from {from} is no longer in the log, which starts at {start}");
        (message, "a session drops its oldest output; `bowline new --log-size` sets how much it keeps")
    } else if from > end {
        (format!("--from {from} is past the end of the log, which is at {end}"), "`--follow` prints new output")
    } else if to > end {
        (format!("--to {to} is past the end of the log, which is at {end}"), "`--follow` prints new output")
    } else if to < from {
        (format!("--to {to} is before the first byte to print, {from}"), "use a --to that is larger than --from")
    } else {
        return Ok(());
    };
    Err(Failure::new(Code::Other, message, hint).into())
}

fn copy(log: &dyn Log, mut at: u64, until: u64, out: &SessionOutput) -> anyhow::Result<u64> {
    let mut buf = vec![0; CHUNK];
    while at < until {
        let want = buf.len().min((until - at) as usize);
        match log.read(at, &mut buf[..want])? {
            LogRead::Bytes(0) => break,
            LogRead::Bytes(n) => {
                out.write(&buf[..n])?;
                at += n as u64;
            }
            // The session overwrote these bytes while the ones before them were printed.
            LogRead::Trimmed(start) => {
                out.skip()?;
                eprintln!("\nbowline: bytes {at} to {start} were overwritten before they could be printed");
                at = start;
            }
        }
    }
    Ok(at)
}

/// Prints new output until the session has ended and everything is printed.
fn follow(log: &dyn Log, mut at: u64, out: &SessionOutput) -> anyhow::Result<()> {
    loop {
        let end = log.end()?;
        at = copy(log, at, end.offset, out)?;
        if end.is_final {
            return Ok(());
        }
        log.wait()?;
    }
}
