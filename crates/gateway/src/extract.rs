//! Extractors for bodies, queries and path segments, whose rejections are [`Problem`]s, and JSON responses.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use bowline_proto::problem::Code;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::problem::{Problem, internal};

/// A JSON body, of a request or a response.
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON request body that may be empty, which means the default.
pub(crate) struct OptionalJson<T>(pub(crate) T);

/// A JSON request body of a caller that is not authenticated, and therefore small: strangers could otherwise fill the
/// memory.
pub(crate) struct SmallJson<T>(pub(crate) T);

/// The longest [`SmallJson`] in bytes; a longer one gets 413 `too_large`.
const SMALL_BODY: usize = 4 << 10;

/// The `{id}` in the path: a session's id or name, or a token's id.
pub(crate) struct Key(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let part = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        // A segment that is not UTF-8 becomes empty. The handler refuses it as an unknown id, after checking the
        // caller.
        Ok(Key(part.map(|axum::extract::Path(part)| part).unwrap_or_default()))
    }
}

/// The `{id}` of a session, and the segment that names one of its files. Both are empty if one of them is not UTF-8.
pub(crate) struct FileKey(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for FileKey {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let path = axum::extract::Path::<(String, String)>::from_request_parts(parts, state).await;
        let (session, file) = path.map(|axum::extract::Path(path)| path).unwrap_or_default();
        Ok(FileKey(session, file))
    }
}

/// The URL's query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query.map(|query| Query(query.0)).map_err(|why| Problem::new(Code::BadRequest, why.body_text()).private())
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => {
                let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
                ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json")), no_store], body).into_response()
            }
            Err(error) => internal(&error).into_response(),
        }
    }
}

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        read(&body(request, app, app.settings.limits.body).await?).map(Json)
    }
}

impl<T: DeserializeOwned> FromRequest<App> for SmallJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        read(&body(request, app, SMALL_BODY).await?).map(SmallJson)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let body = body(request, app, app.settings.limits.body).await?;
        if body.is_empty() { Ok(OptionalJson(T::default())) } else { read(&body).map(OptionalJson) }
    }
}

/// Reads the whole body, limited in length and time. A `Content-Type` other than JSON is refused, so that a form on
/// another site's page cannot call the API.
async fn body(request: Request, app: &App, max: usize) -> Result<Bytes, Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default().to_owned());
    let read = Limited::new(request.into_body(), max).collect();
    let body = match tokio::time::timeout(app.settings.limits.body_within, read).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            return Err(Problem::new(Code::TooLarge, format!("the body is larger than the limit of {max} bytes")));
        }
        Ok(Err(error)) => return Err(Problem::new(Code::BadRequest, format!("cannot read the body: {error}"))),
        Err(_) => return Err(Problem::new(Code::TooSlow, "the body did not arrive in time")),
    };
    let json =
        |kind: &String| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    match kind {
        Some(kind) if !json(&kind) => {
            Err(Problem::new(Code::BadRequest, format!("the Content-Type must be application/json, not {kind:?}")))
        }
        _ => Ok(body),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|why| Problem::new(Code::BadRequest, format!("invalid body: {why}")).private())
}
