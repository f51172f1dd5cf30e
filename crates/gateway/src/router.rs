//! Which path leads where.

use axum::Router;
use axum::extract::State;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use bowline_proto::session::State as Life;
use http::header;
use http::request::Parts;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::extract::Json;
use crate::problem::Problem;
use crate::{assets, attach, auth, create, events, guard, history, metrics, openapi, sessions};

/// A path, and what each method does there.
pub(crate) type Route = (&'static str, MethodRouter<App>);

/// The gateway's service.
pub(crate) fn router(app: App, counted: PrometheusHandle) -> Router {
    gather(routes(counted))
        .fallback(assets::serve)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .with_state(app)
}

/// All routes. Each is described in `openapi`; a test compares the two.
fn routes(counted: PrometheusHandle) -> Vec<Route> {
    let mut all = vec![
        ("/v1/sessions", get(sessions::list).post(create::create)),
        ("/v1/sessions/{id}", get(sessions::get).patch(sessions::change).delete(sessions::end)),
        ("/v1/sessions/{id}/restart", post(sessions::restart)),
        ("/v1/sessions/{id}/commands", post(sessions::command)),
        ("/v1/sessions/{id}/log", get(history::log)),
        ("/v1/sessions/{id}/screen", get(history::screen)),
        ("/v1/sessions/{id}/attach", get(attach::attach)),
        ("/v1/events", get(events::events)),
        ("/healthz", get(healthy)),
        ("/readyz", get(ready)),
        ("/metrics", get(async move |state: State<App>, parts: Parts| show_metrics(state, parts, counted).await)),
        ("/openapi.json", get(openapi::show)),
    ];
    all.extend(auth::endpoints::routes());
    all
}

/// Routes that make a router.
pub(crate) fn gather(routes: Vec<Route>) -> Router<App> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

/// The gateway runs.
#[utoipa::path(get, path = "/healthz", tag = "gateway", security(()), responses((status = 200, body = Health)))]
pub(crate) async fn healthy() -> Response {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }).into_response()
}

/// That it runs, and which version.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
    version: &'static str,
}

/// The gateway can serve: the state directory is there.
#[utoipa::path(
    get, path = "/readyz", tag = "gateway", security(()),
    responses((status = 200, body = Health), (status = 503, description = "`unreachable`: it is stopping, or its state is"))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new(Code::Unreachable, "the gateway is stopping"));
    }
    let home = app.home.clone();
    sessions::blocking(move || {
        home.ensure().map_err(|error| {
            // Strangers may ask: what is wrong, and where, is for the log.
            tracing::error!(%error, "not ready");
            Problem::new(Code::Unreachable, "the state directory cannot be used; the gateway's log says why")
        })
    })
    .await?;
    Ok(healthy().await)
}

/// What was counted, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "gateway", description = "No token is needed where the configuration says so.",
    responses(
        (status = 200, content_type = "text/plain", body = String),
        (status = 401, description = "`not_authenticated`"),
    )
)]
pub(crate) async fn show_metrics(
    State(app): State<App>,
    parts: Parts,
    counted: PrometheusHandle,
) -> Result<Response, Problem> {
    if !app.settings.open_metrics {
        guard::caller(&app, &parts, TokenScope::Read)?;
    }
    let home = app.home.clone();
    let entries = sessions::blocking(move || Ok(bowline_host::registry::list_files(&home)?)).await?;
    let count = |state: Life| entries.iter().filter(|entry| entry.info.state == state).count();
    metrics::sessions(count(Life::Running), count(Life::Exited), count(Life::Lost));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], counted.render()).into_response())
}

async fn wrong_method() -> Problem {
    Problem::new(Code::BadMethod, "this path knows other methods; /openapi.json lists them")
}

#[cfg(test)]
mod tests;
