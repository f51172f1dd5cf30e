//! What a stream is asked for: by whom, and which sessions' own events it is to carry.
//!
//! Terminals have no events of their own, so watching one is allowed and tells nothing.

use bowline_proto::problem::Code;
use std::collections::BTreeMap;
use std::fmt;

use bowline_proto::ids::{ClientId, Epoch, SessionId, SessionName};
use http::request::Parts;

use crate::app::App;
use crate::guard::query_value;
use crate::problem::{Problem, internal};
use crate::sessions;

/// Sessions watched over SSE at most, since its cursor names them all in one header; more gets 400 `bad_request`.
const MAX_WATCHED: usize = 16;
/// Sessions watched by name at most, since each is looked for; more gets 400 `bad_request`.
const MAX_NAMED: usize = 16;

/// What a stream is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) client: ClientId,
    /// Where each session that is to be watched was left.
    pub(super) wanted: Wanted,
}

/// A session's next event that is wanted; from now on, where none is named.
type Next = Option<(Epoch, u64)>;

/// Sessions that are to be watched, by id or name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted(Vec<(SessionName, Next)>);

/// Watched sessions.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Watched(BTreeMap<SessionId, Next>);

impl Asked {
    /// Reads the query.
    pub(super) fn of_socket(parts: &Parts) -> Result<Asked, Problem> {
        let wanted = query_value(parts, "watch").map_or(Ok(Wanted::default()), |text| Wanted::read(&text, ',', '@'));
        Ok(Asked { client: client(parts)?, wanted: wanted? })
    }

    /// Reads the query, and where the client left.
    pub(super) fn of_sse(parts: &Parts) -> Result<Asked, Problem> {
        let mut asked = Asked::of_socket(parts)?;
        let left = parts.headers.get("last-event-id").filter(|left| !left.is_empty());
        if let Some(left) = left {
            asked.wanted = Wanted::read(left.to_str().unwrap_or("?"), ';', ':')?;
        }
        if asked.wanted.0.len() > MAX_WATCHED {
            let detail = format!("at most {MAX_WATCHED} sessions are watched over SSE; a WebSocket has no such bound");
            return Err(Problem::new(Code::BadRequest, detail));
        }
        Ok(asked)
    }
}

fn client(parts: &Parts) -> Result<ClientId, Problem> {
    if let Some(client) = query_value(parts, "client") {
        return client.parse().map_err(|why| Problem::new(Code::BadRequest, format!("client: {why}")));
    }
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|error| internal(&error))?;
    Ok(ClientId::from_random(random))
}

impl Wanted {
    /// Reads `ID`, or `ID` and its place, for each session.
    fn read(text: &str, between: char, place: char) -> Result<Wanted, Problem> {
        let items = text.split(between).filter(|_| !text.is_empty());
        let wanted: Option<Vec<_>> = items.map(|item| read_item(item, place)).collect();
        let wanted = wanted.ok_or_else(|| {
            let detail = format!("what to watch is ID or ID{place}EPOCH:SEQ, with {between:?} in between");
            Problem::new(Code::BadRequest, detail)
        })?;
        if wanted.iter().filter(|(key, _)| as_id(key).is_none()).count() > MAX_NAMED {
            let detail = format!("at most {MAX_NAMED} sessions are watched by name; there is no such bound for ids");
            return Err(Problem::new(Code::BadRequest, detail));
        }
        Ok(Wanted(wanted))
    }

    /// Finds out which sessions the names mean. What looks like an id is one, whether or not there is such a session.
    pub(super) async fn find(self, app: &App) -> Result<Watched, Problem> {
        let mut watched = BTreeMap::new();
        for (key, next) in self.0 {
            let id = match as_id(&key) {
                Some(id) => id,
                None => sessions::find(app, key.as_str()).await?.info.id,
            };
            watched.insert(id, next);
        }
        Ok(Watched(watched))
    }
}

fn as_id(key: &SessionName) -> Option<SessionId> {
    key.as_str().parse().ok()
}

fn read_item(item: &str, place: char) -> Option<(SessionName, Next)> {
    let Some((id, left)) = item.split_once(place) else { return Some((item.parse().ok()?, None)) };
    let (epoch, seq) = left.split_once(':')?;
    // A number would also be read with a sign.
    let seq = seq.bytes().all(|byte| byte.is_ascii_digit()).then(|| seq.parse().ok())??;
    Some((id.parse().ok()?, Some((epoch.parse().ok()?, seq))))
}

/// The whole cursor, as SSE's `id:` has it.
impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (id, place)) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if n > 0 { ";" } else { "" })?;
            if let Some((epoch, seq)) = place {
                write!(f, ":{epoch}:{seq}")?;
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

    fn sse(query: &str, left: Option<&str>) -> Result<Asked, Problem> {
        let mut request = http::Request::get(format!("/v1/events?{query}"));
        if let Some(left) = left {
            request = request.header("Last-Event-ID", left);
        }
        Asked::of_sse(&request.body(()).unwrap().into_parts().0)
    }

    /// What is watched, where only ids are named.
    fn watched(asked: Asked) -> Watched {
        Watched(asked.wanted.0.into_iter().map(|(key, next)| (as_id(&key).unwrap(), next)).collect())
    }

    #[test]
    fn r46_the_cursor_names_every_watched_session_and_overrides_the_query() {
        let first = watched(sse(&format!("watch={A}@9f3c61d2:7,{B}"), None).unwrap());
        assert_eq!(first.to_string(), format!("{A}:9f3c61d2:7;{B}"));
        let again = watched(sse(&format!("watch={A}@9f3c61d2:1"), Some(&first.to_string())).unwrap());
        assert_eq!(again, first);
        assert_eq!(sse("", Some("")).unwrap().wanted, Wanted::default());
        assert_eq!(watched(sse("watch=", None).unwrap()).to_string(), "");
    }

    #[test]
    fn r46_what_is_malformed_is_refused() {
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
    fn r46_sse_watches_at_most_16() {
        let ids: Vec<String> = (0..17).map(|n| format!("{n:0>12}")).collect();
        assert!(sse(&format!("watch={}", ids[..16].join(",")), None).is_ok());
        assert_eq!(sse(&format!("watch={}", ids.join(",")), None).unwrap_err().status(), 400);
        let parts = http::Request::get(format!("/v1/events?watch={}", ids.join(","))).body(()).unwrap().into_parts().0;
        assert_eq!(Asked::of_socket(&parts).unwrap().wanted.0.len(), 17);
    }
}
