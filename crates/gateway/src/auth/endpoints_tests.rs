//! The endpoints behind the real door, without a socket.

use axum::body::Body;
use axum::{Router, middleware};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::settings::Settings;
use crate::{guard, testing};

/// A gateway's auth, and requests to it.
struct Door {
    _temp: TempDir,
    auth: Auth,
    router: Router,
}

impl Door {
    fn new(change: impl FnOnce(&mut Settings)) -> Door {
        let temp = tempfile::tempdir().unwrap();
        let app = testing::app(temp.path(), change);
        let auth = app.auth.clone();
        let door = middleware::from_fn_with_state(app.clone(), guard::check);
        Door { _temp: temp, auth, router: crate::router::gather(endpoints::routes()).layer(door).with_state(app) }
    }

    async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:7433");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        Answer::read(testing::send(&self.router, request.body(body).unwrap()).await).await
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        self.call(Method::POST, path, headers, body).await
    }

    /// Logs in; the headers of a browser that has.
    async fn browser(&self) -> [(&'static str, String); 2] {
        let code = self.auth.new_code().unwrap();
        let answer = self.post("/v1/login", &[], json!({ "code": code.code.reveal() })).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let cookie = answer.cookie.split(';').next().unwrap().to_owned();
        [("cookie", cookie), ("bowline-key", answer.body["key"].as_str().unwrap().to_owned())]
    }
}

struct Answer {
    status: StatusCode,
    cookie: String,
    retry_after: Option<u64>,
    body: Value,
}

impl Answer {
    async fn read(response: Response<Body>) -> Answer {
        let text = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (cookie, retry) = (text(header::SET_COOKIE).unwrap_or_default(), text(header::RETRY_AFTER));
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let retry_after = retry.and_then(|seconds| seconds.parse().ok());
        Answer { status, cookie, retry_after, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
    }

    fn is(&self, status: u16, code: &str) -> bool {
        self.status == status && self.body["code"] == code
    }
}

fn bearer(auth: &Auth, scope: TokenScope) -> (String, String) {
    let made = auth.create_token("t", scope, None).unwrap();
    (made.id, format!("Bearer {}", made.token.reveal()))
}

fn borrow<'a>(headers: &'a [(&'static str, String); 2]) -> [(&'a str, &'a str); 2] {
    headers.each_ref().map(|(name, value)| (*name, value.as_str()))
}

#[tokio::test]
async fn r48_a_browser_logs_in_once_by_a_code_and_needs_cookie_and_key() {
    let door = Door::new(|_| {});
    let code = door.auth.new_code().unwrap();
    let body = json!({ "code": code.code.reveal() });
    let answer = door.post("/v1/login", &[("user-agent", "Firefox/200")], body.clone()).await;
    assert_eq!(answer.status, StatusCode::OK);
    let (pair, traits) = answer.cookie.split_once(';').unwrap();
    assert!(pair.starts_with(&format!("{}=", door.auth.cookie_name())));
    assert_eq!(traits, " Path=/; Max-Age=34560000; HttpOnly; SameSite=Strict");
    let key = answer.body["key"].as_str().unwrap();
    let list = door.call(Method::GET, "/v1/tokens", &[("cookie", pair), ("bowline-key", key)], Value::Null).await;
    assert_eq!((list.status, &list.body["tokens"][0]["name"]), (StatusCode::OK, &"Firefox/200".into()));
    for headers in [&[("cookie", pair)][..], &[("bowline-key", key)], &[("cookie", pair), ("bowline-key", "x")]] {
        let refused = door.call(Method::GET, "/v1/tokens", headers, Value::Null).await;
        assert!(refused.is(401, "not_authenticated"), "{}", refused.body);
    }
    let again = door.post("/v1/login", &[], body).await;
    assert!(again.is(401, "not_authenticated") && again.cookie.is_empty(), "{}", again.body);
    assert!(again.body["detail"].as_str().unwrap().contains("already used"));
}

#[tokio::test]
async fn r50_the_cookie_belongs_to_the_public_path_and_is_secure_where_that_is() {
    let door = Door::new(|settings| {
        settings.public_url = Some("https://box.example/term".parse().unwrap());
        settings.base_path = "/term".into();
    });
    let log_in = async |headers: &[(&str, &str)]| {
        let code = door.auth.new_code().unwrap();
        door.post("/v1/login", headers, json!({ "code": code.code.reveal() })).await.cookie
    };
    let cookie = log_in(&[("origin", "https://box.example")]).await;
    assert!(cookie.ends_with("; Path=/term; Max-Age=34560000; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    // By another way, without TLS, a browser would drop a cookie that is marked so.
    let cookie = log_in(&[("origin", "http://127.0.0.1:7433")]).await;
    assert!(cookie.ends_with("; Path=/term; Max-Age=34560000; HttpOnly; SameSite=Strict"), "{cookie}");
}

#[tokio::test]
async fn r49_logins_are_limited_and_checked_for_their_origin() {
    let door = Door::new(|settings| settings.limits.login_rate = 3);
    let evil = door.post("/v1/login", &[("origin", "http://127.0.0.1:8000")], json!({ "code": "x" })).await;
    assert!(evil.is(403, "bad_origin"), "another port of this host: {}", evil.body);
    for body in [json!({ "code": "x" }), json!({ "code": 1 }), Value::Null] {
        let answer = door.post("/v1/login", &[], body).await;
        assert!(answer.is(401, "not_authenticated") || answer.is(400, "bad_request"), "{}", answer.body);
    }
    let code = door.auth.new_code().unwrap();
    let answer = door.post("/v1/login", &[], json!({ "code": code.code.reveal() })).await;
    assert!(answer.is(429, "too_many"), "{}", answer.body);
    assert!(answer.retry_after.is_some_and(|seconds| (1..=21).contains(&seconds)), "{:?}", answer.retry_after);
    assert!(door.auth.login(code.code.reveal(), "").is_ok(), "the code is not spent by a refusal");
}

/// Each proxy in a row adds what it saw; only the nearest is known to be ours.
#[tokio::test]
async fn r50_of_several_forwarded_values_the_nearest_counts() {
    let door = Door::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        settings.hosts = vec!["box.test".to_owned()];
    });
    let call = async |host: &str, proto: &str| {
        let headers = [("x-forwarded-host", host), ("x-forwarded-proto", proto), ("origin", "https://box.test")];
        door.post("/v1/login", &headers, json!({ "code": "x" })).await
    };
    for (host, proto) in [("box.test", "https"), ("evil.test, box.test", "http,https"), ("x,box.test", " https ")] {
        assert!(call(host, proto).await.is(401, "not_authenticated"), "{host} {proto}: only the code is wrong");
    }
    assert!(call("box.test, evil.test", "https").await.is(403, "bad_host"));
    assert!(call("box.test", "https, http").await.is(403, "bad_origin"));
    let lines = [("x-forwarded-host", "box.test"), ("x-forwarded-host", "evil.test")];
    assert!(door.post("/v1/login", &lines, json!({ "code": "x" })).await.is(403, "bad_host"));
}

/// Proxies that ask for a password, or pass a token of their own on, leave it in the request: nobody came in through them.
#[tokio::test]
async fn r50_an_authorization_that_is_not_ours_is_in_nobodys_way() {
    let door = Door::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        let (header, users) = ("x-forwarded-user".to_owned(), vec!["ann".to_owned()]);
        settings.forward_auth = Some(crate::settings::ForwardAuth { header, users });
    });
    let list = async |authorization: &str, more: &[(&str, &str)]| {
        let headers = [more, &[("authorization", authorization)]].concat();
        door.call(Method::GET, "/v1/tokens", &headers, Value::Null).await
    };
    let browser = door.browser().await;
    let (_, token) = bearer(&door.auth, TokenScope::Read);
    for theirs in ["Basic YW5uOnNlY3JldA==", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "Bearer", ""] {
        assert_eq!(list(theirs, &borrow(&browser)).await.status, StatusCode::OK, "{theirs}");
        assert_eq!(list(theirs, &[("x-forwarded-user", "ann")]).await.status, StatusCode::OK, "{theirs}");
        assert!(list(theirs, &[("x-forwarded-user", "eve")]).await.is(403, "not_allowed"), "{theirs}");
        assert!(list(theirs, &[]).await.is(401, "not_authenticated"), "{theirs}");
    }
    // One of ours decides alone, also when it is wrong.
    assert!(list(&token, &borrow(&browser)).await.is(403, "not_allowed"));
    assert!(list(&format!("{token}x"), &borrow(&browser)).await.is(401, "not_authenticated"));
}

#[tokio::test]
async fn r48_tokens_are_made_listed_and_revoked_by_an_admin_alone() {
    let door = Door::new(|_| {});
    let wanted = json!({ "name": "ci", "scope": "write", "ttl": 3600 });
    for scope in [TokenScope::Read, TokenScope::Write] {
        let (id, token) = bearer(&door.auth, scope);
        let headers = [("authorization", token.as_str())];
        assert!(door.call(Method::GET, "/v1/tokens", &headers, Value::Null).await.is(403, "not_allowed"));
        assert!(door.post("/v1/tokens", &headers, wanted.clone()).await.is(403, "not_allowed"));
        let path = format!("/v1/tokens/{id}");
        assert!(door.call(Method::DELETE, &path, &headers, Value::Null).await.is(403, "not_allowed"));
    }
    let browser = door.browser().await;
    let headers = borrow(&browser);
    let made = door.post("/v1/tokens", &headers, wanted).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let caller = door.auth.bearer(made.body["token"].as_str().unwrap()).unwrap();
    assert_eq!((made.body["id"].as_str().unwrap(), TokenScope::Write), (caller.id(), caller.scope()));
    let path = format!("/v1/tokens/{}", caller.id());
    assert_eq!(door.call(Method::DELETE, &path, &headers, Value::Null).await.status, StatusCode::NO_CONTENT);
    assert!(caller.is_revoked());
    assert!(door.call(Method::DELETE, &path, &headers, Value::Null).await.is(404, "not_found"));
    for (body, code) in [
        (json!({ "name": "a b", "scope": "read" }), "bad_name"),
        (json!({ "name": "a", "scope": "root" }), "bad_request"),
        (json!({ "name": "a", "scope": "read", "ttl": 0 }), "bad_request"),
        (json!({ "name": "a", "scope": "read", "ttl": u64::MAX }), "bad_request"),
        (json!({ "scope": "read" }), "bad_request"),
    ] {
        assert!(door.post("/v1/tokens", &headers, body.clone()).await.is(400, code), "{body}");
    }
}

#[tokio::test]
async fn r48_a_ticket_has_its_makers_scope_and_ends_with_it() {
    let door = Door::new(|_| {});
    let (id, token) = bearer(&door.auth, TokenScope::Read);
    let headers = [("authorization", token.as_str())];
    let mut tickets = Vec::new();
    for body in [json!({}), Value::Null] {
        let answer = door.post("/v1/tickets", &headers, body).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.body["expires"].as_str().unwrap().ends_with('Z'));
        tickets.push(answer.body["ticket"].as_str().unwrap().to_owned());
    }
    let path = format!("/v1/tokens?ticket={}", tickets[0]);
    let refused = door.call(Method::GET, &path, &[], Value::Null).await;
    assert!(refused.is(401, "not_authenticated"), "a ticket opens streams and nothing else");
    assert_eq!(door.auth.redeem_ticket(&tickets[0]).unwrap().scope(), TokenScope::Read);
    assert!(door.auth.redeem_ticket(&tickets[0]).is_none(), "it is spent");
    door.auth.revoke(&id).unwrap();
    assert!(door.auth.redeem_ticket(&tickets[1]).is_none(), "its maker is gone");
    assert!(door.post("/v1/tickets", &[], json!({})).await.is(401, "not_authenticated"));
}

#[tokio::test]
async fn r48_a_browser_logs_out() {
    let door = Door::new(|_| {});
    let browser = door.browser().await;
    let answer = door.post("/v1/logout", &borrow(&browser), Value::Null).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert!(answer.cookie.contains("=; ") && answer.cookie.contains("Max-Age=0"), "{}", answer.cookie);
    assert!(door.post("/v1/logout", &borrow(&browser), Value::Null).await.is(401, "not_authenticated"));
    let (_, token) = bearer(&door.auth, TokenScope::Admin);
    let refused = door.post("/v1/logout", &[("authorization", &token)], Value::Null).await;
    assert!(refused.is(400, "bad_request"), "{}", refused.body);
}
