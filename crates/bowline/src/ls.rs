//! `bowline ls`: the sessions there are.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use bowline_proto::session::{ExitStatus, SessionInfo, State};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::Code;
use crate::place::{Place, Session};
use crate::{args, units};

/// How long a completion may take.
const COMPLETE_WITHIN: Duration = Duration::from_secs(2);

pub(crate) fn run(verb: &args::Ls, place: &dyn Place) -> anyhow::Result<ExitCode> {
    if let Some(word) = &verb.complete {
        return complete(place, word);
    }
    let sessions = place.list()?;
    if verb.json {
        println!("{}", serde_json::to_string(&BTreeMap::from([("sessions", &sessions)]))?);
    } else if sessions.is_empty() {
        eprintln!("No sessions. `bowline new` starts one.");
    } else {
        print_table(&sessions);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what a shell may complete a word to, or gives up soon: a shell that completes does nothing else.
fn complete(place: &dyn Place, word: &str) -> anyhow::Result<ExitCode> {
    let (hand_over, coming) = std::sync::mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || hand_over.send(place.list()));
        match coming.recv_timeout(COMPLETE_WITHIN) {
            Ok(sessions) => completions(&sessions?, word).iter().for_each(|name| println!("{name}")),
            Err(_) => std::process::exit(Code::Silent as i32),
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The names and ids that begin with a word. Before anything is typed, the id of a session with a name is only noise.
fn completions<'a>(sessions: &'a [Session], word: &str) -> BTreeSet<&'a str> {
    let ids = sessions.iter().filter(|_| !word.is_empty()).map(|session| session.info.id.as_str());
    sessions.iter().map(Session::label).chain(ids).filter(|name| name.starts_with(word)).collect()
}

/// How a session stands, in a word or two.
pub(crate) fn state(info: &SessionInfo) -> String {
    match (info.state, &info.exit) {
        (State::Running, _) => "running".into(),
        (State::Lost, _) => "lost".into(),
        (State::Exited, Some(ExitStatus { signal: Some(signal), .. })) => signal.clone(),
        (State::Exited, Some(ExitStatus { code: Some(code), .. })) => format!("exited {code}"),
        (State::Exited, _) => "exited".into(),
        (State::Unknown, _) => "unknown".into(),
    }
}

fn print_table(sessions: &[Session]) {
    const HEAD: [&str; 7] = ["NAME", "ID", "STATE", "AGE", "SIZE", "VIEWERS", "WHAT"];
    let rows: Vec<[String; 7]> = sessions.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(HEAD[column].len())
    };
    let widths: Vec<usize> = (0..HEAD.len() - 1).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        println!("{}{}", padded.collect::<String>(), cells[cells.len() - 1]);
    };
    line(&HEAD);
    rows.iter().for_each(|row| line(&row.each_ref().map(String::as_str)));
}

/// The size of a terminal; other kinds have none.
fn size(info: &SessionInfo) -> String {
    let size = info.terminal.as_ref().map(|terminal| terminal.size);
    size.map_or_else(|| "-".to_owned(), |size| format!("{}x{}", size.cols(), size.rows()))
}

fn row(session: &Session) -> [String; 7] {
    let info = &session.info;
    let what = if info.title.is_empty() { info.command_line() } else { info.title.clone() };
    let mut state = state(info);
    if let Some(host) = &session.info.host {
        state = format!("on {host}");
    } else if info.degraded {
        state.push_str(", log in memory");
    }
    [
        info.name.as_ref().map_or_else(|| "-".into(), ToString::to_string),
        info.id.to_string(),
        state,
        age(&info.created).map_or_else(|| "?".into(), units::show_duration),
        size(info),
        info.clients.to_string(),
        printable(&what),
    ]
}

/// A command or title may hold anything; a table is one line a row.
fn printable(text: &str) -> String {
    const MAX: usize = 60;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(MAX).map(clean).collect();
    if text.chars().nth(MAX).is_some() {
        short.push('…');
    }
    short
}

fn age(created: &str) -> Option<Duration> {
    let created = OffsetDateTime::parse(created, &Rfc3339).ok()?;
    (OffsetDateTime::now_utc() - created).max(time::Duration::ZERO).try_into().ok()
}
