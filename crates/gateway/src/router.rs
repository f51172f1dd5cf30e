//! The routes, and the endpoints about the gateway itself.

use axum::Router;
use axum::extract::State;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use bowline_proto::session::State as SessionState;
use http::header;
use http::request::Parts;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::extract::Json;
use crate::problem::Problem;
use crate::{
    agents, approvals, assets, attach, auth, blobs, create, events, files, folders, guard, history, list, log, metrics,
    openapi, screen, sessions, uploads,
};

/// A path and its handlers by method.
pub(crate) type Route = (&'static str, MethodRouter<App>);

pub(crate) fn router(app: App, metrics_handle: PrometheusHandle) -> Router {
    router_of(routes(metrics_handle))
        .fallback(assets::serve)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .with_state(app)
}

/// All routes. A test checks that `openapi` describes each of them.
fn routes(metrics_handle: PrometheusHandle) -> Vec<Route> {
    let mut all = vec![
        ("/v1/sessions", get(list::list).post(create::create)),
        ("/v1/sessions/{id}", get(sessions::get).patch(sessions::change).delete(sessions::end)),
        ("/v1/sessions/{id}/restart", post(sessions::restart)),
        ("/v1/sessions/{id}/commands", post(sessions::command)),
        ("/v1/sessions/{id}/events", get(history::get)),
        ("/v1/sessions/{id}/blobs/{seq}", get(blobs::get)),
        ("/v1/sessions/{id}/log", get(log::get)),
        ("/v1/sessions/{id}/screen", get(screen::get)),
        ("/v1/sessions/{id}/uploads/{name}", get(uploads::get).put(uploads::put)),
        ("/v1/sessions/{id}/files", get(files::list)),
        ("/v1/sessions/{id}/attach", get(attach::attach)),
        ("/v1/folders", get(folders::list)),
        ("/v1/agents", get(agents::list)),
        ("/v1/approvals", get(approvals::list)),
        ("/v1/events", get(events::events)),
        ("/healthz", get(healthy)),
        ("/readyz", get(ready)),
        (
            "/metrics",
            get(async move |state: State<App>, parts: Parts| show_metrics(state, parts, metrics_handle).await),
        ),
        ("/openapi.json", get(openapi::show)),
    ];
    all.extend(auth::endpoints::routes());
    all
}

pub(crate) fn router_of(routes: Vec<Route>) -> Router<App> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

/// Reports that the gateway is running.
#[utoipa::path(get, path = "/healthz", tag = "gateway", security(()), responses((status = 200, body = Health)))]
pub(crate) async fn healthy() -> Response {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }).into_response()
}

/// The gateway's status and version.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
    version: &'static str,
}

/// Reports whether the gateway can serve and start sessions: it is not stopping, and its state directory is usable and
/// can be written.
#[utoipa::path(
    get, path = "/readyz", tag = "gateway", security(()),
    responses(
        (status = 200, body = Health),
        (status = 503, description = "`unreachable`: the gateway is stopping, or its state directory is not usable or cannot be written"),
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new(Code::Unreachable, "the gateway is stopping"));
    }
    app.readiness.check(&app.home).await?;
    Ok(healthy().await)
}

/// Returns metrics in the Prometheus text format.
#[utoipa::path(
    get, path = "/metrics", tag = "gateway",
    description = "A token is needed unless the configuration opens this path (`open_metrics`).",
    responses(
        (status = 200, content_type = "text/plain", body = String),
        (status = 401, description = "`not_authenticated`"),
        (status = 503, description = "`unreachable`: the sessions cannot be read right now"),
    )
)]
pub(crate) async fn show_metrics(
    State(app): State<App>,
    parts: Parts,
    metrics_handle: PrometheusHandle,
) -> Result<Response, Problem> {
    if !app.settings.open_metrics {
        guard::allow(guard::paced_caller(&app, &parts).await?, TokenScope::Read)?;
    }
    let list = app.list.get(&app.home).await?;
    let count = |state| list.count(state);
    metrics::sessions(count(SessionState::Running), count(SessionState::Exited), count(SessionState::Lost));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics_handle.render()).into_response())
}

async fn method_not_allowed() -> Problem {
    Problem::new(Code::BadMethod, "this path does not support this method; see /openapi.json")
}

#[cfg(test)]
mod tests;
