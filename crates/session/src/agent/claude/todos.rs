//! The todo list of Claude Code, built from the calls of the tools that change it.

use serde_json::{Value, json};

use crate::agent::plain_text;

/// The most entries of the list; later ones are left out.
const MAX_TODOS: usize = 64;
/// The most bytes of an entry's text; a longer one is cut.
const MAX_TEXT: usize = 200;
/// The longest id of an entry in bytes; an entry with a longer one cannot be changed.
const MAX_ID: usize = 64;

/// A change of the list, which takes effect when its tool call has succeeded.
#[derive(Debug)]
pub(super) enum TodoChange {
    /// `TodoWrite` replaces the list.
    Replace(Vec<Todo>),
    /// `TaskCreate` adds an entry, whose id is in the result of the call.
    Create(Todo),
    /// `TaskUpdate` changes an entry.
    Update { id: String, text: Option<String>, status: Option<String> },
}

#[derive(Debug)]
pub(super) struct Todo {
    id: String,
    text: String,
    status: &'static str,
}

impl TodoChange {
    /// The change that a call of this tool makes, if it is one that changes the list.
    pub(super) fn of(tool: &str, input: &Value) -> Option<TodoChange> {
        let text = |key: &str| input[key].as_str().map(short);
        match tool {
            "TodoWrite" => {
                let todos = input["todos"].as_array()?.iter().take(MAX_TODOS);
                let todo = |todo: &Value| Todo {
                    id: String::new(),
                    text: short(todo["content"].as_str().unwrap_or_default()),
                    status: status(todo["status"].as_str()).unwrap_or("pending"),
                };
                Some(TodoChange::Replace(todos.map(todo).collect()))
            }
            "TaskCreate" => {
                let text = text("subject").or_else(|| text("description"))?;
                Some(TodoChange::Create(Todo { id: String::new(), text, status: "pending" }))
            }
            "TaskUpdate" => Some(TodoChange::Update {
                id: input["taskId"].as_str().filter(|id| id.len() <= MAX_ID)?.to_owned(),
                text: text("subject"),
                status: input["status"].as_str().map(short),
            }),
            _ => None,
        }
    }
}

/// The list as it is now.
#[derive(Debug, Default)]
pub(super) struct Todos {
    entries: Vec<Todo>,
}

impl Todos {
    /// Makes a change. `new_id` is the id of an entry that is added.
    pub(super) fn apply(&mut self, change: TodoChange, new_id: Option<String>) {
        match change {
            TodoChange::Replace(todos) => self.entries = todos,
            TodoChange::Create(todo) if self.entries.len() < MAX_TODOS => {
                let id = new_id.filter(|id| id.len() <= MAX_ID).unwrap_or_default();
                self.entries.retain(|entry| id.is_empty() || entry.id != id);
                self.entries.push(Todo { id, ..todo });
            }
            TodoChange::Create(_) => {}
            TodoChange::Update { id, status: Some(deleted), .. } if deleted == "deleted" => {
                self.entries.retain(|entry| entry.id != id);
            }
            TodoChange::Update { id, text, status: new } => {
                if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
                    entry.text = text.unwrap_or(std::mem::take(&mut entry.text));
                    entry.status = status(new.as_deref()).unwrap_or(entry.status);
                }
            }
        }
    }

    /// The entries of a `plan` event.
    pub(super) fn entries(&self) -> Value {
        self.entries.iter().map(|todo| json!({"content": todo.text, "status": todo.status})).collect()
    }
}

fn short(text: &str) -> String {
    plain_text(text.as_bytes(), MAX_TEXT)
}

fn status(status: Option<&str>) -> Option<&'static str> {
    match status? {
        "pending" => Some("pending"),
        "in_progress" => Some("in_progress"),
        "completed" => Some("completed"),
        _ => None,
    }
}
