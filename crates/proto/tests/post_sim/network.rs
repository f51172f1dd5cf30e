//! What happens to a request: it may be lost, delayed, doubled, or answered by something else than Bowline.

use bowline_proto::post::Response;
use serde_json::json;

use super::rng::Rng;
use super::server::http;

/// The fate of one request.
pub(crate) struct RequestFate {
    /// After which times it reaches the server; none if it is lost.
    pub(crate) arrivals: Vec<u64>,
    /// How long the response takes; `None` if it is lost.
    pub(crate) back: Option<u64>,
    /// What the client gets in place of a response, and after which time.
    pub(crate) instead: Option<(u64, Response)>,
}

impl RequestFate {
    pub(crate) fn good(rng: &mut Rng) -> RequestFate {
        RequestFate { arrivals: vec![rng.between(1, 100)], back: Some(rng.between(1, 100)), instead: None }
    }

    /// `faults`: about one request in this many goes wrong.
    pub(crate) fn faulty(rng: &mut Rng, faults: u64) -> RequestFate {
        let mut fate = RequestFate::good(rng);
        if !rng.one_in(faults) {
            return fate;
        }
        let late = rng.between(1, 30_000);
        let missing = Response::Missing { why: "connection reset".to_owned() };
        match rng.below(9) {
            // Lost, with or without an error.
            0 => (fate.arrivals, fate.instead) = (vec![], rng.one_in(2).then_some((late.min(500), missing))),
            1 => (fate.back, fate.instead) = (None, rng.one_in(2).then_some((late, missing))),
            2 => fate.arrivals = vec![late],
            3 => fate.back = Some(late),
            4 => fate.arrivals.push(late),
            5 => (fate.arrivals, fate.instead) = (vec![], Some((50, captive_portal(rng)))),
            6 => (fate.arrivals, fate.instead) = (vec![], Some((50, proxy(rng)))),
            // A proxy that gives up while the server goes on.
            7 => fate.instead = Some((rng.between(1, 50), proxy(rng))),
            _ => (fate.arrivals, fate.instead) = (vec![], Some((50, overloaded(rng)))),
        }
        fate
    }
}

fn captive_portal(rng: &mut Rng) -> Response {
    let status = [200, 302, 401, 511][rng.below(4) as usize];
    Response::Http { status, code: None, retry_after: None, body: "<html>Log in</html>".to_owned() }
}

fn proxy(rng: &mut Rng) -> Response {
    let status = [404, 408, 413, 500, 502, 503, 504][rng.below(7) as usize];
    http(status, None, rng.one_in(2).then(|| rng.between(1, 1000)), json!("proxy"))
}

fn overloaded(rng: &mut Rng) -> Response {
    let (status, code) = [(503, "unreachable"), (429, "too_many"), (500, "internal")][rng.below(3) as usize];
    http(status, Some(code), rng.one_in(2).then(|| rng.between(0, 20)), json!({}))
}
