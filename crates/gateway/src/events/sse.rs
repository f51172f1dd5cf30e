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

use super::{Subscriber, to_json};
use crate::app::App;

/// Streams to one client until it disconnects, is revoked, or the gateway stops. While the client accepts
/// nothing, no changes are collected for it, and its connection is cut after the limit `stalled_after`.
pub(super) fn respond(app: &App, subscriber: Subscriber) -> Response {
    let headers = [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (header::CACHE_CONTROL.as_str(), "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS.as_str(), "nosniff"),
        // Otherwise nginx buffers the events.
        ("x-accel-buffering", "no"),
    ];
    let heartbeat = app.settings.limits.heartbeat;
    let mut heartbeats = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = SseStream { app: app.clone(), subscriber, welcomed: false, heartbeats, _token: app.streams.token() };
    (headers, Body::from_stream(chunks(stream))).into_response()
}

struct SseStream {
    app: App,
    subscriber: Subscriber,
    welcomed: bool,
    /// A comment is sent at each, whether or not there are events.
    heartbeats: Interval,
    /// Held so that the gateway waits for the stream when it stops.
    _token: TaskTrackerToken,
}

fn chunks(stream: SseStream) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    stream::unfold(stream, |mut stream| async move {
        let chunk = stream.next().await?;
        Some((Ok(Bytes::from(chunk)), stream))
    })
}

impl SseStream {
    /// The next chunk; `None` at the end of the stream.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.welcomed, true) {
            let mut chunk = String::new();
            let cursor = self.subscriber.cursors.to_string();
            if !cursor.is_empty() {
                let _ = writeln!(chunk, "id: {cursor}");
            }
            put(&mut chunk, &to_json(&self.subscriber.welcome(&self.app)));
            return Some(chunk);
        }
        tokio::select! {
            biased;
            () = self.app.stop.cancelled() => None,
            () = self.subscriber.caller.revoked() => None,
            _ = self.heartbeats.tick() => Some(":\n\n".to_owned()),
            messages = self.subscriber.changes.next() => {
                let mut chunk = String::new();
                messages.iter().for_each(|message| put(&mut chunk, &to_json(message)));
                Some(chunk)
            }
        }
    }
}

/// Appends an event. JSON without line breaks is one line of data.
fn put(chunk: &mut String, data: &str) {
    let _ = write!(chunk, "data: {data}\n\n");
}
