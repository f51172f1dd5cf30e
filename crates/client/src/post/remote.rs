//! Delivers commands through a gateway.

use std::time::Duration;

use bowline_proto::api::NewCommand;
use bowline_proto::ids::SessionId;
use bowline_proto::post::Response;
use bowline_proto::problem::Code;
use http::Method;
use serde_json::Value;

use super::Deliver;
use super::local::refused;
use crate::remote::Gateway;
use crate::remote::api::ApiRequest;

impl Deliver for Gateway {
    fn deliver(&self, session: &str, id: &str, command: &Value, within: Duration) -> Response {
        // Anything else could change the path.
        if session.parse::<SessionId>().is_err() {
            return refused(Code::UnknownSession, "no session has this id", None);
        }
        let body = NewCommand { id: id.to_owned(), command: command.clone() };
        let path = format!("/v1/sessions/{session}/commands");
        match self.exchange(&ApiRequest::new(Method::POST, path).body(&body).within(within)) {
            Ok(response) => response,
            Err(error) => Response::Missing { why: error.to_string() },
        }
    }
}
