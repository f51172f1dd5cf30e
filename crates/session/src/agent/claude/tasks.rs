//! Background tasks and sub-agents that run in Claude Code.

use std::collections::BTreeMap;

use super::messages::SystemLine;

/// The most tasks that are known at the same time. A further one is not: an abort does not stop it by name, and what its
/// sub-agent requests has no parent.
const MAX_TASKS: usize = 256;
/// The longest id of a task in bytes; a task with a longer one is not known.
const MAX_ID: usize = 256;

/// The tasks that run, or have just ended.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: BTreeMap<String, Task>,
}

#[derive(Debug, Default)]
struct Task {
    /// The tool call that started it.
    call: Option<String>,
    is_backgrounded: bool,
    /// It has ended, and its notification follows.
    is_over: bool,
}

/// The end of a task that outlived the tool call that started it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskEnd {
    pub(super) call: String,
    pub(super) is_failed: bool,
    /// What the task did, in the agent's words.
    pub(super) summary: String,
}

impl Tasks {
    /// A `system` message about tasks. Returns the end of a background task.
    pub(super) fn handle(&mut self, subtype: &str, line: SystemLine) -> Option<TaskEnd> {
        if subtype == "background_tasks_changed" {
            let listed: Vec<String> = line.tasks.0.into_iter().map(|task| task.task_id).collect();
            self.known.retain(|id, task| !task.is_backgrounded || listed.contains(id));
            for id in listed {
                self.add(id, None, Some(true));
            }
            return None;
        }
        let id = line.task_id?;
        match subtype {
            "task_started" => self.add(id, line.tool_use_id, line.is_backgrounded),
            "task_updated" => {
                let task = self.known.get_mut(&id)?;
                task.is_backgrounded = line.patch.is_backgrounded.unwrap_or(task.is_backgrounded);
                task.is_over |= is_over(line.patch.status.as_deref());
            }
            "task_notification" if is_over(line.status.as_deref()) => {
                let task = self.known.remove(&id).filter(|task| task.is_backgrounded)?;
                let status = line.status.unwrap_or_default();
                let is_failed = status != "completed";
                let summary = line.summary.unwrap_or_default();
                let summary = if is_failed { format!("{status}: {summary}") } else { summary };
                return Some(TaskEnd { call: task.call?, is_failed, summary });
            }
            _ => {}
        }
        None
    }

    fn add(&mut self, id: String, call: Option<String>, is_backgrounded: Option<bool>) {
        if self.known.len() >= MAX_TASKS {
            self.known.retain(|_, task| !task.is_over);
        }
        let has_room = self.known.len() < MAX_TASKS && id.len() <= MAX_ID;
        if !has_room && !self.known.contains_key(&id) {
            return;
        }
        let task = self.known.entry(id).or_default();
        task.call = call.filter(|call| call.len() <= MAX_ID).or(task.call.take());
        task.is_backgrounded = is_backgrounded.unwrap_or(task.is_backgrounded);
    }

    /// The ids of the tasks that run.
    pub(super) fn running(&self) -> impl Iterator<Item = &str> {
        self.known.iter().filter(|(_, task)| !task.is_over).map(|(id, _)| id.as_str())
    }

    /// The tool call that started a sub-agent.
    pub(super) fn parent(&self, agent: &str) -> Option<String> {
        self.known.get(agent).and_then(|task| task.call.clone())
    }
}

/// Whether a task with this status has ended. One with an unknown status may still run.
fn is_over(status: Option<&str>) -> bool {
    matches!(status, Some("completed" | "failed" | "killed" | "stopped" | "cancelled" | "error"))
}
