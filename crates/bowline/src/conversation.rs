//! Follows the run of a prompt until its end, and prints what the agent does: as text, or as events in JSON.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bowline_client::post::{Change, Poster};
use bowline_client::signals::Signals;
use bowline_client::{FollowEvent, Follower, Outcome};
use bowline_proto::agent::approval::Approval;
use bowline_proto::agent::command::AgentCommand;
use bowline_proto::agent::event::{AgentEvent, Complete, RunId};
use bowline_proto::journal::Record;
use bowline_proto::link::Status;
use bowline_proto::message::Cursor;
use bowline_proto::post::{Failure as Failed, State, WaitReason};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::host::{Host, Session};
use crate::print::one_line;
use crate::run_text::{RunText, describe_end};
use crate::{approvals, attach};

/// A second Ctrl-C within this time leaves at once.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// A run to follow.
pub(crate) struct Conversation<'a> {
    pub(crate) host: &'a dyn Host,
    /// A session that was just started.
    pub(crate) session: &'a Session,
    /// The id of the command that started the run.
    pub(crate) prompt: &'a str,
    /// Print events as JSON.
    pub(crate) json: bool,
    pub(crate) config: &'a Config,
}

/// Prints what the agent does until the run has ended. The session goes on.
pub(crate) fn run(conversation: &Conversation<'_>) -> anyhow::Result<ExitCode> {
    let Conversation { host, session, config, .. } = conversation;
    let cursor = Cursor { epoch: session.info.epoch.clone(), offset: 0 };
    let mut follower = Follower::new(host.dial(session)?, Some(cursor), config.backoff())?;
    let mut view = View::new(conversation)?;
    eprintln!("[{}; {} continues the conversation]", session.full_label(), command(*host, "attach", session.label()));
    loop {
        while let Some(event) = follower.poll_event() {
            if let Some(ended) = view.show(event) {
                view.finish();
                return ended;
            }
        }
        let mut others = vec![view.signals.fd()];
        others.extend(view.abort.as_ref().map(|abort| abort.poster.fd()));
        follower.wait(&others, view.poll_timeout())?;
        view.handle_abort();
        if let Some(code) = view.handle_signals() {
            view.finish();
            return Ok(code);
        }
    }
}

/// What has been printed of a run, and what the user wants of it.
struct View<'a> {
    conversation: &'a Conversation<'a>,
    text: RunText,
    connection: ConnectionNotices,
    /// The run, once the session has recorded its prompt.
    run: Option<RunId>,
    signals: Signals,
    /// While set, SIGINT ends this process at once, even if it waits for a server.
    leaves_on_interrupt: Arc<AtomicBool>,
    interrupted_at: Option<Instant>,
    /// The user wants to abort the run, which is not known yet.
    abort_wanted: bool,
    abort: Option<Abort>,
}

/// An abort on its way to the session. It is sent in the background, because the server may not be reachable.
struct Abort {
    poster: Poster,
    /// The user was told that it is not delivered yet.
    is_late: bool,
}

impl<'a> View<'a> {
    fn new(conversation: &'a Conversation<'a>) -> anyhow::Result<View<'a>> {
        let leaves_on_interrupt = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, Arc::clone(&leaves_on_interrupt))?;
        Ok(View {
            conversation,
            text: RunText::default(),
            connection: ConnectionNotices::default(),
            run: None,
            signals: Signals::listen()?,
            leaves_on_interrupt,
            interrupted_at: None,
            abort_wanted: false,
            abort: None,
        })
    }

    /// Prints what happened. Returns the result once the run has ended, or never will.
    fn show(&mut self, event: FollowEvent) -> Option<anyhow::Result<ExitCode>> {
        let Conversation { host, session, .. } = self.conversation;
        match event {
            FollowEvent::Event(record) => return self.show_record(&record),
            FollowEvent::Cut { from } => self.connection.cut(from),
            FollowEvent::Status(status) => return self.connection.show(*host, session, status).err().map(Err),
            FollowEvent::Ended(Outcome::Exited(_) | Outcome::Lost) => {
                let message = format!("{} ended before this run did", session.label());
                let hint = format!("{} prints the conversation", command(*host, "log", session.label()));
                return Some(Err(Failure::new(Code::Other, message, hint).into()));
            }
            FollowEvent::Ended(outcome) => return Some(attach::conclude(*host, session.label(), outcome)),
            FollowEvent::Attached(_) | FollowEvent::Message(_) => {}
        }
        None
    }

    fn show_record(&mut self, record: &Record<Value>) -> Option<anyhow::Result<ExitCode>> {
        if self.conversation.json {
            match serde_json::to_string(record) {
                Ok(line) => println!("{line}"),
                Err(error) => return Some(Err(error.into())),
            }
        } else if self.is_shown(&record.event) {
            self.text.print(&record.event);
        }
        match serde_json::from_value::<AgentEvent>(record.event.clone()).ok()? {
            AgentEvent::Prompt { run, source, .. } if source.command == self.conversation.prompt => {
                self.run = Some(run);
                if self.abort_wanted {
                    self.abort();
                }
            }
            AgentEvent::ApprovalRequested { approval } => self.show_approval(&approval),
            AgentEvent::Complete(complete) if Some(complete.run) == self.run => {
                self.abort = None;
                return Some(self.conclude(&complete));
            }
            _ => {}
        }
        None
    }

    /// Whether an event belongs to this run, or to none.
    fn is_shown(&self, event: &Value) -> bool {
        let run = event.get("run").and_then(Value::as_str).and_then(|run| run.parse::<RunId>().ok());
        run.is_none() || run == self.run
    }

    fn show_approval(&mut self, approval: &Approval) {
        let Conversation { host, session, .. } = self.conversation;
        let id = format!("{}/{}", session.label(), approval.id);
        let what = approvals::describe(approval);
        let (approve, deny) = (command(*host, "approve", &id), command(*host, "deny", &id));
        self.text.line(format_args!("[{id} needs an answer: {what}; {approve} or {deny}]"));
    }

    fn conclude(&self, complete: &Complete) -> anyhow::Result<ExitCode> {
        if complete.success {
            return Ok(ExitCode::SUCCESS);
        }
        let Conversation { host, session, .. } = self.conversation;
        let with = |verb| command(*host, verb, session.label());
        let has_code = |code: &str| complete.error.as_ref().is_some_and(|error| error.code == code);
        let hint = match complete {
            _ if has_code("not_logged_in") => "log in to the agent on its machine; docs/AGENTS.md says how".to_owned(),
            _ if has_code("mode_refused") => {
                format!("{} ends the session; start another one with a mode that the agent has", with("kill"))
            }
            Complete { interrupted: true, .. } => format!("{} starts the session again", with("restart")),
            Complete { started: false, .. } => {
                format!("the agent did not get the prompt; send it again in {}", with("attach"))
            }
            _ => format!("{} continues the conversation", with("attach")),
        };
        Err(Failure::new(Code::Other, format!("the run {}", describe_end(complete)), hint).into())
    }

    /// Until when to wait at most.
    fn poll_timeout(&self) -> Option<Duration> {
        Some(LEAVE_WITHIN.saturating_sub(self.interrupted_at?.elapsed()))
    }

    /// Returns the exit code if a signal ends this process.
    fn handle_signals(&mut self) -> Option<ExitCode> {
        self.signals.drain();
        if self.interrupted_at.is_some_and(|at| at.elapsed() >= LEAVE_WITHIN) {
            self.interrupted_at = None;
            self.leaves_on_interrupt.store(false, Ordering::Relaxed);
        }
        match self.signals.take_ending()? {
            SIGINT => {
                self.interrupted_at = Some(Instant::now());
                self.leaves_on_interrupt.store(true, Ordering::Relaxed);
                self.text.line(format_args!("[aborting the run; Ctrl-C again leaves, and the session goes on]"));
                self.abort();
                None
            }
            signal => Some(ExitCode::from(attach::signal_exit_code(signal))),
        }
    }

    fn abort(&mut self) {
        let Conversation { host, session, .. } = self.conversation;
        self.abort_wanted = self.run.is_none();
        let Some(run) = self.run else { return };
        let command = json!(AgentCommand::Abort { run, queue: false });
        let started = Poster::start(host.delivery()).map_err(anyhow::Error::from);
        let sent = started.and_then(|poster| {
            poster.send(session.info.id.as_str(), command)?;
            Ok(poster)
        });
        match sent {
            Ok(poster) => self.abort = Some(Abort { poster, is_late: false }),
            Err(error) => self.show_failed_abort(&error.to_string()),
        }
    }

    /// Says what became of the abort. Its effect is an event of the session.
    fn handle_abort(&mut self) {
        while let Some(Change::Shown(entry)) = self.abort.as_ref().and_then(|abort| abort.poster.poll_change()) {
            match entry.state {
                // If it is not accepted, the run has just ended.
                State::Delivered(_) => self.abort = None,
                State::Failed(Failed { message, .. }) => self.show_failed_abort(&message),
                State::Waiting { why: WaitReason::Login } => {
                    self.show_failed_abort("the server does not accept the token or login");
                }
                State::Retrying { message, .. } => {
                    if let Some(abort) = self.abort.as_mut().filter(|abort| !abort.is_late) {
                        abort.is_late = true;
                        self.text.line(format_args!("[not aborted yet ({}); trying again]", one_line(message)));
                    }
                }
                State::Waiting { .. } | State::Sending { .. } => {}
            }
        }
    }

    /// Ends the output.
    fn finish(&mut self) {
        let Conversation { host, session, .. } = self.conversation;
        self.text.finish();
        if self.abort.take().is_some() {
            let attach = command(*host, "attach", session.label());
            eprintln!("[the abort was not delivered; Ctrl-C in {attach} aborts the run]");
        }
    }

    fn show_failed_abort(&mut self, why: &str) {
        self.abort = None;
        self.text.line(format_args!("bowline: cannot abort the run: {}", one_line(why)));
    }
}

/// Says once that the connection is lost, and once that it is back.
#[derive(Default)]
pub(crate) struct ConnectionNotices {
    is_lost: bool,
}

impl ConnectionNotices {
    /// Prints a change. Fails if no more attempts are made.
    pub(crate) fn show(&mut self, host: &dyn Host, session: &Session, status: Status) -> anyhow::Result<()> {
        match status {
            Status::Reconnecting { .. } if !std::mem::replace(&mut self.is_lost, true) => {
                eprintln!("[the connection was lost; trying again]");
            }
            Status::Open if std::mem::take(&mut self.is_lost) => eprintln!("[connected again; nothing is missing]"),
            Status::Offline => {
                let peer = host.server().unwrap_or_else(|| "the session process".to_owned());
                let message = format!("cannot reach {peer} any more; {} goes on", session.label());
                let hint = format!("{} prints the conversation", command(host, "log", session.label()));
                return Err(Failure::new(Code::Unreachable, message, hint).into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Says that the end of the journal was lost.
    pub(crate) fn cut(&self, from: u64) {
        eprintln!(
            "[the end of the journal was lost, because the machine or its disk failed: from event {from} on, others follow]"
        );
    }
}

/// A command for the user to run.
pub(crate) fn command(host: &dyn Host, verb: &str, argument: &str) -> String {
    match host.server() {
        Some(url) => format!("`bowline --server {url} {verb} {argument}`"),
        None => format!("`bowline {verb} {argument}`"),
    }
}
