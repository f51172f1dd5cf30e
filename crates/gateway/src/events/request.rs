//! The parameters of an event stream: the client's id, and the sessions whose own events it includes.
//!
//! Terminals have no events of their own, so watching one is allowed but adds nothing to the stream.

use bowline_proto::problem::Code;
use std::collections::BTreeMap;
use std::fmt;

use bowline_proto::ids::{ClientId, SessionId, SessionName};
use bowline_proto::message::Cursor;
use http::request::Parts;

use super::follows;
use crate::app::App;
use crate::auth::Caller;
use crate::guard::query_value;
use crate::problem::{Problem, internal};
use crate::sessions;

/// The most sessions watched over SSE, because one header holds all their cursors; more get 400 `bad_request`.
const MAX_WATCHED: usize = 16;
/// The most sessions watched by name, because each name needs a lookup; more get 400 `bad_request`.
const MAX_NAMED: usize = 16;

#[derive(Debug)]
pub(super) struct StreamRequest {
    pub(super) client: ClientId,
    pub(super) watch: WatchList,
}

/// A session's next event. `None` starts with the events from now on.
type Position = Option<Cursor>;

/// Sessions to watch, by id or name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WatchList(Vec<(SessionName, Position)>);

/// The watched sessions, with their positions.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WatchCursors(BTreeMap<SessionId, Position>);

impl StreamRequest {
    /// Parses the query.
    pub(super) fn for_socket(parts: &Parts) -> Result<StreamRequest, Problem> {
        let watch =
            query_value(parts, "watch").map_or(Ok(WatchList::default()), |text| WatchList::parse(&text, ',', '@'))?;
        if watch.0.len() > follows::MAX_WATCHED {
            return Err(too_many_watched());
        }
        Ok(StreamRequest { client: client(parts)?, watch })
    }

    /// Parses the query and the `Last-Event-ID` header.
    pub(super) fn for_sse(parts: &Parts) -> Result<StreamRequest, Problem> {
        let mut request = StreamRequest::for_socket(parts)?;
        let last_event = parts.headers.get("last-event-id").filter(|id| !id.is_empty());
        if let Some(id) = last_event {
            request.watch = WatchList::parse(id.to_str().unwrap_or("?"), ';', ':')?;
        }
        if request.watch.0.len() > MAX_WATCHED {
            let detail =
                format!("at most {MAX_WATCHED} sessions can be watched over SSE; use a WebSocket to watch more");
            return Err(Problem::new(Code::BadRequest, detail));
        }
        Ok(request)
    }
}

/// For fuzzing: the number of sessions that an SSE request watches, and the `id:` that its stream begins with, without the
/// sessions that are watched by name. `None` if the request is refused.
#[doc(hidden)]
pub fn sse_cursor(query: &str, last_event: Option<&[u8]>) -> Option<(usize, String)> {
    let mut request = http::Request::get(format!("/v1/events?{query}"));
    if let Some(id) = last_event {
        request = request.header("last-event-id", id);
    }
    let watch = StreamRequest::for_sse(&request.body(()).ok()?.into_parts().0).ok()?.watch.0;
    let count = watch.len();
    let cursors = watch.into_iter().filter_map(|(key, position)| Some((as_id(&key)?, position)));
    Some((count, WatchCursors(cursors.collect()).to_string()))
}

pub(super) fn too_many_watched() -> Problem {
    let detail = format!("a stream can watch at most {} sessions", follows::MAX_WATCHED);
    Problem::new(Code::BadRequest, detail)
}

fn client(parts: &Parts) -> Result<ClientId, Problem> {
    if let Some(client) = query_value(parts, "client") {
        return client.parse().map_err(|why| Problem::new(Code::BadRequest, format!("invalid client id: {why}")));
    }
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|error| internal(&error))?;
    Ok(ClientId::from_random(random))
}

impl WatchList {
    /// Parses `ID`, or `ID` and its position after `marker`, for each session.
    fn parse(text: &str, separator: char, marker: char) -> Result<WatchList, Problem> {
        let items = text.split(separator).filter(|_| !text.is_empty());
        let sessions: Option<Vec<_>> = items.map(|item| parse_item(item, marker)).collect();
        let sessions = sessions.ok_or_else(|| {
            let detail = format!("sessions to watch must be ID or ID{marker}EPOCH:SEQ, separated by {separator:?}");
            Problem::new(Code::BadRequest, detail)
        })?;
        if sessions.iter().filter(|(key, _)| as_id(key).is_none()).count() > MAX_NAMED {
            let detail = format!("at most {MAX_NAMED} sessions can be watched by name; use ids to watch more");
            return Err(Problem::new(Code::BadRequest, detail));
        }
        Ok(WatchList(sessions))
    }

    /// Resolves names to ids. A key with the form of an id is taken as one, whether or not that session exists.
    pub(super) async fn resolve(self, app: &App, caller: &Caller) -> Result<WatchCursors, Problem> {
        let mut positions = BTreeMap::new();
        for (key, position) in self.0 {
            let id = match as_id(&key) {
                Some(id) => id,
                None => sessions::find(app, caller, key.as_str()).await?.info.id,
            };
            positions.insert(id, position);
        }
        Ok(WatchCursors(positions))
    }
}

fn as_id(key: &SessionName) -> Option<SessionId> {
    key.as_str().parse().ok()
}

fn parse_item(item: &str, marker: char) -> Option<(SessionName, Position)> {
    let Some((id, position)) = item.split_once(marker) else { return Some((item.parse().ok()?, None)) };
    let (epoch, seq) = position.split_once(':')?;
    // `parse` would also accept a sign.
    let seq = seq.bytes().all(|byte| byte.is_ascii_digit()).then(|| seq.parse().ok())??;
    Some((id.parse().ok()?, Some(Cursor { epoch: epoch.parse().ok()?, offset: seq })))
}

impl WatchCursors {
    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionId, Option<Cursor>)> {
        self.0.iter().map(|(id, position)| (id.clone(), position.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves a watched session's position.
    pub(super) fn set(&mut self, session: &SessionId, cursor: Cursor) {
        if let Some(position) = self.0.get_mut(session) {
            *position = Some(cursor);
        }
    }
}

/// All cursors in the form of an SSE `id`.
impl fmt::Display for WatchCursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (id, position)) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if n > 0 { ";" } else { "" })?;
            if let Some(Cursor { epoch, offset }) = position {
                write!(f, ":{epoch}:{offset}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbb";

    fn sse(query: &str, last_event: Option<&str>) -> Result<StreamRequest, Problem> {
        let mut request = http::Request::get(format!("/v1/events?{query}"));
        if let Some(id) = last_event {
            request = request.header("Last-Event-ID", id);
        }
        StreamRequest::for_sse(&request.body(()).unwrap().into_parts().0)
    }

    /// The cursors of a request that has only ids.
    fn cursors(request: StreamRequest) -> WatchCursors {
        WatchCursors(request.watch.0.into_iter().map(|(key, position)| (as_id(&key).unwrap(), position)).collect())
    }

    #[test]
    fn r46_last_event_id_has_every_watched_session_and_overrides_the_query() {
        let first = cursors(sse(&format!("watch={A}@9f3c61d2:7,{B}"), None).unwrap());
        assert_eq!(first.to_string(), format!("{A}:9f3c61d2:7;{B}"));
        let again = cursors(sse(&format!("watch={A}@9f3c61d2:1"), Some(&first.to_string())).unwrap());
        assert_eq!(again, first);
        assert_eq!(sse("", Some("")).unwrap().watch, WatchList::default());
        assert_eq!(cursors(sse("watch=", None).unwrap()).to_string(), "");
    }

    #[test]
    fn r46_malformed_parameters_are_refused() {
        for bad in [
            "watch=-x".to_owned(),
            "watch=a%20b".to_owned(),
            format!("watch={}", (0..17).map(|n| format!("name-{n}")).collect::<Vec<_>>().join(",")),
            format!("watch={A},"),
            format!("watch={A}@9f3c61d2"),
            format!("watch={A}@9F3C61D2:1"),
            format!("watch={A}@9f3c61d2:-1"),
            format!("watch={A}@9f3c61d2:%2B1"),
            format!("watch={A}@9f3c61d2:"),
            format!("watch={A}@9f3c61d2:99999999999999999999"),
            "client=".to_owned(),
            "client=ann".to_owned(),
            "client=00000000-0000-4000-8000-00000000000A".to_owned(),
        ] {
            assert_eq!(sse(&bad, None).unwrap_err().status(), 400, "{bad}");
        }
        assert!(sse("", Some("?")).is_err());
        assert!(sse("client=00000000-0000-4000-8000-00000000000a", None).is_ok());
    }

    #[test]
    fn r46_sse_can_watch_at_most_16_sessions() {
        let ids: Vec<String> = (0..17).map(|n| format!("{n:0>12}")).collect();
        assert!(sse(&format!("watch={}", ids[..16].join(",")), None).is_ok());
        assert_eq!(sse(&format!("watch={}", ids.join(",")), None).unwrap_err().status(), 400);
        let parts = http::Request::get(format!("/v1/events?watch={}", ids.join(","))).body(()).unwrap().into_parts().0;
        assert_eq!(StreamRequest::for_socket(&parts).unwrap().watch.0.len(), 17);
    }

    #[test]
    fn r46_a_websocket_can_watch_at_most_64_sessions() {
        let socket = |count| {
            let ids: Vec<String> = (0..count).map(|n| format!("{n:0>12}")).collect();
            let request = http::Request::get(format!("/v1/events?watch={}", ids.join(","))).body(()).unwrap();
            StreamRequest::for_socket(&request.into_parts().0)
        };
        assert_eq!(socket(64).unwrap().watch.0.len(), 64);
        assert_eq!(socket(65).unwrap_err().status(), 400);
    }

    #[test]
    fn r46_the_cursor_moves_only_for_watched_sessions_and_is_accepted_as_last_event_id() {
        let mut watched = cursors(sse(&format!("watch={A},{B}@9f3c61d2:7"), None).unwrap());
        watched.set(&A.parse().unwrap(), Cursor { epoch: "00000001".parse().unwrap(), offset: 3 });
        watched.set(&"cccccccccccc".parse().unwrap(), Cursor { epoch: "00000001".parse().unwrap(), offset: 3 });
        assert_eq!(watched.to_string(), format!("{A}:00000001:3;{B}:9f3c61d2:7"));
        assert_eq!(cursors(sse("", Some(&watched.to_string())).unwrap()), watched);
    }
}
