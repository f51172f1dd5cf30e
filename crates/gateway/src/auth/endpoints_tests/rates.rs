//! Tests what happens above a rate: who is refused or slowed down, and who is not.

use super::*;

#[tokio::test]
async fn r49_wrong_codes_are_rate_limited_and_never_keep_the_right_one_out() {
    let gateway = TestGateway::new(|settings| settings.limits.login_rate = 3);
    let evil = gateway.post("/v1/login", &[("origin", "http://127.0.0.1:8000")], json!({ "code": "x" })).await;
    assert!(evil.is(403, "bad_origin"), "another port of the same host: {}", evil.body);
    for body in [json!({ "code": 1 }), Value::Null] {
        assert!(gateway.post("/v1/login", &[], body).await.is(400, "bad_request"));
    }
    let wrong = async || gateway.post("/v1/login", &[], json!({ "code": "x" })).await;
    for _ in 0..3 {
        let refused = wrong().await;
        assert!(refused.is(401, "not_authenticated"), "{}", refused.body);
    }
    let refused = wrong().await;
    assert!(refused.is(429, "too_many"), "{}", refused.body);
    assert!(refused.retry_after.is_some_and(|seconds| (1..=21).contains(&seconds)), "{:?}", refused.retry_after);
    for _ in 0..5 {
        gateway.browser().await;
    }
}

#[tokio::test]
async fn r49_bad_credentials_are_rate_limited_and_never_keep_a_caller_out() {
    let gateway = TestGateway::new(|settings| settings.limits.attach_rate = 1);
    let (_, token) = bearer(&gateway.auth, TokenScope::Admin);
    let browser = gateway.browser().await;
    let cookie = borrow(&browser)[0];
    let list = async |headers: &[(&str, &str)]| gateway.call(Method::GET, "/v1/tokens", headers, Value::Null).await;
    let wrong_token = format!("{token}x");
    let strangers: [&[(&str, &str)]; 4] =
        [&[], &[("authorization", &wrong_token)], &[cookie], &[cookie, ("bowline-key", "x")]];
    for headers in strangers {
        assert!(list(headers).await.is(401, "not_authenticated"), "{headers:?}");
    }
    for headers in strangers {
        let mut refused = list(headers).await;
        // The bucket fills again meanwhile.
        while !refused.is(429, "too_many") {
            assert!(refused.is(401, "not_authenticated"), "{headers:?}: {}", refused.body);
            refused = list(headers).await;
        }
        assert!(refused.retry_after.is_some_and(|seconds| seconds >= 1), "{headers:?}");
        assert_eq!(list(&[("authorization", &token)]).await.status, StatusCode::OK);
        assert_eq!(list(&borrow(&browser)).await.status, StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn r49_a_refusal_because_of_too_many_requests_is_held_back() {
    let gateway = TestGateway::new(|settings| settings.limits.attach_rate = 1);
    let call = async || {
        let begun = tokio::time::Instant::now();
        let reply = gateway.call(Method::GET, "/v1/tokens", &[], Value::Null).await;
        (reply.status.as_u16(), begun.elapsed().as_millis())
    };
    let mut last = call().await;
    assert_eq!(last, (401, 0));
    while last.0 == 401 {
        last = call().await;
    }
    assert_eq!(last, (429, 250), "a client that repeats its request at once gets slower, not faster");
}

#[tokio::test(start_paused = true)]
async fn r49_a_flood_of_requests_does_not_delay_the_revocation_of_its_token() {
    let gateway = TestGateway::new(|settings| settings.limits.request_rate = 1);
    let (id, token) = bearer(&gateway.auth, TokenScope::Admin);
    let headers = [("authorization", token.as_str())];
    let list = || gateway.call(Method::GET, "/v1/tokens", &headers, Value::Null);
    let flood = futures_util::future::join_all((0..20).map(|_| list())).await;
    assert!(flood.iter().any(|reply| reply.is(429, "too_many")), "the rate is used up");
    let (path, next) = (format!("/v1/tokens/{id}"), list());
    let revoke = gateway.call(Method::DELETE, &path, &headers, Value::Null);
    let (waiting, revoked) = tokio::join!(next, revoke);
    assert_eq!(revoked.status, StatusCode::NO_CONTENT, "{}", revoked.body);
    assert!(waiting.is(401, "not_authenticated"), "a request that waited meanwhile is not served: {}", waiting.body);
}
