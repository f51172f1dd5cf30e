//! Delivers commands through a gateway.

use std::time::Duration;

use bowline_proto::api::NewCommand;
use bowline_proto::post::Response;
use http::Method;
use serde_json::Value;

use super::Deliver;
use crate::remote::Gateway;
use crate::remote::api::ApiRequest;

impl Deliver for Gateway {
    fn deliver(&self, session: &str, id: &str, command: &Value, within: Duration) -> Response {
        let body = NewCommand { id: id.to_owned(), command: command.clone() };
        let path = format!("/v1/sessions/{session}/commands");
        match self.exchange(&ApiRequest::new(Method::POST, path).body(&body).within(within)) {
            Ok(response) => response,
            Err(error) => Response::Missing { why: error.to_string() },
        }
    }
}
