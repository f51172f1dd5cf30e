//! The web app, inside the binary: the page, and files whose names change with their contents.
//!
//! Places in the app live in the page's fragment, so the one page is at `/` and nowhere else; its links are relative, so it
//! works under any path. `build.rs` says where the app comes from.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bowline_proto::problem::Code;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::problem::Problem;
use crate::reach::Reach;
use crate::server::WithoutSlash;

/// Which web app is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebApp {
    /// Built together with this binary.
    Built,
    /// Brought along by the package that this binary was built from.
    Packaged,
    /// Named by `BOWLINE_WEB_DIST` when this binary was built.
    Given,
    /// None: a page that says how to build it.
    Placeholder,
}

impl WebApp {
    /// The one in this binary.
    pub fn inside() -> WebApp {
        table::KIND
    }

    /// Its name: `built`, `packaged`, `given` or `placeholder`.
    pub fn as_str(self) -> &'static str {
        match self {
            WebApp::Built => "built",
            WebApp::Packaged => "packaged",
            WebApp::Given => "given",
            WebApp::Placeholder => "placeholder",
        }
    }
}

/// A file of the app.
struct File {
    /// Its path, without a slash in front.
    path: &'static str,
    /// Part of a digest of its contents.
    etag: &'static str,
    bytes: &'static [u8],
    /// The same compressed, where that is worth it.
    gzip: Option<&'static [u8]>,
}

mod table {
    #![allow(clippy::all, reason = "written by build.rs")]
    use super::{File, WebApp};
    include!(concat!(env!("OUT_DIR"), "/web_app.rs"));
}

const PAGE: &str = "index.html";
/// Files below have a hash in their names.
const HASHED: &str = "assets/";

/// Nothing from elsewhere, no inline script or style, no frame around it. Svelte makes its templates by the policy
/// `svelte-trusted-html`; `bowline` names the service worker.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html bowline";

/// What every answer with a file says.
const HEADERS: [(header::HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::VARY, "Accept-Encoding"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (
        header::HeaderName::from_static("permissions-policy"),
        "camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
    ),
];

/// A file of the app, or that there is nothing.
pub(crate) async fn serve(request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let Some(file) = find(if path.is_empty() { PAGE } else { path }) else {
        let nowhere = "there is nothing at this path; /openapi.json lists what there is";
        return Problem::new(Code::NotFound, nowhere).into_response();
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::new(Code::BadMethod, "a file of the web app can only be read").into_response();
    }
    // Relative links of the page need the slash.
    if let (Some(_), Some(reach)) = (request.extensions().get::<WithoutSlash>(), request.extensions().get::<Reach>())
        && let Ok(place) = HeaderValue::from_str(&format!("{}/", reach.prefix))
    {
        return (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, place)]).into_response();
    }
    answer(file, request.method() == Method::HEAD, request.headers())
}

fn find(path: &str) -> Option<&'static File> {
    table::FILES.iter().find(|file| file.path == path)
}

fn answer(file: &'static File, head: bool, asked: &HeaderMap) -> Response {
    let gzip = file.gzip.filter(|_| takes_gzip(asked));
    let etag = format!("\"{}{}\"", file.etag, if gzip.is_some() { "-gzip" } else { "" });
    let known = has(asked, &etag);
    let bytes = gzip.unwrap_or(file.bytes);
    let body = if head || known { Body::empty() } else { Body::from(bytes) };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let keep = if file.path.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(type_of(file.path)));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    if gzip.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Whether the caller can unpack gzip.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip") || name == "*");
        let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)));
        named && !refused
    })
}

/// Whether the caller already has the file with this tag.
fn has(asked: &HeaderMap, etag: &str) -> bool {
    let tags = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|value| value.split(','))
        .any(|tag| matches!(tag.trim().trim_start_matches("W/"), tag if tag == etag || tag == "*"))
}

fn type_of(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    static HASHED_FILE: File = File { path: "assets/a-1.js", etag: "00ff", bytes: b"plain", gzip: Some(b"small") };

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn r54_a_file_with_a_hash_is_kept_for_ever_and_the_page_is_asked_for_again() {
        let file = answer(&HASHED_FILE, false, &HeaderMap::new());
        assert_eq!(file.headers()[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
        let page = answer(find(PAGE).unwrap(), false, &HeaderMap::new());
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-cache");
        assert_eq!(page.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    }

    #[test]
    fn r54_a_caller_that_has_the_file_is_told_so() {
        let etag = answer(&HASHED_FILE, false, &HeaderMap::new()).headers()[header::ETAG].clone();
        for tags in [etag.to_str().unwrap(), "W/\"00ff\"", "\"x\", \"00ff\"", "*"] {
            let again = answer(&HASHED_FILE, false, &headers(&[(header::IF_NONE_MATCH, tags)]));
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{tags}");
        }
        let other = answer(&HASHED_FILE, false, &headers(&[(header::IF_NONE_MATCH, "\"00fe\"")]));
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[test]
    fn r54_compressed_only_for_those_who_can_unpack_it() {
        for (accepted, gzip) in
            [("gzip, br", true), ("br;q=1.0, GZIP;q=0.5", true), ("*", true), ("br", false), ("gzip;q=0", false)]
        {
            let file = answer(&HASHED_FILE, true, &headers(&[(header::ACCEPT_ENCODING, accepted)]));
            assert_eq!(file.headers().contains_key(header::CONTENT_ENCODING), gzip, "{accepted}");
            assert_eq!(file.headers()[header::ETAG], if gzip { "\"00ff-gzip\"" } else { "\"00ff\"" });
        }
    }

    #[test]
    fn r49_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() {
        assert!(!POLICY.contains("unsafe") && !POLICY.contains("http") && !POLICY.contains('*'), "{POLICY}");
    }
}
