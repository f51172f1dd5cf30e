//! What the user sees of a conversation, and what their keys do. No IO: records, keys and deliveries go in, lines and
//! commands come out. `live_rows` has the rows at the bottom.

mod live_rows;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bowline_proto::agent::approval::{Approval, ApprovalId};
use bowline_proto::agent::command::AgentCommand;
use bowline_proto::agent::event::{AgentEvent, RunId};
use bowline_proto::agent::fold::Fold;
use bowline_proto::agent::state::ConversationState;
use bowline_proto::journal::Record;
use bowline_proto::post::State;
use serde_json::Value;

use super::answer_form::{AnswerForm, FormOutcome};
use super::editor::Editor;
use super::key_reader::Key;
use super::outgoing::{Outgoing, Settled, Stop};
use super::text::{Indent, Paint, Style, Text};
use super::{Transcript, card};
use crate::keys::DetachKey;

pub(crate) use live_rows::LiveRows;

/// A second Ctrl-C within this time leaves.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// A form takes keys once it was there for this long, and no key was pressed: what the user is typing is not meant for it.
const QUIET_TIME: Duration = Duration::from_millis(500);
/// How long a hint is shown.
const HINT_FOR: Duration = Duration::from_secs(4);

/// What a user may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewOptions {
    /// Only watch: nothing is sent.
    pub(crate) observe: bool,
    pub(crate) detach_key: Option<DetachKey>,
    pub(crate) style: Style,
}

/// A conversation on the screen.
pub(crate) struct View {
    options: ViewOptions,
    transcript: Transcript,
    fold: Fold,
    /// Lines that are final, and not printed yet.
    lines: VecDeque<String>,
    editor: Editor,
    form: Option<OpenForm>,
    /// Approvals whose answers are not handed over yet.
    answered: BTreeSet<ApprovalId>,
    /// Approvals that are answered, as far as is known: their events have not arrived yet.
    closed: BTreeSet<ApprovalId>,
    /// Approvals that the user answers later.
    set_aside: BTreeSet<ApprovalId>,
    outgoing: Outgoing,
    actions: VecDeque<Action>,
    /// Why there is no connection, if there is none.
    disconnected: Option<String>,
    /// A short message for the user, and until when it is shown.
    hint: Option<(String, Duration)>,
    interrupted_at: Option<Duration>,
    /// The latest time that is known.
    now: Duration,
    last_key_at: Option<Duration>,
    /// The detach key was pressed; the next key says what to do.
    is_prefixed: bool,
    has_left: bool,
}

/// The form of an approval, on the screen.
struct OpenForm {
    form: AnswerForm,
    /// When it was opened, or has warned.
    opened_at: Duration,
    /// It takes keys.
    is_ready: bool,
}

/// What the user wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Deliver a command, and tell [`View::handle_posted`] its id.
    Send(AgentCommand),
    /// Deliver a command again that was given up.
    SendAgain(String),
    /// Forget a command that was given up.
    Discard(String),
    /// Paint the live rows again.
    Repaint,
}

impl View {
    pub(crate) fn new(options: ViewOptions) -> View {
        View {
            options,
            transcript: Transcript::new(options.style),
            fold: Fold::default(),
            lines: VecDeque::new(),
            editor: Editor::default(),
            form: None,
            answered: BTreeSet::new(),
            closed: BTreeSet::new(),
            set_aside: BTreeSet::new(),
            outgoing: Outgoing::default(),
            actions: VecDeque::new(),
            disconnected: None,
            hint: None,
            interrupted_at: None,
            now: Duration::ZERO,
            last_key_at: None,
            is_prefixed: false,
            has_left: false,
        }
    }

    /// Begins again with the latest events of the journal, and the state after them.
    pub(crate) fn handle_page(&mut self, records: &[Record<Value>], state: ConversationState, has_earlier: bool) {
        self.transcript = Transcript::new(self.options.style);
        if has_earlier {
            self.push_line("earlier events: `bowline log` prints them", Paint::DIM);
        }
        for record in records {
            self.show(record);
        }
        self.outgoing.handle_history();
        self.fold = Fold::from(state);
        self.close_form();
        self.set_aside.clear();
        self.closed.clear();
        for approval in self.fold.approvals.clone() {
            self.show_card(&approval);
        }
        self.open_form();
    }

    /// The end of the journal was lost. What was shown of it stays, and a new page follows.
    pub(crate) fn handle_cut(&mut self) {
        self.transcript.finish();
        self.take_lines();
        self.push_line("the end of the history was lost; it is shown again from here", Paint::YELLOW);
    }

    fn push_line(&mut self, text: &str, paint: Paint) {
        let style = self.options.style;
        self.lines.push_back(Text::new(text, paint).cut(style.cut_columns()).line(style));
    }

    /// The next event of the journal.
    pub(crate) fn handle_record(&mut self, record: &Record<Value>) {
        let event = self.show(record);
        if let AgentEvent::ApprovalRequested { approval } = &event {
            self.show_card(approval);
        }
        self.fold.fold(&Record { seq: record.seq, from: record.from, at: record.at.clone(), event });
        let open: BTreeSet<ApprovalId> = self.fold.approvals.iter().map(|approval| approval.id).collect();
        if self.form.as_ref().is_some_and(|open_form| !open.contains(&open_form.form.approval().id)) {
            self.close_form();
        }
        self.set_aside.retain(|id| open.contains(id));
        self.closed.retain(|id| open.contains(id));
        self.open_form();
    }

    /// Adds a record to the transcript, and returns its event.
    fn show(&mut self, record: &Record<Value>) -> AgentEvent {
        self.transcript.handle_record(record);
        self.take_lines();
        let event = serde_json::from_value(record.event.clone()).unwrap_or(AgentEvent::Unknown);
        let is_own = event.command().is_some_and(|source| self.outgoing.has(&source.command));
        if let AgentEvent::Prompt { text, .. } = &event
            && !is_own
        {
            self.editor.remember(text);
        }
        let is_unwanted = event.command().is_some_and(|source| self.outgoing.handle_recorded(&source.command));
        if let AgentEvent::Prompt { run, .. } = &event
            && is_unwanted
        {
            self.send(AgentCommand::Abort { run: *run, queue: false });
        }
        event
    }

    fn take_lines(&mut self) {
        while let Some(line) = self.transcript.poll_line() {
            self.lines.push_back(line);
        }
    }

    /// Prints what an approval asks, so that it can be read in full, however long it is.
    fn show_card(&mut self, approval: &Approval) {
        self.lines.push_back(String::new());
        self.lines.extend(card(approval, self.options.style));
    }

    /// Opens the form of the oldest approval that waits, unless the user is typing something else.
    fn open_form(&mut self) {
        if self.form.is_some() || self.options.observe || !self.editor.is_empty() {
            return;
        }
        let waiting = self.fold.approvals.iter().find(|approval| self.needs_answer(approval.id));
        let opened_at = self.now;
        self.form =
            waiting.cloned().map(|approval| OpenForm { form: AnswerForm::new(approval), opened_at, is_ready: false });
    }

    /// Closes the form. A text that was typed in it can be got back in the prompt.
    fn close_form(&mut self) {
        if let Some(open) = self.form.take() {
            self.editor.remember(open.form.typed());
            self.hint = None;
        }
    }

    /// Whether the reason of a denial, or an answer of the user's own, has been begun.
    fn is_typing_answer(&self) -> bool {
        self.form.as_ref().is_some_and(|open| open.form.takes_text() && !open.form.typed().is_empty())
    }

    fn needs_answer(&self, id: ApprovalId) -> bool {
        !self.set_aside.contains(&id) && !self.is_answering(id)
    }

    fn is_answering(&self, id: ApprovalId) -> bool {
        self.answered.contains(&id) || self.closed.contains(&id) || self.outgoing.is_answering(id)
    }

    /// When the form takes keys; `None` if it does, or there is none.
    fn ready_at(&self) -> Option<Duration> {
        let open = self.form.as_ref().filter(|open| !open.is_ready)?;
        Some(open.opened_at.max(self.last_key_at.unwrap_or_default()) + QUIET_TIME)
    }

    /// A command was handed over for delivery under this id.
    pub(crate) fn handle_posted(&mut self, id: String, command: AgentCommand) {
        self.outgoing.handle_posted(id, command);
        // From now on, the answers are in `outgoing`.
        self.answered.clear();
    }

    /// A command was not taken for delivery.
    pub(crate) fn handle_refused(&mut self, command: AgentCommand, why: &str) {
        self.push_line(&format!("✗ not sent: {why}"), Paint::RED);
        match command {
            AgentCommand::Prompt { text, .. } if self.editor.is_empty() => self.editor.restore(text),
            AgentCommand::Prompt { text, .. } => self.print_typed("not sent: ", &text),
            _ => {}
        }
        self.answered.clear();
        self.open_form();
    }

    /// The state of a command changed, on its way to the session.
    pub(crate) fn handle_state(&mut self, id: &str, state: State) {
        match self.outgoing.handle_state(id, state) {
            Some(Settled::Failed(line)) => {
                self.push_line(&format!("✗ {line}"), Paint::RED);
                self.actions.push_back(Action::Discard(id.to_owned()));
            }
            Some(Settled::TooLate { approval, how }) => {
                self.push_line(&format!("! your answer to {approval} came too late: {how}"), Paint::YELLOW);
                self.closed.insert(approval);
            }
            Some(Settled::Unwanted(run)) => self.send(AgentCommand::Abort { run, queue: false }),
            None => {}
        }
        self.open_form();
    }

    /// The connection was lost, with this reason, or is open.
    pub(crate) fn handle_connection(&mut self, disconnected: Option<String>) {
        self.disconnected = disconnected;
    }

    /// Whether the session accepts commands from this client. If not, the user only watches.
    pub(crate) fn handle_permission(&mut self, can_write: bool) {
        if !can_write && !self.options.observe {
            self.options.observe = true;
            self.close_form();
            self.push_line("! this token only allows reading: you only watch", Paint::YELLOW);
        }
    }

    pub(crate) fn handle_style(&mut self, style: Style) {
        self.options.style = style;
        self.transcript.set_style(style);
    }

    /// Time has passed.
    pub(crate) fn handle_time(&mut self, now: Duration) {
        self.now = now;
    }

    pub(crate) fn handle_key(&mut self, key: &Key, now: Duration) {
        self.now = now;
        let is_early = self.ready_at().is_some_and(|at| now < at);
        self.last_key_at = Some(now);
        if std::mem::take(&mut self.is_prefixed) {
            match key {
                Key::Char('d') => self.has_left = true,
                _ => self.set_hint("d detaches", now),
            }
            return;
        }
        match key {
            Key::Ctrl(c) if self.options.detach_key.is_some_and(|detach| detach.letter() == *c) => {
                self.is_prefixed = true;
            }
            Key::Ctrl('c') => self.interrupt(now),
            Key::Ctrl('d') if self.editor.is_empty() && !self.is_typing_answer() => self.has_left = true,
            Key::Ctrl('l') => self.actions.push_back(Action::Repaint),
            Key::Ctrl('r') => {
                if let Some(id) = self.outgoing.failed().map(str::to_owned) {
                    self.outgoing.handle_sent_again(&id);
                    self.actions.push_back(Action::SendAgain(id));
                }
            }
            Key::Ctrl('x') => {
                if let Some(id) = self.outgoing.failed().map(str::to_owned) {
                    self.outgoing.handle_recorded(&id);
                    self.actions.push_back(Action::Discard(id));
                }
            }
            _ if self.options.observe => self.set_hint("You only watch; Ctrl-C leaves", now),
            _ => match &mut self.form {
                Some(_) if is_early => {}
                Some(open) => {
                    open.is_ready = true;
                    let outcome = open.form.handle_key(key);
                    self.handle_form_outcome(outcome, now);
                }
                None => self.type_key(key, now),
            },
        }
    }

    /// The end of a paste is missing, and Enter sends nothing until there was a pause.
    pub(crate) fn handle_incomplete_paste(&mut self, now: Duration) {
        if !self.options.observe {
            self.set_hint("the end of the paste is missing: Enter sends it after a pause of 2 s", now);
        }
    }

    fn handle_form_outcome(&mut self, outcome: FormOutcome, now: Duration) {
        match outcome {
            FormOutcome::Pending => {}
            FormOutcome::Refused(why) => self.set_hint(why, now),
            // A second Enter of the same press is no answer to the warning.
            FormOutcome::Warned => self.form.iter_mut().for_each(|open| {
                (open.opened_at, open.is_ready) = (now, false);
            }),
            FormOutcome::SetAside => {
                self.set_aside.extend(self.form.as_ref().map(|open| open.form.approval().id));
                self.close_form();
                self.open_form();
            }
            FormOutcome::Answered(command) => {
                self.send(command);
                self.answered.extend(self.form.as_ref().map(|open| open.form.approval().id));
                self.close_form();
                self.open_form();
            }
        }
    }

    fn type_key(&mut self, key: &Key, now: Duration) {
        match key {
            Key::Enter if self.editor.is_blank() => self.editor.clear(),
            Key::Enter => {
                let text = self.editor.take();
                self.send(AgentCommand::Prompt { text, attachments: Vec::new() });
            }
            Key::Tab if self.editor.is_empty() => self.set_aside.clear(),
            Key::Escape => self.editor.clear(),
            key => {
                if let Err(error) = self.editor.handle_key(key) {
                    self.set_hint(&error.to_string(), now);
                }
            }
        }
        self.open_form();
    }

    /// Ctrl-C: ends the run, or the one of a prompt that is on its way. Without one, it clears the text. A second one soon
    /// after leaves.
    fn interrupt(&mut self, now: Duration) {
        let is_second = self.interrupted_at.is_some_and(|at| now.saturating_sub(at) <= LEAVE_WITHIN);
        if is_second || self.options.observe {
            self.has_left = true;
            return;
        }
        self.interrupted_at = Some(now);
        let unsent = self.actions.iter().position(|action| matches!(action, Action::Send(AgentCommand::Prompt { .. })));
        if let Some(activity) = self.fold.activity() {
            self.stop(activity.run, now);
        } else if unsent.and_then(|at| self.actions.remove(at)).is_some() {
            self.set_leave_hint("not sent: Up gets it back · Ctrl-C again leaves", now);
        } else if let Some(stop) = self.outgoing.stop_next_prompt() {
            match stop {
                Stop::Now(run) => self.stop(run, now),
                Stop::Later => {
                    self.set_leave_hint("it is stopped as soon as it has arrived · Ctrl-C again leaves", now)
                }
            }
        } else {
            self.editor.clear();
            self.open_form();
            self.set_hint("Ctrl-C again or Ctrl-D leaves; the session goes on", now);
        }
    }

    fn stop(&mut self, run: RunId, now: Duration) {
        self.send(AgentCommand::Abort { run, queue: false });
        self.set_leave_hint("Ctrl-C again leaves", now);
    }

    /// Shows a hint as long as a second Ctrl-C leaves.
    fn set_leave_hint(&mut self, text: &str, now: Duration) {
        self.hint = Some((text.to_owned(), now + LEAVE_WITHIN));
    }

    fn set_hint(&mut self, text: &str, now: Duration) {
        self.hint = Some((text.to_owned(), now + HINT_FOR));
    }

    /// Whether the user wants to leave.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left
    }

    fn send(&mut self, command: AgentCommand) {
        self.actions.push_back(Action::Send(command));
    }

    /// Something that the user wants done.
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether something is on its way that may still arrive.
    pub(crate) fn is_delivering(&self) -> bool {
        self.outgoing.is_delivering() || !self.actions.is_empty()
    }

    /// How many commands the session has not accepted yet.
    pub(crate) fn undelivered(&self) -> usize {
        self.outgoing.undelivered()
    }

    /// A line that is final, to be printed once.
    pub(crate) fn poll_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Makes everything final, before leaving. What was typed and not delivered is printed, so that it is not lost.
    pub(crate) fn finish(&mut self) {
        self.transcript.finish();
        self.take_lines();
        let undelivered: Vec<String> = self.outgoing.undelivered_prompts().map(str::to_owned).collect();
        for text in undelivered {
            self.print_typed("not delivered: ", &text);
        }
        if let Some(open) = self.form.take() {
            self.print_typed("not sent: ", open.form.typed());
        }
        let draft = self.editor.take();
        self.print_typed("not sent: ", &draft);
    }

    /// Prints the whole of a text that the user typed, unless it is blank.
    fn print_typed(&mut self, label: &str, text: &str) {
        if !text.trim().is_empty() {
            let indent = Indent::hanging(label, Paint::DIM);
            self.lines.extend(Text::new(text, Paint::PLAIN).wrap_exact(&indent, self.options.style));
        }
    }

    /// Whether the connection is lost.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.disconnected.is_some()
    }

    /// When the live rows change although nothing happens: the time that a run takes, and the end of a hint.
    pub(crate) fn poll_timeout(&self, now: Duration) -> Option<Duration> {
        let tick = self.fold.activity().map(|_| Duration::from_secs(now.as_secs() + 1));
        let hint = self.hint.as_ref().map(|(_, until)| *until);
        let ready = self.ready_at().filter(|at| *at > now);
        [tick, hint, ready].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
