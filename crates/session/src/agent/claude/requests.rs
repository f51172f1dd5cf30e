//! Requests of Claude Code: those that the user answers, and those that are refused at once.

use bowline_proto::agent::approval::RequestKey;
use bowline_proto::agent::event::Level;
use serde_json::{Value, json};

use super::messages::{Permission, PermissionLine, RequestLine};
use super::{Claude, permission};
use crate::agent::AdapterEvent;
use crate::agent::details::{MAX_CONTENT, read};

impl Claude {
    /// Every request is answered, some of them by the user: the agent waits for it without end.
    pub(super) fn handle_request(&mut self, line: &[u8]) {
        let Some(RequestLine { request_id, request }) = read(line) else { return self.news.raw(line) };
        match request.subtype.as_str() {
            "can_use_tool" if line.len() > MAX_CONTENT => {
                let text = format!("a request of {} bytes was too large (limit {MAX_CONTENT}); denied", line.len());
                self.news.notice(Level::Warning, text);
                self.respond(&request_id, &json!({"behavior": "deny", "message": "The request is too large."}));
            }
            "can_use_tool" => match read::<PermissionLine>(line) {
                Some(PermissionLine { request }) => self.open_request(request_id, request),
                None => self.refuse(&request_id, "this is not a permission request"),
            },
            _ => self.refuse(&request_id, "this request is not supported"),
        }
    }

    fn open_request(&mut self, id: String, permission: Permission) {
        if self.open.values().any(|open| open.id == id) {
            return; // it waits already
        }
        let parent = permission.agent_id.as_deref().and_then(|agent| self.tasks.parent(agent));
        let (open, approval) = permission::open(id, permission, parent, self.turns.run(), &self.cwd, &self.known);
        let request = RequestKey(self.next_request);
        self.next_request += 1;
        self.open.insert(request, open);
        self.news.push(AdapterEvent::Requested { request, approval: Box::new(approval) });
    }

    pub(super) fn handle_withdrawal(&mut self, line: &[u8]) {
        let Some(RequestLine { request_id, .. }) = read(line) else { return self.news.raw(line) };
        let open = self.open.iter().find(|(_, open)| open.id == request_id).map(|(request, _)| *request);
        if let Some(request) = open {
            self.open.remove(&request);
            self.news.push(AdapterEvent::Withdrawn(request));
        }
    }

    pub(super) fn respond(&mut self, id: &str, response: &Value) {
        let response = json!({"subtype": "success", "request_id": id, "response": response});
        self.news.write(&json!({"type": "control_response", "response": response}));
    }

    fn refuse(&mut self, id: &str, error: &str) {
        let response = json!({"subtype": "error", "request_id": id, "error": error});
        self.news.write(&json!({"type": "control_response", "response": response}));
    }
}
