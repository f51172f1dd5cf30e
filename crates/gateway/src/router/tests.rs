//! What is served is described, and what is described is served.

use std::collections::BTreeSet;

use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::Value;

use super::*;
use crate::testing;

const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Asks, as a stranger.
async fn ask(router: &Router, method: Method, path: &str) -> Response {
    let request = Request::builder().method(method).uri(path.replace("{id}", "x")).header(header::HOST, "127.0.0.1");
    testing::send(router, request.body(Body::empty()).unwrap()).await
}

async fn text(answer: Response) -> String {
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn r52_ready_means_that_sessions_can_be_served_and_tells_strangers_no_more() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let router = router(app.clone(), metrics::install().unwrap());
    assert_eq!(ask(&router, Method::GET, "/readyz").await.status(), StatusCode::OK);
    std::fs::remove_dir_all(temp.path().join("s")).unwrap();
    std::fs::write(temp.path().join("s"), "in the way").unwrap();
    let refused = ask(&router, Method::GET, "/readyz").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let said = text(refused).await;
    assert!(said.contains("\"unreachable\"") && !said.contains(temp.path().to_str().unwrap()), "{said}");
    std::fs::remove_file(temp.path().join("s")).unwrap();
    assert_eq!(ask(&router, Method::GET, "/readyz").await.status(), StatusCode::OK);
    app.stop.cancel();
    assert_eq!(ask(&router, Method::GET, "/readyz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask(&router, Method::GET, "/healthz").await.status(), StatusCode::OK, "it still runs");
}

#[tokio::test]
async fn every_route_is_described_and_every_description_is_routed() {
    let temp = tempfile::tempdir().unwrap();
    let counted = metrics::install().unwrap();
    let router = router(testing::app(temp.path(), |_| {}), counted.clone());
    let mut served = BTreeSet::new();
    for (path, _) in routes(counted) {
        for method in METHODS {
            let status = ask(&router, method.clone(), path).await.status();
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
fn every_path_says_how_it_refuses_and_who_may_call() {
    let document = crate::openapi::document();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses
                    .values()
                    .all(|response| response["description"].as_str().is_some_and(|said| !said.is_empty())),
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

/// Every name that is used is explained.
#[test]
fn no_schema_is_missing() {
    fn check(document: &Value, part: &Value) {
        match part {
            Value::Object(fields) => fields.iter().for_each(|(name, part)| match part.as_str() {
                Some(place) if name == "$ref" => assert!(document.pointer(&place[1..]).is_some(), "{place}"),
                _ => check(document, part),
            }),
            Value::Array(parts) => parts.iter().for_each(|part| check(document, part)),
            _ => {}
        }
    }
    let document = crate::openapi::document();
    check(&document, &document);
}

/// A program can count on what every refusal has.
#[test]
fn a_problem_is_described_as_it_is_written() {
    let schemas = &crate::openapi::document()["components"]["schemas"];
    assert_eq!(schemas["Problem"]["required"], serde_json::json!(["type", "title", "status", "code", "detail"]));
    let codes = schemas["Code"]["enum"].as_array().unwrap();
    assert!(codes.contains(&"bad_request".into()) && !codes.contains(&"unknown".into()), "{codes:?}");
}

/// What is described of a session is what is sent.
#[test]
fn a_session_is_described_as_it_is_written() {
    let session = serde_json::json!({
        "id": "k3v9x0q2m7aa", "name": "build", "kind": "terminal", "state": "exited", "exit": { "code": 0, "signal": null },
        "created": "2026-11-15T18:00:00Z", "cwd": "/home/dev/app", "argv": ["make"], "title": "make",
        "size": { "cols": 120, "rows": 32 }, "clients": 0, "epoch": "9f3c61d2", "offset": 18211, "degraded": false,
        "version": "0.1.0",
        "host": "box", "active": "2026-11-15T18:00:00Z", "call": { "at": "2026-11-15T18:00:00Z", "kind": "bell", "text": "" },
    });
    let info: bowline_proto::session::SessionInfo = serde_json::from_value(session).unwrap();
    let document = crate::openapi::document();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let described = &document["components"]["schemas"];
    let written = serde_json::to_value(&info).unwrap();
    assert_eq!(properties(&described["SessionInfo"]), keys(&written));
    assert_eq!(keys(&described["Size"]["properties"]), keys(&written["size"]));
    assert_eq!(keys(&described["ExitStatus"]["properties"]), keys(&written["exit"]));
    assert_eq!(described["State"]["enum"], serde_json::json!(["running", "exited", "lost", "unknown"]));
}

/// The properties of a schema and of its parts: a group that only some kinds of sessions have is a part of its own.
fn properties(schema: &Value) -> BTreeSet<String> {
    let own = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(properties);
    own.chain(parts).collect()
}
