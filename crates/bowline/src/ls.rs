//! `bowline ls`: lists sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use bowline_proto::session::{AgentInfo, ExitStatus, SessionInfo, State};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::Code;
use crate::host::{Host, Session};
use crate::{args, table, units};

/// How long a shell completion may take.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(verb: &args::Ls, host: &dyn Host) -> anyhow::Result<ExitCode> {
    if let Some(word) = &verb.complete {
        return complete(host, word);
    }
    let sessions = host.list()?;
    if verb.json {
        println!("{}", serde_json::to_string(&BTreeMap::from([("sessions", &sessions)]))?);
    } else if sessions.is_empty() {
        eprintln!("No sessions. `bowline new` starts one.");
    } else {
        const HEAD: [&str; 7] = ["NAME", "ID", "STATE", "AGE", "SIZE", "VIEWERS", "TITLE OR COMMAND"];
        table::print(HEAD, &sessions.iter().map(row).collect::<Vec<_>>());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the names and ids that complete `word`. Gives up soon, because the shell waits for it.
fn complete(host: &dyn Host, word: &str) -> anyhow::Result<ExitCode> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || sender.send(host.list()));
        match receiver.recv_timeout(COMPLETION_TIMEOUT) {
            Ok(sessions) => completions(&sessions?, word).iter().for_each(|name| println!("{name}")),
            Err(_) => std::process::exit(Code::Unreachable as i32),
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The names and ids that start with `word`. For an empty word, the ids of named sessions are left out.
fn completions<'a>(sessions: &'a [Session], word: &str) -> BTreeSet<&'a str> {
    let ids = sessions.iter().filter(|_| !word.is_empty()).map(|session| session.info.id.as_str());
    sessions.iter().map(Session::label).chain(ids).filter(|name| name.starts_with(word)).collect()
}

/// The state of a session as text, with the exit status of an ended one.
pub(crate) fn describe_state(info: &SessionInfo) -> String {
    match (info.state, &info.exit) {
        (State::Running, _) => "running".into(),
        (State::Lost, _) => "lost".into(),
        (State::Exited, Some(ExitStatus { signal: Some(signal), .. })) => format!("ended {signal}"),
        (State::Exited, Some(ExitStatus { code: Some(code), .. })) => format!("exited {code}"),
        (State::Exited, _) => "exited".into(),
        (State::Unknown, _) => "unknown".into(),
    }
}

/// The size of a terminal; other kinds of sessions have none.
fn size(info: &SessionInfo) -> String {
    let size = info.terminal.as_ref().map(|terminal| terminal.size);
    size.map_or_else(|| "-".to_owned(), |size| format!("{}x{}", size.cols(), size.rows()))
}

fn row(session: &Session) -> [String; 7] {
    let info = &session.info;
    let title = match &info.agent {
        Some(agent) if info.state == State::Running => format!("{}: {}", agent.agent, doing(agent, &info.title)),
        _ if info.title.is_empty() => info.command_line(),
        _ => info.title.clone(),
    };
    let mut state = describe_state(info);
    if let Some(host) = &session.info.host {
        state = format!("on {host}");
    } else if info.degraded {
        state.push_str(", log in memory");
    }
    [
        info.name.as_ref().map_or_else(|| "-".into(), ToString::to_string),
        info.id.to_string(),
        state,
        age(&info.created).map_or_else(|| "?".into(), units::format_duration),
        size(info),
        info.clients.to_string(),
        shorten(&title),
    ]
}

/// What an agent does, or what it waits for.
fn doing(agent: &AgentInfo, title: &str) -> String {
    match (agent.approvals.first(), &agent.activity) {
        (Some(approval), _) => format!("needs you: {}", approval.title),
        (None, Some(activity)) => activity.text.clone(),
        (None, None) if title.is_empty() => "idle".to_owned(),
        (None, None) => format!("idle ({title})"),
    }
}

/// Shortens a command or title, so that it fits one line of the table.
fn shorten(text: &str) -> String {
    const MAX: usize = 60;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn age(created: &str) -> Option<Duration> {
    let created = OffsetDateTime::parse(created, &Rfc3339).ok()?;
    (OffsetDateTime::now_utc() - created).max(time::Duration::ZERO).try_into().ok()
}
