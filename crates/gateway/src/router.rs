//! Which path leads where.

use axum::Router;
use axum::extract::State;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bowline_proto::message::State as Life;
use http::header;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;

use crate::app::App;
use crate::auth::Scope;
use crate::extract::Json;
use crate::problem::Problem;
use crate::{assets, attach, auth, events, guard, history, metrics, sessions};

/// All routes.
pub(crate) fn router(app: App, counted: PrometheusHandle) -> Router {
    Router::new()
        .route("/v1/sessions", get(sessions::list).post(sessions::create))
        .route("/v1/sessions/{id}", get(sessions::get).patch(sessions::change).delete(sessions::end))
        .route("/v1/sessions/{id}/restart", post(sessions::restart))
        .route("/v1/sessions/{id}/commands", post(sessions::command))
        .route("/v1/sessions/{id}/log", get(history::log))
        .route("/v1/sessions/{id}/screen", get(history::screen))
        .route("/v1/sessions/{id}/attach", get(attach::attach))
        .route("/v1/events", get(events::events))
        .route(
            "/metrics",
            get(async move |state: State<App>, parts: http::request::Parts| show_metrics(state, parts, counted).await),
        )
        .merge(auth::endpoints::routes())
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .fallback(assets::serve)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .with_state(app)
}

/// The gateway runs.
async fn healthy() -> Response {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })).into_response()
}

/// The gateway can serve: the state directory is there.
async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new("unreachable", "the gateway is stopping"));
    }
    app.home.ensure().map_err(|error| Problem::new("unreachable", error.to_string()))?;
    Ok(healthy().await)
}

/// What was counted, for Prometheus.
async fn show_metrics(
    State(app): State<App>,
    parts: http::request::Parts,
    counted: PrometheusHandle,
) -> Result<Response, Problem> {
    if !app.settings.open_metrics {
        guard::caller(&app, &parts, Scope::Read)?;
    }
    let home = app.home.clone();
    let entries = sessions::blocking(move || Ok(bowline_session::registry::list_files(&home)?)).await?;
    let count = |state: Life| entries.iter().filter(|entry| entry.info.state == state).count();
    metrics::sessions(count(Life::Running), count(Life::Exited), count(Life::Lost));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], counted.render()).into_response())
}

async fn wrong_method() -> Problem {
    Problem::new("bad_method", "this path knows other methods; /openapi.json lists them")
}
