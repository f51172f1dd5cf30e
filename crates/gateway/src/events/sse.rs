//! The event stream as Server-Sent Events.

use std::convert::Infallible;
use std::fmt::Write as _;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::header;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Told, text};
use crate::app::App;

/// Streams to one client, until it leaves, is revoked, or the gateway stops. One that takes nothing makes us read nothing,
/// and its connection is cut after a while.
pub(super) fn respond(app: &App, told: Told) -> Response {
    let headers = [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (header::CACHE_CONTROL.as_str(), "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS.as_str(), "nosniff"),
        // nginx would hold back what is to be seen at once.
        ("x-accel-buffering", "no"),
    ];
    let heartbeat = app.settings.limits.heartbeat;
    let mut beats = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let streaming = Streaming { app: app.clone(), told, welcomed: false, beats, _until: app.streams.token() };
    (headers, Body::from_stream(pieces(streaming))).into_response()
}

struct Streaming {
    app: App,
    told: Told,
    welcomed: bool,
    /// When a comment is due, whatever else is sent.
    beats: Interval,
    /// A stop waits for it.
    _until: TaskTrackerToken,
}

fn pieces(streaming: Streaming) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    stream::unfold(streaming, |mut streaming| async move {
        let piece = streaming.next().await?;
        Some((Ok(Bytes::from(piece)), streaming))
    })
}

impl Streaming {
    /// What is sent next; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.welcomed, true) {
            let mut piece = String::new();
            let cursor = self.told.watched.to_string();
            if !cursor.is_empty() {
                let _ = writeln!(piece, "id: {cursor}");
            }
            put(&mut piece, &text(&self.told.welcome(&self.app)));
            return Some(piece);
        }
        tokio::select! {
            biased;
            () = self.app.stop.cancelled() => None,
            () = self.told.caller.revoked() => None,
            _ = self.beats.tick() => Some(":\n\n".to_owned()),
            news = self.told.news.news() => {
                let mut piece = String::new();
                news.iter().for_each(|message| put(&mut piece, &text(message)));
                Some(piece)
            }
        }
    }
}

/// Adds an event. JSON has no line breaks, so it is one line of data.
fn put(piece: &mut String, data: &str) {
    let _ = write!(piece, "data: {data}\n\n");
}
