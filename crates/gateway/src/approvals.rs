//! `GET /v1/approvals`: what the agents of all sessions wait for.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::registry;
use bowline_proto::api::{ApprovalList, WaitingApproval};
use bowline_proto::ids::SessionId;
use futures_util::stream::{self, StreamExt};

use crate::app::App;
use crate::control;
use crate::extract::Json;
use crate::guard::Reader;
use crate::problem::Problem;
use crate::sessions::blocking;

/// How many sessions are described concurrently; the others wait.
const MAX_CONCURRENT: usize = 16;

/// Lists the approvals that wait for an answer, over all sessions.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "sessions", operation_id = "list_approvals",
    responses(
        (status = 200, body = ApprovalList),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 503, description = "`unreachable`: the sessions cannot be read right now"),
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Reader) -> Result<Response, Problem> {
    let list = app.list.get(&app.home).await?;
    // A list has long texts cut.
    let waiting: Vec<SessionId> = list.waiting().cloned().collect();
    let described = stream::iter(waiting).map(|id| describe(&app, id)).buffered(MAX_CONCURRENT);
    let approvals: Vec<Vec<WaitingApproval>> = described.collect().await;
    Ok(Json(ApprovalList { approvals: approvals.into_iter().flatten().collect() }).into_response())
}

/// The approvals of a session; none if it cannot be read any more.
async fn describe(app: &App, session: SessionId) -> Vec<WaitingApproval> {
    let dir = app.home.session(&session);
    let Ok(Ok(Some(entry))) = blocking(move || Ok(registry::try_read(dir))).await else { return Vec::new() };
    let approvals = control::describe(entry).await.agent.map(|agent| agent.approvals).unwrap_or_default();
    approvals.into_iter().map(|approval| WaitingApproval { session: session.clone(), approval }).collect()
}
