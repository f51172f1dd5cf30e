//! Requests of Codex. Every one is answered, some of them by the user: Codex may wait for it without end.

use bowline_proto::agent::approval::{Approval, RequestKey};
use bowline_proto::agent::event::Level;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Codex;
use super::approval::{self, OpenRequest};
use super::question;
use super::request_messages::{CommandApproval, Elicitation, FileApproval, PermissionsApproval, Resolved, UserInput};
use crate::agent::AdapterEvent;
use crate::agent::details::{MAX_CONTENT, MAX_SHORT, read, short};
use crate::agent::rpc::{BAD_PARAMS, Call, Id, NO_METHOD};

impl Codex {
    pub(super) fn handle_request(&mut self, method: &str, id: Id, line: &[u8]) {
        let run = self.run();
        if matches!(&id, Id::Text(text) if text.len() > MAX_SHORT) {
            return self.refuse(&id, BAD_PARAMS, "the id of the request is too long");
        }
        match method {
            "item/commandExecution/requestApproval" => {
                let Some(request) = self.params::<CommandApproval>(&id, line) else { return };
                match approval::command(run, id, &request) {
                    Ok((open, approval)) => self.open_request(open, approval),
                    Err(id) => self.deny_permissions(&id, &json!({"decision": "decline"})),
                }
            }
            "item/fileChange/requestApproval" => {
                let Some(request) = self.params::<FileApproval>(&id, line) else { return };
                let changes = self.items.changes(&short(&request.item_id));
                let (open, approval) = approval::file_change(run, id, &request, changes);
                self.open_request(open, approval);
            }
            "item/permissions/requestApproval" => {
                let Some(request) = self.params::<PermissionsApproval>(&id, line) else { return };
                match approval::permissions(run, id, &request) {
                    Ok((open, approval)) => self.open_request(open, approval),
                    Err(id) => self.deny_permissions(&id, &json!({"permissions": {}})),
                }
            }
            "item/tool/requestUserInput" => {
                let Some(request) = self.params::<UserInput>(&id, line) else { return };
                self.open_request(OpenRequest::questions(id), question::approval(run, &request));
            }
            "mcpServer/elicitation/request" => {
                let Some(request) = self.params::<Elicitation>(&id, line) else { return };
                match approval::elicitation(run, id, &request, self.items.only_tool()) {
                    Ok((open, approval)) => self.open_request(open, approval),
                    Err(id) => {
                        let text = format!("an MCP server asked for a form; declined: {}", request.message);
                        self.news.notice(Level::Warning, short(&text));
                        self.news.write(&json!({"id": id, "result": {"action": "decline"}}));
                    }
                }
            }
            // An approval of another kind, which Codex takes as denied.
            method if method.ends_with("Approval") => {
                let text = format!("Codex asked for an approval that this version does not know; denied: {method}");
                self.news.notice(Level::Warning, short(&text));
                self.refuse(&id, NO_METHOD, "this kind of approval is not supported");
            }
            _ => self.refuse(&id, NO_METHOD, "this method is not supported"),
        }
    }

    /// Denies permissions that are too long to be shown whole, so that no user could judge them.
    fn deny_permissions(&mut self, id: &Id, result: &Value) {
        let text = "Codex asked for more permissions than can be shown; denied".to_owned();
        self.news.notice(Level::Warning, text);
        self.news.write(&json!({"id": id, "result": result}));
    }

    /// The parameters of a request; one that makes no sense or is too large is refused.
    fn params<T: DeserializeOwned>(&mut self, id: &Id, line: &[u8]) -> Option<T> {
        if line.len() > MAX_CONTENT {
            let text = format!("a request of {} bytes was too large (limit {MAX_CONTENT})", line.len());
            self.news.notice(Level::Warning, text);
            self.refuse(id, BAD_PARAMS, "the request is too large");
            return None;
        }
        let params = read::<Call<T>>(line).map(|call| call.params);
        if params.is_none() {
            self.refuse(id, BAD_PARAMS, "the parameters make no sense");
        }
        params
    }

    fn open_request(&mut self, open: OpenRequest, approval: Approval) {
        let request = RequestKey(self.next_request);
        self.next_request += 1;
        self.open.insert(request, open);
        self.news.push(AdapterEvent::Requested { request, approval: Box::new(approval) });
    }

    /// A request needs no answer any more. Codex also says so about one that was answered.
    pub(super) fn handle_resolved(&mut self, line: &[u8]) {
        let Some(Call { params: Resolved { request_id } }) = read(line) else { return self.news.raw(line) };
        let withdrawn: Vec<RequestKey> =
            self.open.iter().filter(|(_, open)| open.id == request_id).map(|(request, _)| *request).collect();
        for request in withdrawn {
            self.open.remove(&request);
            self.news.push(AdapterEvent::Withdrawn(request));
        }
    }

    fn refuse(&mut self, id: &Id, code: i64, message: &str) {
        self.news.write(&json!({"id": id, "error": {"code": code, "message": message}}));
    }
}
