//! `/openapi.json`: every path, described for programs, from the attributes beside the code.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bowline_proto::problem::Code;
use bytes::Bytes;
use http::{StatusCode, header};
use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{self, ContentBuilder, Ref, RefOr};
use utoipa::{Modify, OpenApi};

use crate::guard::KEY_HEADER;

/// Everything that the gateway answers to.
#[derive(OpenApi)]
#[openapi(
    info(title = "Bowline", description = "Terminals that live on where they run, reached over HTTP and WebSocket."),
    paths(
        crate::sessions::list,
        crate::create::create,
        crate::sessions::get,
        crate::sessions::change,
        crate::sessions::end,
        crate::sessions::restart,
        crate::sessions::command,
        crate::history::log,
        crate::history::screen,
        crate::attach::attach,
        crate::events::events,
        crate::auth::endpoints::login,
        crate::auth::endpoints::logout,
        crate::auth::endpoints::create_code,
        crate::auth::endpoints::list_tokens,
        crate::auth::endpoints::create_token,
        crate::auth::endpoints::revoke_token,
        crate::auth::endpoints::issue_ticket,
        crate::router::healthy,
        crate::router::ready,
        crate::router::show_metrics,
        crate::openapi::show,
    ),
    components(schemas(bowline_proto::problem::Problem, bowline_proto::control::ScreenFormat)),
    security(("token" = []), ("cookie" = [], "key" = [])),
    modifiers(&Common)
)]
struct Document;

/// What holds for all paths alike.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = |name: &str| ApiKeyValue::new(name.to_owned());
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("From `bowline token create`"));
        components.add_security_scheme("token", SecurityScheme::Http(token.build()));
        let cookie = ApiKeyValue::with_description("bowline_INSTANCE", "From `POST /v1/login`; with its key");
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(key(KEY_HEADER))));
        components.add_security_scheme("ticket", SecurityScheme::ApiKey(ApiKey::Query(key("ticket"))));
        for item in document.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete];
            operations.into_iter().flatten().for_each(describe_responses);
        }
    }
}

/// Every response says what it is. Every refusal is a problem, and those of Host, Origin and the gateway itself may come anywhere.
fn describe_responses(operation: &mut Operation) {
    let problem = || ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            let known = status.parse().ok().and_then(|status: StatusCode| status.canonical_reason());
            response.description = known.unwrap_or_default().to_owned();
        }
        if status.starts_with(['4', '5']) {
            response.content.insert("application/problem+json".to_owned(), RefOr::T(problem()));
        }
    }
    let other = ResponseBuilder::new().description("Another refusal").content("application/problem+json", problem());
    operation.responses.responses.insert("default".to_owned(), RefOr::T(other.build()));
}

/// The document, written once.
static TEXT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

/// The document.
pub(crate) fn document() -> Value {
    let mut document = json!(Document::openapi());
    // A derived schema would also have the codes that no answer over HTTP has.
    let codes = Code::ALL.iter().filter(|code| **code != Code::InputHole).map(|code| code.name());
    document["components"]["schemas"]["Code"]["enum"] = codes.collect();
    document
}

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "gateway", operation_id = "describe", security(()),
    responses((status = 200, body = serde_json::Value))
)]
pub(crate) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}
