//! What an ACP agent asks. Every request is answered, some of them by the user: an agent may wait for it without end.

use bowline_proto::agent::approval::{Approval, RequestKey};
use bowline_proto::agent::event::Level;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Acp;
use super::cursor::{self, AskQuestion, CreatePlan, UpdateTodos};
use super::elicitation::Elicitation;
use super::messages::{CancelRequest, Permission, PermissionMeta};
use super::permission::{self, OpenRequest};
use crate::agent::details::{self, MAX_CONTENT, read};
use crate::agent::rpc::{BAD_PARAMS, Call, Id, NO_METHOD};
use crate::agent::{AdapterEvent, plain_text};

/// The error code for a request that its sender took back.
pub(super) const CANCELLED: i64 = -32800;

impl Acp {
    pub(super) fn handle_request(&mut self, method: &str, id: Id, line: &[u8]) {
        let is_known = matches!(method, "session/request_permission" | "elicitation/create");
        let is_cursor = self.quirks.has_cursor_requests && method.starts_with("cursor/");
        if !is_known && !is_cursor {
            return self.refuse(&id, NO_METHOD, "this method is not supported");
        }
        if line.len() > MAX_CONTENT {
            let text = format!("a request of {} bytes was too large (limit {MAX_CONTENT})", line.len());
            self.news.notice(Level::Warning, text);
            return self.refuse(&id, BAD_PARAMS, "the request is too large");
        }
        match method {
            "session/request_permission" => {
                let meta = read::<Call<PermissionMeta>>(line).map(|call| call.params.tool_call.meta);
                let parent = meta.unwrap_or_default().parent();
                self.read_request(id, line, |acp, id, permission| {
                    acp.handle_permission(id, permission, parent.clone())
                });
            }
            "elicitation/create" => self.read_request(id, line, Acp::handle_elicitation),
            "cursor/ask_question" => self.read_request(id, line, |acp, id, question: AskQuestion| {
                let (approval, offered) = question.approval(acp.run);
                acp.open_request(OpenRequest::cursor_question(id, offered), approval);
            }),
            "cursor/create_plan" => self.read_request(id, line, |acp, id, plan: CreatePlan| {
                acp.open_request(OpenRequest::cursor_plan(id), plan.approval(acp.run));
            }),
            "cursor/update_todos" => self.read_request(id, line, |acp, id, UpdateTodos { todos }| {
                acp.news.record(details::plan(acp.run, todos));
                acp.respond(&id, &json!({}));
            }),
            _ => self.respond(&id, &cursor::outcome("cancelled")),
        }
    }

    /// Parses the parameters of a request; it is refused if they are of another type.
    fn read_request<T: for<'a> Deserialize<'a>>(&mut self, id: Id, line: &[u8], handle: impl Fn(&mut Acp, Id, T)) {
        match read::<Call<T>>(line) {
            Some(Call { params }) => handle(self, id, params),
            None => self.refuse(&id, BAD_PARAMS, "the parameters are not those of this request"),
        }
    }

    fn handle_permission(&mut self, id: Id, mut permission: Permission, parent: Option<String>) {
        permission::retain_allowed(&mut permission, &self.config.mode_policy, |id| self.settings.has_mode(id));
        // Some agents send the changes that they ask about only with the tool call.
        let changes = self.tools.changes(&permission.tool_call.tool_call_id);
        let mut approval = permission::approval(self.run, &permission, changes);
        if self.quirks.title_is_command && permission.tool_call.kind.as_deref() == Some("execute") {
            approval.detail.command.get_or_insert_with(|| approval.title.clone());
        }
        let open = OpenRequest::permission(id, &permission);
        self.record_tool(permission.tool_call, parent, true);
        self.open_request(open, approval);
    }

    fn handle_elicitation(&mut self, id: Id, elicitation: Elicitation) {
        if elicitation.mode.as_deref() == Some("url") || elicitation.requested_schema.is_empty() {
            let text = plain_text(elicitation.message.as_bytes(), 4 << 10);
            let text = format!("the agent asked something that has no form; declined: {text}");
            self.news.notice(Level::Warning, text);
            return self.respond(&id, &json!({"action": "decline"}));
        }
        let approval = permission::question(self.run, &elicitation);
        self.open_request(OpenRequest::elicitation(id, elicitation.requested_schema), approval);
    }

    fn open_request(&mut self, open: OpenRequest, approval: Approval) {
        let request = RequestKey(self.next_request);
        self.next_request += 1;
        self.open.insert(request, open);
        self.news.push(AdapterEvent::Requested { request, approval: Box::new(approval) });
    }

    pub(super) fn handle_withdrawal(&mut self, line: &[u8]) {
        let Some(Call { params: CancelRequest { request_id } }) = read(line) else { return self.news.raw(line) };
        let open = self.open.iter().find(|(_, open)| open.id == request_id).map(|(request, _)| *request);
        let Some(request) = open else { return };
        self.open.remove(&request);
        self.refuse(&request_id, CANCELLED, "the request was cancelled");
        self.news.push(AdapterEvent::Withdrawn(request));
    }

    fn respond(&mut self, id: &Id, result: &Value) {
        self.news.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}
