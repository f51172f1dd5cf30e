//! Tests the auth endpoints behind the real access checks, without a socket.

use axum::body::Body;
use axum::extract::State;
use axum::{Router, middleware};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::app::App;
use crate::guard::Admin;
use crate::settings::{ForwardAuth, ProxySecret, Settings};
use crate::{guard, testing};

mod rates;

struct TestGateway {
    temp: TempDir,
    auth: Auth,
    app: App,
    router: Router,
}

impl TestGateway {
    fn new(change: impl FnOnce(&mut Settings)) -> TestGateway {
        let temp = tempfile::tempdir().unwrap();
        let app = testing::app(temp.path(), change);
        let auth = app.auth.clone();
        let guard = middleware::from_fn_with_state(app.clone(), guard::check);
        let router = crate::router::router_of(endpoints::routes()).layer(guard).with_state(app.clone());
        TestGateway { temp, auth, app, router }
    }

    async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header(header::HOST, "127.0.0.1:7433");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        Reply::read(testing::send(&self.router, request.body(body).unwrap()).await).await
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: Value) -> Reply {
        self.call(Method::POST, path, headers, body).await
    }

    /// Logs in. Returns the headers of a logged-in browser.
    async fn browser(&self) -> [(&'static str, String); 2] {
        let code = self.auth.new_code().unwrap();
        let reply = self.post("/v1/login", &[], json!({ "code": code.code.reveal() })).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        let cookie = reply.cookie.split(';').next().unwrap().to_owned();
        [("cookie", cookie), ("bowline-key", reply.body["key"].as_str().unwrap().to_owned())]
    }
}

struct Reply {
    status: StatusCode,
    cookie: String,
    retry_after: Option<u64>,
    body: Value,
}

impl Reply {
    async fn read(response: Response<Body>) -> Reply {
        let text = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (cookie, retry) = (text(header::SET_COOKIE).unwrap_or_default(), text(header::RETRY_AFTER));
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let retry_after = retry.and_then(|seconds| seconds.parse().ok());
        Reply { status, cookie, retry_after, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
    }

    fn is(&self, status: u16, code: &str) -> bool {
        self.status == status && self.body["code"] == code
    }
}

fn bearer(auth: &Auth, scope: TokenScope) -> (String, String) {
    let created = auth.create_token("t", scope, None).unwrap();
    (created.id, format!("Bearer {}", created.token.reveal()))
}

fn borrow<'a>(headers: &'a [(&'static str, String); 2]) -> [(&'a str, &'a str); 2] {
    headers.each_ref().map(|(name, value)| (*name, value.as_str()))
}

#[tokio::test]
async fn r48_a_code_logs_in_once_and_requests_need_cookie_and_key() {
    let gateway = TestGateway::new(|_| {});
    let code = gateway.auth.new_code().unwrap();
    let body = json!({ "code": code.code.reveal() });
    let reply = gateway.post("/v1/login", &[("user-agent", "Firefox/200")], body.clone()).await;
    assert_eq!(reply.status, StatusCode::OK);
    let (pair, attributes) = reply.cookie.split_once(';').unwrap();
    assert!(pair.starts_with(&format!("{}=", gateway.auth.cookie_name())));
    assert_eq!(attributes, " Path=/; Max-Age=34560000; HttpOnly; SameSite=Strict");
    let key = reply.body["key"].as_str().unwrap();
    let list = gateway.call(Method::GET, "/v1/tokens", &[("cookie", pair), ("bowline-key", key)], Value::Null).await;
    assert_eq!((list.status, &list.body["tokens"][0]["name"]), (StatusCode::OK, &"Firefox".into()));
    for headers in [&[("cookie", pair)][..], &[("bowline-key", key)], &[("cookie", pair), ("bowline-key", "x")]] {
        let refused = gateway.call(Method::GET, "/v1/tokens", headers, Value::Null).await;
        assert!(refused.is(401, "not_authenticated"), "{}", refused.body);
    }
    let name = pair.split('=').next().unwrap();
    for planted in [format!("{name}=x; {pair}"), format!("{name}=; a=b; {pair}; {name}=y")] {
        let headers = [("cookie", planted.as_str()), ("bowline-key", key)];
        let list = gateway.call(Method::GET, "/v1/tokens", &headers, Value::Null).await;
        assert_eq!(list.status, StatusCode::OK, "a cookie that another port planted: {planted}");
    }
    let again = gateway.post("/v1/login", &[], body).await;
    assert!(again.is(401, "not_authenticated") && again.cookie.is_empty(), "{}", again.body);
    assert!(again.body["detail"].as_str().unwrap().contains("already used"));
}

#[tokio::test]
async fn r50_the_cookie_has_the_public_path_and_is_secure_over_https() {
    let gateway = TestGateway::new(|settings| {
        settings.public_url = Some("https://box.example/term".parse().unwrap());
        settings.base_path = "/term".into();
    });
    let log_in = async |headers: &[(&str, &str)]| {
        let code = gateway.auth.new_code().unwrap();
        gateway.post("/v1/login", headers, json!({ "code": code.code.reveal() })).await.cookie
    };
    let cookie = log_in(&[("origin", "https://box.example")]).await;
    assert!(cookie.ends_with("; Path=/term; Max-Age=34560000; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    // Over plain HTTP a browser would drop a Secure cookie.
    let cookie = log_in(&[("origin", "http://127.0.0.1:7433")]).await;
    assert!(cookie.ends_with("; Path=/term; Max-Age=34560000; HttpOnly; SameSite=Strict"), "{cookie}");
}

/// A page that came over plain HTTP may be anyone's on the network path, so it must not call the https gateway.
#[tokio::test]
async fn r49_a_plain_page_of_the_public_host_cannot_call_an_https_gateway() {
    let gateway = TestGateway::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        settings.public_url = Some("https://box.example".parse().unwrap());
    });
    let call = async |origin: &str, more: &[(&str, &str)]| {
        let headers = [&[("host", "box.example"), ("origin", origin)], more].concat();
        gateway.post("/v1/login", &headers, json!({ "code": "x" })).await
    };
    for more in [&[][..], &[("x-forwarded-proto", "http")], &[("x-forwarded-host", "box.example")]] {
        let reply = call("http://box.example", more).await;
        assert!(reply.is(403, "bad_origin"), "{more:?}: {}", reply.body);
        let reply = call("https://box.example", more).await;
        assert!(reply.is(401, "not_authenticated"), "only the code is wrong: {}", reply.body);
    }
}

/// A stranger can send codes as often as it likes, while the lock is needed for other changes.
#[tokio::test]
async fn r49_a_wrong_code_does_not_wait_for_the_lock() {
    let gateway = TestGateway::new(|_| {});
    let _lock = gateway.auth.0.store.lock().unwrap();
    let refused = gateway.post("/v1/login", &[], json!({ "code": "x" })).await;
    assert!(refused.is(401, "not_authenticated"), "{}", refused.body);
}

/// An attacker with a leaked token can take all turns.
#[tokio::test(start_paused = true)]
async fn r49_a_flood_of_changes_delays_neither_a_revocation_nor_the_refusal_of_a_wrong_code() {
    let gateway = TestGateway::new(|_| {});
    let (browser, (id, token)) = (gateway.browser().await, bearer(&gateway.auth, TokenScope::Admin));
    let leaked = gateway.auth.bearer(token.strip_prefix("Bearer ").unwrap()).unwrap();
    let mut turns = Vec::new();
    while let Ok(turn) = gateway.app.turns.auth_change().await {
        turns.push(turn);
    }
    let refused = gateway.post("/v1/login", &[], json!({ "code": "x" })).await;
    assert!(refused.is(401, "not_authenticated"), "{}", refused.body);
    let revoked = gateway.call(Method::DELETE, &format!("/v1/tokens/{id}"), &borrow(&browser), Value::Null).await;
    assert!(revoked.is(503, "unreachable") && leaked.is_revoked(), "{}", revoked.body);
    assert!(revoked.body["detail"].as_str().unwrap().contains("no longer accepts"), "{}", revoked.body);
    let out = gateway.post("/v1/logout", &borrow(&browser), Value::Null).await;
    assert!(out.is(503, "unreachable") && gateway.auth.tokens().is_empty(), "{}", out.body);
    drop(turns);
    gateway.auth.tidy().unwrap();
    assert!(Auth::open(&testing::home(gateway.temp.path())).unwrap().tokens().is_empty(), "recorded later");
}

/// Those who wait with a revoked token must not keep others waiting.
#[tokio::test(start_paused = true)]
async fn r49_a_caller_that_was_revoked_while_it_waited_for_a_turn_does_not_wait_for_the_lock() {
    let gateway = TestGateway::new(|_| {});
    let (id, token) = bearer(&gateway.auth, TokenScope::Admin);
    let caller = gateway.auth.bearer(token.strip_prefix("Bearer ").unwrap()).unwrap();
    gateway.auth.revoke(&id).unwrap();
    let _lock = gateway.auth.0.store.lock().unwrap();
    let refused = endpoints::create_code(State(gateway.app.clone()), Admin(caller)).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn r52_a_stranger_cannot_send_a_large_body() {
    let gateway = TestGateway::new(|_| {});
    let refused = gateway.post("/v1/login", &[], json!({ "code": "x".repeat(4 << 10) })).await;
    assert!(refused.is(413, "too_large"), "{}", refused.body);
    let (_, token) = bearer(&gateway.auth, TokenScope::Admin);
    let long = json!({ "name": "x".repeat(4 << 10), "scope": "read" });
    let answer = gateway.post("/v1/tokens", &[("authorization", &token)], long).await;
    assert!(answer.is(400, "bad_name"), "a known caller can: {}", answer.body);
}

/// Each proxy in a chain appends a value; only the nearest one is trusted.
#[tokio::test]
async fn r50_the_last_forwarded_value_counts() {
    let gateway = TestGateway::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        settings.hosts = vec!["box.test".to_owned()];
    });
    let call = async |host: &str, proto: &str| {
        let headers = [("x-forwarded-host", host), ("x-forwarded-proto", proto), ("origin", "https://box.test")];
        gateway.post("/v1/login", &headers, json!({ "code": "x" })).await
    };
    for (host, proto) in [("box.test", "https"), ("evil.test, box.test", "http,https"), ("x,box.test", " https ")] {
        assert!(call(host, proto).await.is(401, "not_authenticated"), "{host} {proto}: only the code is wrong");
    }
    assert!(call("box.test, evil.test", "https").await.is(403, "bad_host"));
    assert!(call("box.test", "https, http").await.is(403, "bad_origin"));
    let lines = [("x-forwarded-host", "box.test"), ("x-forwarded-host", "evil.test")];
    assert!(gateway.post("/v1/login", &lines, json!({ "code": "x" })).await.is(403, "bad_host"));
}

/// Proxies that require a password or add their own token leave it in the request. It used to lock callers out.
#[tokio::test]
async fn r50_a_foreign_authorization_header_is_ignored() {
    let gateway = TestGateway::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        settings.forward_auth = Some(forward_auth(None));
    });
    let list = async |authorization: &str, more: &[(&str, &str)]| {
        let headers = [more, &[("authorization", authorization)]].concat();
        gateway.call(Method::GET, "/v1/tokens", &headers, Value::Null).await
    };
    let browser = gateway.browser().await;
    let (_, token) = bearer(&gateway.auth, TokenScope::Read);
    for foreign in ["Basic YW5uOnNlY3JldA==", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "Bearer", ""] {
        assert_eq!(list(foreign, &borrow(&browser)).await.status, StatusCode::OK, "{foreign}");
        assert_eq!(list(foreign, &[("x-forwarded-user", "ann")]).await.status, StatusCode::OK, "{foreign}");
        assert!(list(foreign, &[("x-forwarded-user", "eve")]).await.is(403, "not_allowed"), "{foreign}");
        assert!(list(foreign, &[]).await.is(401, "not_authenticated"), "{foreign}");
    }
    // A Bowline token takes precedence over the cookie, even if it is invalid.
    assert!(list(&token, &borrow(&browser)).await.is(403, "not_allowed"));
    assert!(list(&format!("{token}x"), &borrow(&browser)).await.is(401, "not_authenticated"));
}

fn forward_auth(secret: Option<ProxySecret>) -> ForwardAuth {
    ForwardAuth { header: "x-forwarded-user".to_owned(), users: vec!["ann".to_owned()], secret }
}

/// Its name points at 127.0.0.1, which is also the proxy's address, so it can send what the proxy sends. Only its
/// `Host` gives it away.
#[tokio::test]
async fn r49_a_rebound_page_cannot_pass_as_the_proxy() {
    let gateway = TestGateway::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        settings.public_url = Some("https://box.example".parse().unwrap());
        settings.forward_auth = Some(forward_auth(None));
    });
    let list = async |host: &str, forwarded: &str| {
        let headers = [("host", host), ("x-forwarded-host", forwarded), ("x-forwarded-user", "ann")];
        gateway.call(Method::GET, "/v1/tokens", &headers, Value::Null).await
    };
    for forwarded in ["box.example", "localhost", "127.0.0.1:7433", ""] {
        let reply = list("evil.test:7433", forwarded).await;
        assert!(reply.is(403, "bad_host") && !reply.body.to_string().contains("tokens"), "{}", reply.body);
    }
    assert!(list("box.example", "evil.test").await.is(403, "bad_host"));
    // A proxy passes the name on, or names the gateway by its address.
    for host in ["box.example", "127.0.0.1:7433"] {
        assert_eq!(list(host, "box.example").await.status, StatusCode::OK, "{host}");
    }
}

#[tokio::test]
async fn r50_forwarded_headers_count_only_with_the_proxys_secret() {
    let secret = "0123456789abcdef0123456789abcdef";
    let gateway = TestGateway::new(|settings| {
        settings.proxies = vec!["127.0.0.1/32".parse().unwrap()];
        let header = http::HeaderName::from_static("x-proxy-secret");
        settings.forward_auth =
            Some(forward_auth(Some(ProxySecret { header, secret: Secret::new(secret.to_owned()) })));
        assert!(!format!("{settings:?}").contains(secret));
    });
    let list = async |more: &[(&str, &str)]| {
        let headers = [more, &[("x-forwarded-user", "ann")]].concat();
        gateway.call(Method::GET, "/v1/tokens", &headers, Value::Null).await
    };
    let right = ("x-proxy-secret", secret);
    assert_eq!(list(&[right]).await.status, StatusCode::OK);
    for wrong in [&[][..], &[("x-proxy-secret", &secret[1..])], &[("x-proxy-secret", "")], &[right, right]] {
        let reply = list(wrong).await;
        assert!(reply.is(401, "not_authenticated"), "{}", reply.body);
        let detail = reply.body["detail"].as_str().unwrap();
        assert!(detail.contains("x-proxy-secret") && !detail.contains(secret), "{detail}");
        // The other forwarded headers are ignored as well.
        let browser = gateway.browser().await;
        let forwarded = [&borrow(&browser)[..], wrong, &[("x-forwarded-host", "evil.test")]].concat();
        assert_eq!(list(&forwarded).await.status, StatusCode::OK, "a login works without the proxy");
    }
    assert!(list(&[right, ("x-forwarded-host", "evil.test")]).await.is(403, "bad_host"));
}

#[tokio::test]
async fn r48_only_an_admin_can_create_list_and_revoke_tokens() {
    let gateway = TestGateway::new(|_| {});
    let request = json!({ "name": "ci", "scope": "write", "ttl": 3600 });
    for scope in [TokenScope::Read, TokenScope::Write] {
        let (id, token) = bearer(&gateway.auth, scope);
        let headers = [("authorization", token.as_str())];
        assert!(gateway.call(Method::GET, "/v1/tokens", &headers, Value::Null).await.is(403, "not_allowed"));
        assert!(gateway.post("/v1/tokens", &headers, request.clone()).await.is(403, "not_allowed"));
        let path = format!("/v1/tokens/{id}");
        assert!(gateway.call(Method::DELETE, &path, &headers, Value::Null).await.is(403, "not_allowed"));
    }
    let browser = gateway.browser().await;
    let headers = borrow(&browser);
    let created = gateway.post("/v1/tokens", &headers, request).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let caller = gateway.auth.bearer(created.body["token"].as_str().unwrap()).unwrap();
    assert_eq!((created.body["id"].as_str().unwrap(), TokenScope::Write), (caller.id(), caller.scope()));
    let path = format!("/v1/tokens/{}", caller.id());
    assert_eq!(gateway.call(Method::DELETE, &path, &headers, Value::Null).await.status, StatusCode::NO_CONTENT);
    assert!(caller.is_revoked());
    assert!(gateway.call(Method::DELETE, &path, &headers, Value::Null).await.is(404, "not_found"));
    for (body, code) in [
        (json!({ "name": "a b", "scope": "read" }), "bad_name"),
        (json!({ "name": "a", "scope": "root" }), "bad_request"),
        (json!({ "name": "a", "scope": "read", "ttl": 0 }), "bad_request"),
        (json!({ "name": "a", "scope": "read", "ttl": u64::MAX }), "bad_request"),
        (json!({ "scope": "read" }), "bad_request"),
    ] {
        assert!(gateway.post("/v1/tokens", &headers, body.clone()).await.is(400, code), "{body}");
    }
}

#[tokio::test]
async fn r48_what_a_token_made_can_be_revoked_with_it() {
    let gateway = TestGateway::new(|_| {});
    let browser = gateway.browser().await;
    let owner = borrow(&browser);
    let new_token = async |headers: &[(&str, &str)]| {
        let made = gateway.post("/v1/tokens", headers, json!({ "name": "ci", "scope": "admin" })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        (made.body["id"].as_str().unwrap().to_owned(), format!("Bearer {}", made.body["token"].as_str().unwrap()))
    };
    let (leaked, token) = new_token(&owner).await;
    let (made, _) = new_token(&[("authorization", &token)]).await;
    let list = gateway.call(Method::GET, "/v1/tokens", &owner, Value::Null).await.body;
    let info = |id: &str| list["tokens"].as_array().unwrap().iter().find(|info| info["id"] == id).unwrap().clone();
    assert_eq!(info(&made)["made_by"], leaked);
    let login = list["tokens"].as_array().unwrap().iter().find(|info| info["kind"] == "login").unwrap();
    assert_eq!(info(&leaked)["made_by"], login["id"]);
    assert!(login.get("made_by").is_none(), "unknown: its code was made outside of the gateway");

    let revoke = async |id: &str, query: &str| {
        gateway.call(Method::DELETE, &format!("/v1/tokens/{id}{query}"), &owner, Value::Null).await
    };
    assert!(revoke(&leaked, "?with_made=x").await.is(400, "bad_request"));
    let hint = revoke(&leaked, "?with_made=false").await;
    assert_eq!((hint.status, &hint.body["revoked"]), (StatusCode::OK, &json!([leaked])));
    assert_eq!((&hint.body["made"][0]["id"], &hint.body["made"][1]), (&json!(made), &Value::Null));
    let rest = revoke(&leaked, "?with_made=true").await;
    assert_eq!((rest.status, &rest.body), (StatusCode::OK, &json!({ "revoked": [made], "made": [] })));
    assert!(revoke(&leaked, "?with_made=true").await.is(404, "not_found"));
    let (plain, _) = new_token(&owner).await;
    assert_eq!(revoke(&plain, "").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn r52_a_revocation_that_cannot_be_recorded_says_so_and_holds() {
    let gateway = TestGateway::new(|_| {});
    let (browser, (id, leaked)) = (gateway.browser().await, bearer(&gateway.auth, TokenScope::Admin));
    let state = testing::home(gateway.temp.path()).state().to_owned();
    std::fs::remove_file(state.join("auth.revoked")).unwrap();
    for file in ["auth.json.new", "auth.revoked.new"] {
        std::fs::create_dir(state.join(file)).unwrap();
    }
    let revoked = gateway.call(Method::DELETE, &format!("/v1/tokens/{id}"), &borrow(&browser), Value::Null).await;
    assert!(revoked.is(507, "no_space"), "{}", revoked.body);
    assert!(revoked.body["detail"].as_str().unwrap().contains("no longer accepts"), "{}", revoked.body);
    let list = async |headers: &[(&str, &str)]| gateway.call(Method::GET, "/v1/tokens", headers, Value::Null).await;
    assert!(list(&[("authorization", &leaked)]).await.is(401, "not_authenticated"));
    assert!(gateway.post("/v1/logout", &borrow(&browser), Value::Null).await.is(507, "no_space"));
    assert!(list(&borrow(&browser)).await.is(401, "not_authenticated"));
}

#[tokio::test]
async fn r48_a_ticket_has_its_callers_scope_and_is_revoked_with_it() {
    let gateway = TestGateway::new(|_| {});
    let (id, token) = bearer(&gateway.auth, TokenScope::Read);
    let headers = [("authorization", token.as_str())];
    let mut tickets = Vec::new();
    for body in [json!({}), Value::Null] {
        let reply = gateway.post("/v1/tickets", &headers, body).await;
        assert_eq!(reply.status, StatusCode::OK);
        assert!(reply.body["expires"].as_str().unwrap().ends_with('Z'));
        tickets.push(reply.body["ticket"].as_str().unwrap().to_owned());
    }
    let path = format!("/v1/tokens?ticket={}", tickets[0]);
    let refused = gateway.call(Method::GET, &path, &[], Value::Null).await;
    assert!(refused.is(401, "not_authenticated"), "a ticket only opens streams");
    assert_eq!(gateway.auth.redeem_ticket(&tickets[0]).unwrap().scope(), TokenScope::Read);
    assert!(gateway.auth.redeem_ticket(&tickets[0]).is_none(), "used up");
    gateway.auth.revoke(&id).unwrap();
    assert!(gateway.auth.redeem_ticket(&tickets[1]).is_none(), "its token was revoked");
    assert!(gateway.post("/v1/tickets", &[], json!({})).await.is(401, "not_authenticated"));
}

#[tokio::test]
async fn r48_a_browser_logs_out() {
    let gateway = TestGateway::new(|_| {});
    let browser = gateway.browser().await;
    let reply = gateway.post("/v1/logout", &borrow(&browser), Value::Null).await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert!(reply.cookie.contains("=; ") && reply.cookie.contains("Max-Age=0"), "{}", reply.cookie);
    assert!(gateway.post("/v1/logout", &borrow(&browser), Value::Null).await.is(401, "not_authenticated"));
    let (_, token) = bearer(&gateway.auth, TokenScope::Admin);
    let refused = gateway.post("/v1/logout", &[("authorization", &token)], Value::Null).await;
    assert!(refused.is(400, "bad_request"), "{}", refused.body);
}
