//! `/openapi.json`: the OpenAPI description of every path, built from the attributes on the handlers.

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

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Bowline",
        description = "Keeps terminals running on the machine where they were started, and serves them over HTTP and \
            WebSocket."
    ),
    paths(
        crate::list::list,
        crate::create::create,
        crate::sessions::get,
        crate::sessions::change,
        crate::sessions::end,
        crate::sessions::restart,
        crate::sessions::command,
        crate::history::get,
        crate::blobs::get,
        crate::log::get,
        crate::screen::get,
        crate::uploads::put,
        crate::uploads::get,
        crate::files::list,
        crate::attach::attach,
        crate::folders::list,
        crate::agents::list,
        crate::approvals::list,
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

/// Adds what all paths have in common: security schemes, and a description of each response.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = |name: &str| ApiKeyValue::new(name.to_owned());
        let token =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A token from `bowline token create`"));
        components.add_security_scheme("token", SecurityScheme::Http(token.build()));
        let cookie = "The cookie from `POST /v1/login`; send the login's key with it, in the `Bowline-Key` header";
        let cookie = ApiKeyValue::with_description("bowline_INSTANCE", cookie);
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(key(KEY_HEADER))));
        components.add_security_scheme("ticket", SecurityScheme::ApiKey(ApiKey::Query(key("ticket"))));
        for item in document.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
            operations.into_iter().flatten().for_each(describe_responses);
        }
    }
}

/// Gives every response a description and every error response a `Problem` body. Any path may also fail
/// for another reason, such as a bad `Host` or `Origin`, so each gets a `default` response.
fn describe_responses(operation: &mut Operation) {
    let problem = || ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            let reason = status.parse().ok().and_then(|status: StatusCode| status.canonical_reason());
            response.description = reason.unwrap_or_default().to_owned();
        }
        if status.starts_with(['4', '5']) {
            response.content.insert("application/problem+json".to_owned(), RefOr::T(problem()));
        }
    }
    let other = ResponseBuilder::new().description("Any other error").content("application/problem+json", problem());
    operation.responses.responses.insert("default".to_owned(), RefOr::T(other.build()));
}

static TEXT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

pub(crate) fn document() -> Value {
    let mut document = json!(Document::openapi());
    // The derived schema would also list codes that no HTTP response uses.
    let codes = Code::ALL.iter().filter(|code| **code != Code::InputHole).map(|code| code.name());
    document["components"]["schemas"]["Code"]["enum"] = codes.collect();
    document
}

/// Returns this OpenAPI description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "gateway", operation_id = "describe", security(()),
    responses((status = 200, body = serde_json::Value))
)]
pub(crate) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}
