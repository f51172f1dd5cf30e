//! The event stream as Server-Sent Events.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::header;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Batch, Subscriber, Update};
use crate::app::App;
use crate::board::EncodedMessage;

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
    let chunks = stream::unfold(stream, |mut stream| async move {
        let chunks = stream.next().await?;
        Some((stream::iter(chunks), stream))
    });
    chunks.flatten().map(Ok)
}

impl SseStream {
    /// The next chunks; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Vec<Bytes>> {
        if !std::mem::replace(&mut self.welcomed, true) {
            let welcome = self.subscriber.welcome(&self.app);
            return Some(self.events([welcome]));
        }
        let caller = self.subscriber.caller.clone();
        let batch = tokio::select! {
            biased;
            () = self.app.stop.cancelled() => return None,
            () = caller.revoked() => return None,
            _ = self.heartbeats.tick() => return Some(vec![Bytes::from_static(b":\n\n")]),
            batch = self.subscriber.next() => batch,
        };
        match batch {
            Batch::Board(messages) => Some(self.events(messages)),
            Batch::Session(session, updates) => {
                let mut chunks = Vec::with_capacity(2 * updates.len());
                for Update { message, cursor } in updates {
                    self.subscriber.cursors.set(&session, cursor);
                    chunks.extend(self.events([message]));
                }
                Some(chunks)
            }
        }
    }

    /// The chunks of these messages: for each the whole cursor, if anything is watched, and the message, which is not
    /// copied because subscribers share it.
    fn events(&self, messages: impl IntoIterator<Item = EncodedMessage>) -> Vec<Bytes> {
        let cursors = &self.subscriber.cursors;
        let id = (!cursors.is_empty()).then(|| Bytes::from(format!("id: {cursors}\n")));
        messages.into_iter().flat_map(|message| id.clone().into_iter().chain([message.sse_event()])).collect()
    }
}
