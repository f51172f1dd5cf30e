//! `bowline log` of an agent session: prints its conversation as text, or its journal as JSON.

use std::process::ExitCode;

use bowline_client::conversation::{Style, Transcript};
use bowline_client::{FollowEvent, Follower, Outcome};
use bowline_proto::api::EventRecord;
use bowline_proto::ids::Epoch;
use bowline_proto::journal::Record;
use bowline_proto::message::Cursor;
use serde_json::Value;

use crate::args;
use crate::attach;
use crate::config::Config;
use crate::conversation::ConnectionNotices;
use crate::failure::{Code, Failure};
use crate::host::{HistoryRange, Host, Session};
use crate::{new, print};

pub(crate) fn run(verb: &args::Log, host: &dyn Host, session: &Session, config: &Config) -> anyhow::Result<ExitCode> {
    let width = new::terminal_size().filter(|_| print::is_terminal()).map(|size| size.cols());
    let style = Style { width, color: print::has_color() };
    let mut printer = if verb.json { Printer::Json } else { Printer::Text(Box::new(Transcript::new(style))) };
    let (epoch, next) = print_pages(verb, host, session, &mut printer)?;
    let result = match verb.follow {
        true => follow(host, session, Cursor { epoch, offset: next }, config, &mut printer),
        false => Ok(ExitCode::SUCCESS),
    };
    printer.finish();
    result
}

enum Printer {
    Json,
    Text(Box<Transcript>),
}

impl Printer {
    fn print(&mut self, record: &Record<Value>) -> anyhow::Result<()> {
        match self {
            Printer::Json => println!("{}", serde_json::to_string(record)?),
            Printer::Text(transcript) => {
                transcript.handle_record(record);
                print_lines(transcript);
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        if let Printer::Text(transcript) = self {
            transcript.finish();
            print_lines(transcript);
        }
    }
}

fn print_lines(transcript: &mut Transcript) {
    while let Some(line) = transcript.poll_line() {
        print::print_rendered(&line);
    }
}

/// Prints the history, page by page. Returns the current epoch and the number after the last event.
fn print_pages(
    verb: &args::Log,
    host: &dyn Host,
    session: &Session,
    printer: &mut Printer,
) -> anyhow::Result<(Epoch, u64)> {
    let first = verb.from.unwrap_or(0);
    // Bounds are exclusive, so only a page that ends before the second event can begin with the first.
    let mut range = match first.checked_sub(1) {
        Some(after) => HistoryRange { before: verb.to, after: Some(after) },
        None => HistoryRange { before: Some(verb.to.unwrap_or(1).min(1)), after: None },
    };
    let mut is_first = true;
    loop {
        let page = host.history(session, range)?;
        if is_first {
            check_range(verb, page.next.max(session.info.offset))?;
        }
        is_first = false;
        for EventRecord { seq, from, at, event } in page.events {
            printer.print(&Record { seq, from, at, event })?;
        }
        let is_last = if range.after.is_some() { !page.more } else { verb.to.is_some_and(|to| to <= 1) };
        if is_last || page.next == 0 {
            return Ok((page.epoch, page.next));
        }
        range = HistoryRange { before: verb.to, after: Some(page.next - 1) };
    }
}

/// Checks that the journal, which ends at `end`, has the requested range.
fn check_range(verb: &args::Log, end: u64) -> anyhow::Result<()> {
    let message = match (verb.from, verb.to) {
        (Some(from), _) if from > end => format!("--from {from} is past the end of the journal, which is at {end}"),
        (_, Some(to)) if to > end => format!("--to {to} is past the end of the journal, which is at {end}"),
        (Some(from), Some(to)) if to < from => format!("--to {to} is before the first event to print, {from}"),
        _ => return Ok(()),
    };
    Err(Failure::new(Code::Other, message, "`--follow` prints new events").into())
}

/// Prints new events until the session ends.
fn follow(
    host: &dyn Host,
    session: &Session,
    cursor: Cursor,
    config: &Config,
    printer: &mut Printer,
) -> anyhow::Result<ExitCode> {
    let mut follower = Follower::new(host.dial(session)?, Some(cursor), config.backoff())?;
    let mut connection = ConnectionNotices::default();
    while let Some(event) = follower.wait_for_event()? {
        match event {
            FollowEvent::Event(record) => printer.print(&record)?,
            FollowEvent::Cut { from } => connection.cut(from),
            FollowEvent::Status(status) => connection.show(host, session, status)?,
            FollowEvent::Ended(Outcome::Exited(_) | Outcome::Lost) => break,
            FollowEvent::Ended(outcome) => return attach::conclude(host, session.label(), outcome),
            FollowEvent::Attached(_) | FollowEvent::Message(_) => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}
