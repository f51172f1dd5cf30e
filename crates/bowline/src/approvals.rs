//! `bowline approvals`: lists what agents wait for, in all sessions.

use std::process::ExitCode;

use bowline_proto::agent::approval::{Approval, ApprovalId, ApprovalKind};
use bowline_proto::api::WaitingApproval;
use bowline_proto::ids::SessionId;

use crate::host::{Host, Session};
use crate::print::one_line;
use crate::{args, ls, table, units};

pub(crate) fn run(verb: &args::Approvals, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let list = host.approvals()?;
    if verb.json {
        println!("{}", serde_json::to_string(&list)?);
    } else if list.approvals.is_empty() {
        eprintln!("No agent waits for you.");
    } else {
        let sessions = host.list()?;
        let mut waiting = list.approvals;
        waiting.sort_by(|a, b| a.approval.at.cmp(&b.approval.at));
        let rows: Vec<_> = waiting.iter().map(|waiting| row(waiting, &sessions)).collect();
        table::print(["ID", "AGENT", "AGE", "KIND", "WHAT"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn row(waiting: &WaitingApproval, sessions: &[Session]) -> [String; 5] {
    let WaitingApproval { session, approval } = waiting;
    let agent = find(sessions, session).and_then(|session| session.info.agent.as_ref());
    [
        full_id(sessions, session, approval.id),
        agent.map_or_else(|| "-".to_owned(), |agent| agent.agent.clone()),
        ls::age(&approval.at).map_or_else(|| "?".to_owned(), units::format_duration),
        kind(approval.kind).to_owned(),
        describe(approval),
    ]
}

fn find<'a>(sessions: &'a [Session], id: &SessionId) -> Option<&'a Session> {
    sessions.iter().find(|session| session.info.id == *id)
}

/// The id of an approval as `approve` and `deny` take it: with the name of its session, or the id of one without a name.
pub(crate) fn full_id(sessions: &[Session], session: &SessionId, approval: ApprovalId) -> String {
    format!("{}/{approval}", find(sessions, session).map_or(session.as_str(), Session::label))
}

/// What an approval is about, in one line: its title, and the command if that says more.
pub(crate) fn describe(approval: &Approval) -> String {
    let title = one_line(&approval.title);
    // A title is one line, so it may be the command without its line breaks.
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    match approval.detail.command.as_deref() {
        None => title,
        Some(command) if words(command) == words(&approval.title) => one_line(command),
        Some(command) => format!("{title}: {}", one_line(command)),
    }
}

fn kind(kind: ApprovalKind) -> &'static str {
    match kind {
        ApprovalKind::Permission => "permission",
        ApprovalKind::Question => "question",
        ApprovalKind::Plan => "plan",
        ApprovalKind::Unknown => "unknown",
    }
}
