//! Tool calls: one line each, and those of a sub-agent below the call that started it.

use std::collections::{HashMap, VecDeque};

use bowline_proto::agent::event::{RunId, ToolCall};
use serde_json::Value;
use time::OffsetDateTime;

use super::text::{Paint, Style, Text, cut};
use super::wording::{MAX_SHORT, duration_text, elapsed, short};

/// Tool calls that are kept. When there are more, the oldest one is shown as it is and never again.
const MAX_OPEN: usize = 256;
/// Ended calls of a sub-agent that are shown below it, the latest ones; the others are counted.
const MAX_CHILDREN: usize = 20;
/// The same, while the sub-agent works.
const MAX_PENDING_CHILDREN: usize = 3;
/// Open calls that are shown, without those of sub-agents; the others are counted.
const MAX_PENDING: usize = 8;
/// Ended calls that are remembered, so that a late update does not show one again.
const MAX_ENDED: usize = 1024;
/// Bytes of a call's id that count.
const MAX_ID: usize = 128;
/// Calls inside of calls that are indented.
const MAX_DEPTH: usize = 4;
/// Running calls show for how long after this many seconds.
const SHOW_SECONDS: u64 = 3;

#[derive(Debug, Default)]
pub(super) struct Tools {
    /// In the order in which they began. Ended ones stay here while the sub-agent that made them works.
    calls: Vec<Call>,
    ended: VecDeque<String>,
}

#[derive(Debug)]
struct Call {
    id: String,
    parent: Option<String>,
    run: Option<RunId>,
    title: String,
    name: String,
    state: State,
    /// The first line of what a failed call says.
    error: String,
    /// Lines added and removed.
    diff: Option<(usize, usize)>,
    began: Option<OffsetDateTime>,
    /// Ended calls of this sub-agent that are not kept.
    hidden: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Completed,
    Failed,
    /// Its run ended first.
    Abandoned,
}

impl Tools {
    /// Whether an event about this call would show a new one.
    pub(super) fn is_new(&self, call: &ToolCall) -> bool {
        let id = id(&call.call);
        !self.ended.contains(&id) && !self.calls.iter().any(|call| call.id == id)
    }

    /// Takes an event about a call. Returns the lines that are final now.
    pub(super) fn handle(&mut self, update: &ToolCall, at: Option<OffsetDateTime>, style: Style) -> Vec<String> {
        let id = id(&update.call);
        if self.ended.contains(&id) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let index = self.calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            if self.calls.len() >= MAX_OPEN {
                lines = self.end(0, |_| false, style);
            }
            self.calls.push(Call::new(id, update, at));
            self.calls.len() - 1
        });
        let call = &mut self.calls[index];
        call.update(update);
        if call.state != State::Running {
            lines.extend(self.settle(index, style));
        }
        lines
    }

    /// A run ended: the lines of its calls that did not.
    pub(super) fn end_run(&mut self, run: RunId, style: Style) -> Vec<String> {
        self.end_all(State::Abandoned, |call| call.run == Some(run), style)
    }

    /// The agent is gone: the lines of all calls.
    pub(super) fn abandon(&mut self, style: Style) -> Vec<String> {
        self.end_all(State::Abandoned, |_| true, style)
    }

    /// The lines of all calls, as they are now.
    pub(super) fn finish(&mut self, style: Style) -> Vec<String> {
        self.end_all(State::Running, |_| true, style)
    }

    /// The lines of the calls that are open.
    pub(super) fn pending(&self, now: Option<OffsetDateTime>, style: Style) -> Vec<String> {
        let roots: Vec<usize> = (0..self.calls.len()).filter(|index| self.parent(*index).is_none()).collect();
        let skipped = roots.len().saturating_sub(MAX_PENDING);
        let mut lines = Vec::new();
        if skipped > 0 {
            lines.push(Text::new(&format!("● {skipped} more"), Paint::DIM).line(style));
        }
        for root in roots.into_iter().skip(skipped) {
            lines.extend(self.tree(root, MAX_PENDING_CHILDREN, now, style));
        }
        lines
    }

    fn end_all(&mut self, state: State, which: impl Fn(&Call) -> bool, style: Style) -> Vec<String> {
        for call in self.calls.iter_mut().filter(|call| which(call) && call.state == State::Running) {
            call.state = state;
        }
        let mut lines = Vec::new();
        while let Some(root) =
            (0..self.calls.len()).find(|index| which(&self.calls[*index]) && self.parent(*index).is_none())
        {
            lines.extend(self.end(root, &which, style));
        }
        lines
    }

    /// A call has ended. It is final, unless it is shown below a call that is open.
    fn settle(&mut self, index: usize, style: Style) -> Vec<String> {
        let Some(parent) = self.parent(index) else { return self.end(index, |_| false, style) };
        let id = self.calls[parent].id.clone();
        let is_ended = |call: &Call| call.parent.as_ref() == Some(&id) && call.state != State::Running;
        if self.calls.iter().filter(|call| is_ended(call)).count() > MAX_CHILDREN
            && let Some(oldest) = self.calls.iter().position(is_ended)
        {
            self.calls[parent].hidden += 1;
            self.forget(oldest);
        }
        Vec::new()
    }

    /// The final lines of a call and of those below it. Of these, running ones go on alone, unless they end, too.
    fn end(&mut self, root: usize, ends_too: impl Fn(&Call) -> bool, style: Style) -> Vec<String> {
        let lines = self.tree(root, MAX_CHILDREN, None, style);
        let is_gone = |call: &Call| call.state != State::Running || ends_too(call);
        let gone = self.below(root).into_iter().map(|(index, _)| index).filter(|index| is_gone(&self.calls[*index]));
        let mut gone: Vec<usize> = gone.chain([root]).collect();
        gone.sort_unstable();
        for index in gone.into_iter().rev() {
            self.forget(index);
        }
        lines
    }

    fn forget(&mut self, index: usize) {
        self.ended.push_back(self.calls.remove(index).id);
        if self.ended.len() > MAX_ENDED {
            self.ended.pop_front();
        }
    }

    /// The call that this one is shown below.
    fn parent(&self, index: usize) -> Option<usize> {
        let parent = self.calls[index].parent.as_ref()?;
        // Only an earlier one, so that no call is its own ancestor.
        self.calls[..index].iter().position(|call| call.id == *parent)
    }

    /// The calls below a call, with their depth.
    fn below(&self, root: usize) -> Vec<(usize, usize)> {
        let mut depths = HashMap::from([(root, 0)]);
        let mut below = Vec::new();
        for index in root + 1..self.calls.len() {
            if let Some(depth) = self.parent(index).and_then(|parent| depths.get(&parent).copied()) {
                depths.insert(index, depth + 1);
                below.push((index, depth + 1));
            }
        }
        below
    }

    /// The lines of a call and of the latest calls below it.
    fn tree(&self, root: usize, max: usize, now: Option<OffsetDateTime>, style: Style) -> Vec<String> {
        let below = self.below(root);
        let skipped = below.len().saturating_sub(max);
        // A call whose sub-agent is shown already, or not at all, still looks like one of a sub-agent.
        let depth = usize::from(self.calls[root].parent.is_some());
        let mut lines = self.calls[root].lines(depth, now, style);
        let hidden: usize = skipped + below.iter().map(|(index, _)| self.calls[*index].hidden).sum::<usize>();
        let hidden = hidden + self.calls[root].hidden;
        if hidden > 0 {
            let indent = "  ".repeat(depth + 1);
            lines.push(Text::new(&format!("{indent}… {hidden} more"), Paint::DIM).line(style));
        }
        for (index, below) in below.into_iter().skip(skipped) {
            lines.extend(self.calls[index].lines(depth + below, now, style));
        }
        lines
    }
}

impl Call {
    fn new(id: String, update: &ToolCall, began: Option<OffsetDateTime>) -> Call {
        Call {
            id,
            parent: update.parent.as_deref().map(self::id),
            run: update.run,
            title: String::new(),
            name: String::new(),
            state: State::Running,
            error: String::new(),
            diff: None,
            began,
            hidden: 0,
        }
    }

    fn update(&mut self, update: &ToolCall) {
        if let Some(title) = &update.title {
            self.title = title.trim().chars().take(MAX_SHORT).collect();
        }
        if let Some(name) = update.name.as_ref().or(update.kind.as_ref().filter(|_| self.name.is_empty())) {
            self.name = short(name);
        }
        if let Some(content) = &update.content {
            self.diff = diff_counts(content);
            self.error = first_line(content).unwrap_or_default();
        }
        match update.status.as_deref() {
            Some("completed") => self.state = State::Completed,
            Some("failed") => self.state = State::Failed,
            _ => {}
        }
    }

    fn lines(&self, depth: usize, now: Option<OffsetDateTime>, style: Style) -> Vec<String> {
        let indent = "  ".repeat(depth.min(MAX_DEPTH));
        let (mark, paint) = match self.state {
            State::Running => ("● ", Paint::CYAN),
            State::Completed => ("✓ ", Paint::GREEN),
            State::Failed => ("✗ ", Paint::RED),
            State::Abandoned => ("○ ", Paint::DIM),
        };
        let mut after = Text::default();
        if let Some((added, removed)) = self.diff.filter(|_| self.state != State::Failed) {
            after = after.with(&format!(" +{added}"), Paint::GREEN).with(&format!(" −{removed}"), Paint::RED);
        }
        match elapsed(self.began, now) {
            Some(time) if self.state == State::Running && time.as_secs() >= SHOW_SECONDS => {
                after.push(&format!(" {}", duration_text(time)), Paint::DIM);
            }
            _ if self.state == State::Abandoned => after.push(" (did not end)", Paint::DIM),
            _ => {}
        }
        let title = [&self.title, &self.name].into_iter().find(|text| !text.is_empty());
        let room = style.cut_columns().saturating_sub(indent.len() + 2 + after.width());
        let mut line = Text::new(&indent, Paint::PLAIN).with(mark, paint);
        line.push(&cut(title.map_or("tool call", String::as_str), room), Paint::PLAIN);
        line.append(after);
        let mut lines = vec![line.line(style)];
        if self.state == State::Failed && !self.error.is_empty() {
            let error = cut(&self.error, style.cut_columns().saturating_sub(indent.len() + 2));
            lines.push(Text::new(&format!("{indent}  {error}"), Paint::RED).line(style));
        }
        lines
    }
}

fn id(call: &str) -> String {
    call[..call.floor_char_boundary(MAX_ID)].to_owned()
}

/// The first line of text in the content of a call.
fn first_line(content: &Value) -> Option<String> {
    let texts = content.as_array().into_iter().flatten().filter_map(|item| item["content"]["text"].as_str());
    texts.chain(content.as_str()).map(short).find(|line| !line.is_empty())
}

/// Lines added and removed by all diffs of a content.
fn diff_counts(content: &Value) -> Option<(usize, usize)> {
    let diffs = content.as_array()?.iter().filter(|item| item["type"] == "diff");
    let counts = diffs.map(|item| match item["diff"].as_str() {
        Some(diff) => unified_counts(diff),
        None => text_counts(item["oldText"].as_str().unwrap_or_default(), item["newText"].as_str().unwrap_or_default()),
    });
    counts.reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1))
}

fn unified_counts(diff: &str) -> (usize, usize) {
    // The lines before the first hunk name the files.
    let has_hunks = diff.lines().any(|line| line.starts_with("@@"));
    let hunks = diff.lines().skip_while(|line| has_hunks && !line.starts_with("@@"));
    hunks.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    })
}

/// Lines of one text that the other one does not have, each counted as often as it is missing.
fn text_counts(old: &str, new: &str) -> (usize, usize) {
    let mut lines: HashMap<&str, isize> = HashMap::new();
    old.lines().for_each(|line| *lines.entry(line).or_default() -= 1);
    new.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    let sum = |sign: isize| lines.values().map(|count| (count * sign).max(0)).sum::<isize>().unsigned_abs();
    (sum(1), sum(-1))
}
