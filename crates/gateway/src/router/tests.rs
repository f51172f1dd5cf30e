//! The OpenAPI description matches the routes and the JSON that they return.

use std::collections::BTreeSet;

use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::Value;

use super::*;
use crate::{ready, testing};

const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Sends a request without credentials.
async fn call(router: &Router, method: Method, path: &str) -> Response {
    let request = Request::builder().method(method).uri(path.replace("{id}", "x")).header(header::HOST, "127.0.0.1");
    testing::send(router, request.body(Body::empty()).unwrap()).await
}

async fn text(response: Response) -> String {
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn r52_readyz_reports_an_unusable_state_directory_without_its_path() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let router = router(app.clone(), metrics::install().unwrap());
    assert_eq!(call(&router, Method::GET, "/readyz").await.status(), StatusCode::OK);
    std::fs::remove_dir_all(temp.path().join("s")).unwrap();
    std::fs::write(temp.path().join("s"), "not a directory").unwrap();
    assert_eq!(call(&router, Method::GET, "/readyz").await.status(), StatusCode::OK, "a check is used for a while");
    tokio::time::advance(ready::MAX_AGE).await;
    let refused = call(&router, Method::GET, "/readyz").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = text(refused).await;
    assert!(body.contains("\"unreachable\"") && !body.contains(temp.path().to_str().unwrap()), "{body}");
    std::fs::remove_file(temp.path().join("s")).unwrap();
    tokio::time::advance(ready::MAX_AGE).await;
    assert_eq!(call(&router, Method::GET, "/readyz").await.status(), StatusCode::OK);
    app.stop.cancel();
    assert_eq!(call(&router, Method::GET, "/readyz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(call(&router, Method::GET, "/healthz").await.status(), StatusCode::OK, "healthz answers until the end");
}

/// Counts what is logged.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().ends_with("::ready")
    }
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn r52_a_stranger_cannot_fill_the_log_with_readyz() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let router = router(app, metrics::install().unwrap());
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    std::fs::remove_dir_all(temp.path().join("s")).unwrap();
    std::fs::write(temp.path().join("s"), "not a directory").unwrap();
    for _ in 0..5 {
        assert_eq!(call(&router, Method::GET, "/readyz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
        tokio::time::advance(ready::MAX_AGE).await;
    }
    assert_eq!(log.0.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn routes_and_descriptions_match() {
    let temp = tempfile::tempdir().unwrap();
    let metrics_handle = metrics::install().unwrap();
    let router = router(testing::app(temp.path(), |_| {}), metrics_handle.clone());
    let mut served = BTreeSet::new();
    for (path, _) in routes(metrics_handle) {
        for method in METHODS {
            let status = call(&router, method.clone(), path).await.status();
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}");
            if status != StatusCode::METHOD_NOT_ALLOWED {
                served.insert((path.to_owned(), method.to_string()));
            }
        }
    }
    let document = crate::openapi::document();
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    assert_eq!(described, served);
}

#[test]
fn every_path_describes_its_errors_and_credentials() {
    let document = crate::openapi::document();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "duplicate operation id {name}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses
                    .values()
                    .all(|response| response["description"].as_str().is_some_and(|text| !text.is_empty())),
                "{method} {path}"
            );
            for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with(['1', '2'])) {
                let content = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(content, "#/components/schemas/Problem", "{method} {path} {status}");
            }
            assert!(responses.contains_key("default"), "{method} {path}");
            let open = operation["security"] == serde_json::json!([{}]);
            assert!(open || responses.contains_key("401"), "{method} {path}");
        }
    }
    assert_eq!(document["security"], serde_json::json!([{ "token": [] }, { "cookie": [], "key": [] }]));
}

#[test]
fn changes_and_restarts_describe_their_rare_refusals() {
    let paths = &crate::openapi::document()["paths"];
    assert!(paths["/v1/sessions/{id}"]["patch"]["responses"]["507"].is_object());
    assert!(paths["/v1/sessions/{id}/restart"]["post"]["responses"]["426"].is_object());
}

#[test]
fn every_reference_resolves() {
    fn check(document: &Value, part: &Value) {
        match part {
            Value::Object(fields) => fields.iter().for_each(|(name, part)| match part.as_str() {
                Some(target) if name == "$ref" => assert!(document.pointer(&target[1..]).is_some(), "{target}"),
                _ => check(document, part),
            }),
            Value::Array(parts) => parts.iter().for_each(|part| check(document, part)),
            _ => {}
        }
    }
    let document = crate::openapi::document();
    check(&document, &document);
}

#[test]
fn the_problem_schema_lists_required_fields_and_all_codes() {
    let schemas = &crate::openapi::document()["components"]["schemas"];
    assert_eq!(schemas["Problem"]["required"], serde_json::json!(["type", "title", "status", "code", "detail"]));
    let codes = schemas["Code"]["enum"].as_array().unwrap();
    assert!(codes.contains(&"bad_request".into()) && !codes.contains(&"unknown".into()), "{codes:?}");
}

#[test]
fn the_session_schema_matches_the_json() {
    let session = serde_json::json!({
        "id": "k3v9x0q2m7aa", "name": "build", "kind": "terminal", "state": "exited", "exit": { "code": 0, "signal": null },
        "created": "2026-11-15T18:00:00Z", "cwd": "/home/dev/app", "argv": ["make"], "title": "make",
        "size": { "cols": 120, "rows": 32 }, "clients": 0, "epoch": "9f3c61d2", "offset": 18211, "degraded": false,
        "version": "0.1.0", "truncated": true,
        "host": "box", "active": "2026-11-15T18:00:00Z", "call": { "at": "2026-11-15T18:00:00Z", "kind": "bell", "text": "" },
    });
    let agent = serde_json::json!({
        "agent": "fake", "conversation": null, "queued": 1, "approvals": [],
        "activity": { "run": "r0", "text": "Working", "can_interrupt": true, "started_at": "2026-11-15T18:00:00Z" },
        "mode": "plan", "model": "fake-small", "commands": [{ "name": "compact", "description": "x", "hint": "y" }],
        "usage": { "tokens": {}, "cost": 0.5, "context": { "used": 1, "size": 2 } },
    });
    let mut info: bowline_proto::session::SessionInfo = serde_json::from_value(session).unwrap();
    info.agent = serde_json::from_value(agent).unwrap();
    let document = crate::openapi::document();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let described = &document["components"]["schemas"];
    let written = serde_json::to_value(&info).unwrap();
    assert_eq!(keys(&described["Activity"]["properties"]), keys(&written["activity"]));
    assert_eq!(keys(&described["Used"]["properties"]), keys(&written["usage"]));
    assert_eq!(keys(&described["Tokens"]["properties"]), keys(&written["usage"]["tokens"]));
    assert_eq!(keys(&described["SlashCommand"]["properties"]), keys(&written["commands"][0]));
    assert_eq!(properties(&described["SessionInfo"]), keys(&written));
    assert_eq!(keys(&described["Size"]["properties"]), keys(&written["size"]));
    assert_eq!(keys(&described["ExitStatus"]["properties"]), keys(&written["exit"]));
    assert_eq!(described["State"]["enum"], serde_json::json!(["running", "exited", "lost", "unknown"]));
}

/// The properties of a schema, including those of its `allOf` parts.
fn properties(schema: &Value) -> BTreeSet<String> {
    let own = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(properties);
    own.chain(parts).collect()
}
