//! The watched sessions of one event stream, followed together.

use std::collections::{BTreeMap, BTreeSet};

use bowline_proto::ids::SessionId;
use bowline_proto::message::Cursor;
use futures_util::StreamExt;
use futures_util::stream::{self, AbortHandle, Abortable, BoxStream, SelectAll};

use super::follow::{self, FollowContext, Update};

/// The most sessions watched by one stream.
pub(super) const MAX_WATCHED: usize = 64;

/// More than [`MAX_WATCHED`] sessions would be watched.
#[derive(Debug, PartialEq)]
pub(super) struct TooManyWatched;

/// Messages about one of the sessions.
pub(super) type SessionUpdates = (SessionId, Vec<Update>);

/// The watched sessions of a stream. All are polled fairly by the stream's own task.
pub(super) struct Follows {
    context: FollowContext,
    /// By session: stops its follow.
    watched: BTreeMap<SessionId, AbortHandle>,
    streams: SelectAll<Abortable<BoxStream<'static, SessionUpdates>>>,
}

impl Follows {
    pub(super) fn new(context: FollowContext) -> Follows {
        Follows { context, watched: BTreeMap::new(), streams: SelectAll::new() }
    }

    /// Watches these sessions, too. One that is watched already starts again from its new cursor. An error changes
    /// nothing.
    pub(super) fn watch(
        &mut self,
        sessions: impl IntoIterator<Item = (SessionId, Option<Cursor>)>,
    ) -> Result<(), TooManyWatched> {
        let sessions: BTreeMap<_, _> = sessions.into_iter().collect();
        let all: BTreeSet<_> = self.watched.keys().chain(sessions.keys()).collect();
        if all.len() > MAX_WATCHED {
            return Err(TooManyWatched);
        }
        for (session, cursor) in sessions {
            let id = session.clone();
            let follow = follow::follow(self.context.clone(), session.clone(), cursor);
            let follow = follow.map(move |updates| (id.clone(), updates)).boxed();
            let (follow, stop) = stream::abortable(follow);
            if let Some(earlier) = self.watched.insert(session, stop) {
                earlier.abort();
            }
            self.streams.push(follow);
        }
        Ok(())
    }

    /// Stops watching these sessions. Nothing more is returned for them.
    pub(super) fn unwatch(&mut self, sessions: &[SessionId]) {
        sessions.iter().filter_map(|session| self.watched.remove(session)).for_each(|stop| stop.abort());
    }

    /// Waits for messages of a watched session. Cancel safe.
    pub(super) async fn next(&mut self) -> SessionUpdates {
        match self.streams.next().await {
            Some(updates) => updates,
            // Nothing is followed until `watch` is called.
            None => std::future::pending().await,
        }
    }
}
