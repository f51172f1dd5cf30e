//! The list of sessions, which all callers share.
//!
//! A description that did not change since the last list is the same bytes, so a client that does not read its list
//! keeps no copy of its own.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::control::{ControlError, STATUS_TIMEOUT};
use bowline_host::home::{Home, SessionDir};
use bowline_host::registry;
use bowline_proto::api::SessionList;
use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::SessionId;
use bowline_proto::problem::Code;
use bowline_proto::session::{SessionInfo, State as SessionState};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use futures_util::stream::{self, StreamExt};
use http::header;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::app::App;
use crate::control::{self, REQUEST_TIMEOUT};
use crate::guard::Reader;
use crate::problem::{Problem, internal};
use crate::sessions::blocking;

/// How many sessions are described concurrently; the others wait.
const MAX_CONCURRENT: usize = 128;
/// How long a call waits for its list. After that it gets 503 `unreachable`.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists all sessions, oldest first.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", operation_id = "list_sessions",
    responses(
        (status = 200, body = SessionList),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 503, description = "`unreachable`: the sessions cannot be read right now"),
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Reader) -> Result<Response, Problem> {
    let list = app.list.get(&app.home).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, list.json_len().to_string()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(stream::iter(json(list)).map(Ok::<_, Infallible>))).into_response())
}

/// The list of sessions as it is read and shared. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SharedList(Arc<Lists>);

#[derive(Default)]
struct Lists {
    /// The read that has not begun yet. Calls share it, and its error too.
    next: std::sync::Mutex<Option<Read>>,
    /// The newest list. Locked while the next one is read.
    latest: Mutex<Arc<List>>,
    silent: Arc<SilentSessions>,
}

type Read = Shared<BoxFuture<'static, Result<Arc<List>, Problem>>>;

/// All sessions, oldest first.
#[derive(Default)]
pub(crate) struct List(Vec<Listed>);

struct Listed {
    id: SessionId,
    state: SessionState,
    /// The name of its agent, in an agent session of this machine.
    agent: Option<String>,
    /// Its agent waits for an answer.
    waits: bool,
    /// The description as JSON, after a comma.
    json: Bytes,
}

impl SharedList {
    /// A list that was begun after this call. Calls that come while another list is read share the next one.
    pub(crate) async fn get(&self, home: &Home) -> Result<Arc<List>, Problem> {
        let read = self.next().get_or_insert_with(|| self.read(home.clone())).clone();
        let slow = |_| {
            let detail = "the sessions cannot be read in time; try again in a few seconds";
            Err(Problem::new(Code::Unreachable, detail).retry_after(5))
        };
        timeout(LIST_TIMEOUT, read).await.unwrap_or_else(slow)
    }

    /// Reads a list in the background, after the one that is being read now. It goes on if its callers hang up, so
    /// that they cannot start many reads.
    fn read(&self, home: Home) -> Read {
        let list = self.clone();
        let read = tokio::spawn(async move {
            let mut latest = list.0.latest.lock().await;
            // A later call may know of a newer session.
            list.next().take();
            *latest = Arc::new(List::new(describe_all(&home, &list.0.silent).await?, &latest)?);
            Ok(latest.clone())
        });
        read.map(|read| read.unwrap_or_else(|error| Err(internal(&error)))).boxed().shared()
    }

    fn next(&self) -> MutexGuard<'_, Option<Read>> {
        self.0.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// Uses the bytes of an earlier list where they are the same.
    fn new(sessions: Vec<SessionInfo>, earlier: &List) -> Result<List, Problem> {
        let earlier: HashMap<&SessionId, &Bytes> = earlier.0.iter().map(|listed| (&listed.id, &listed.json)).collect();
        let listed = sessions.into_iter().map(|info| {
            let mut json = vec![b','];
            serde_json::to_writer(&mut json, &info).map_err(|error| internal(&error))?;
            let same = earlier.get(&info.id).filter(|bytes| ***bytes == json);
            let json = same.map_or_else(|| Bytes::from(json), |bytes| Bytes::clone(bytes));
            let agent = info.agent.filter(|_| info.host.is_none());
            let waits = agent.as_ref().is_some_and(|agent| !agent.approvals.is_empty());
            Ok(Listed { id: info.id, state: info.state, agent: agent.map(|agent| agent.agent), waits, json })
        });
        Ok(List(listed.collect::<Result<_, Problem>>()?))
    }

    /// The sessions whose agents wait for an answer, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &SessionId> {
        self.0.iter().filter(|listed| listed.waits && listed.state == SessionState::Running).map(|listed| &listed.id)
    }

    /// The sessions of an agent on this machine, newest first.
    pub(crate) fn newest_of(&self, agent: &str) -> impl Iterator<Item = &SessionId> {
        self.0.iter().rev().filter(move |listed| listed.agent.as_deref() == Some(agent)).map(|listed| &listed.id)
    }

    /// The number of sessions in a state.
    pub(crate) fn count(&self, state: SessionState) -> usize {
        self.0.iter().filter(|listed| listed.state == state).count()
    }

    fn json_len(&self) -> usize {
        let commas = self.0.len().saturating_sub(1);
        let sessions: usize = self.0.iter().map(|listed| listed.json.len() - 1).sum();
        START.len() + sessions + commas + END.len()
    }
}

const START: &[u8] = br#"{"sessions":["#;
const END: &[u8] = b"]}";

/// The parts of a [`SessionList`].
fn json(list: Arc<List>) -> impl Iterator<Item = Bytes> + Send {
    let sessions = (0..list.0.len()).map(move |n| {
        let json = &list.0[n].json;
        if n == 0 { json.slice(1..) } else { json.clone() }
    });
    std::iter::once(Bytes::from_static(START)).chain(sessions).chain(std::iter::once(Bytes::from_static(END)))
}

/// Describes every session, oldest first, with long texts cut. Running ones are asked while the files of others are read.
async fn describe_all(home: &Home, silent: &Arc<SilentSessions>) -> Result<Vec<SessionInfo>, Problem> {
    let home = home.clone();
    let (sender, mut found) = mpsc::unbounded_channel();
    let read = blocking(move || {
        registry::for_each(&home, |entry| {
            // The receiver is only dropped when the list is not wanted any more.
            let _ = sender.send((entry.dir, entry.is_local, truncated(entry.info)));
        })?;
        Ok(())
    });
    let describe = |(dir, is_local, info): (SessionDir, bool, SessionInfo)| async move {
        if !is_local || info.state != SessionState::Running || silent.has(&info.id) {
            return info;
        }
        let status = Request::Status { follow: false, brief: true };
        match control::request(&dir, &status, STATUS_TIMEOUT).await {
            Ok(Reply::Status { session }) => truncated(*session),
            Err(ControlError::TimedOut) => {
                silent.watch(&info.id, dir);
                info
            }
            _ => info,
        }
    };
    let found = stream::poll_fn(|context| found.poll_recv(context));
    let described = found.map(describe).buffer_unordered(MAX_CONCURRENT).collect();
    let (read, mut described): (_, Vec<SessionInfo>) = tokio::join!(read, described);
    read?;
    described.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
    Ok(described)
}

/// Sessions whose process did not answer. A list describes them by their files and does not wait for them again, until
/// they answer: otherwise one session that hangs would delay every list.
#[derive(Default)]
struct SilentSessions(std::sync::Mutex<HashSet<SessionId>>);

impl SilentSessions {
    fn ids(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, id: &SessionId) -> bool {
        self.ids().contains(id)
    }

    /// Waits in the background until the session's process answers or is gone.
    fn watch(self: &Arc<Self>, id: &SessionId, dir: SessionDir) {
        if !self.ids().insert(id.clone()) {
            return;
        }
        let (silent, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            let status = Request::Status { follow: false, brief: true };
            while let Err(ControlError::TimedOut) = control::request(&dir, &status, REQUEST_TIMEOUT).await {}
            silent.ids().remove(&id);
        });
    }
}

fn truncated(mut info: SessionInfo) -> SessionInfo {
    info.truncate();
    info
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn info(id: &str, title: &str) -> SessionInfo {
        let info = serde_json::json!({
            "id": id, "name": null, "kind": "terminal", "state": "running", "created": "", "cwd": "/", "title": title,
            "epoch": "9f3c61d2", "version": "0.1.0",
        });
        serde_json::from_value(info).unwrap()
    }

    #[test]
    fn r52_a_description_that_did_not_change_is_not_copied() {
        let [one, two] = ["aaaaaaaaaaaa", "bbbbbbbbbbbb"].map(|id| info(id, "old"));
        let old = List::new(vec![one.clone(), two.clone()], &List::default()).unwrap();
        let new = List::new(vec![one, info("bbbbbbbbbbbb", "new")], &old).unwrap();
        assert_eq!(old.0[0].json.as_ptr(), new.0[0].json.as_ptr());
        assert_ne!(old.0[1].json, new.0[1].json);
    }

    #[test]
    fn the_parts_make_the_whole_list() {
        for count in 0..3 {
            let sessions: Vec<_> = ["aaaaaaaaaaaa", "bbbbbbbbbbbb"][..count].iter().map(|id| info(id, "")).collect();
            let list = Arc::new(List::new(sessions.clone(), &List::default()).unwrap());
            let (len, parts) = (list.json_len(), json(list).collect::<Vec<_>>().concat());
            assert_eq!(parts, serde_json::to_vec(&SessionList { sessions }).unwrap());
            assert_eq!(len, parts.len());
        }
    }

    #[tokio::test]
    async fn r52_calls_that_come_while_a_list_is_read_share_the_next_one() {
        let temp = tempfile::tempdir().unwrap();
        let (home, list) = (testing::home(temp.path()), SharedList::default());
        let reading = list.0.latest.lock().await;
        let (first, second, ()) = tokio::join!(list.get(&home), list.get(&home), async { drop(reading) });
        let (first, second) = (first.ok().unwrap(), second.ok().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        let later = list.get(&home).await.ok().unwrap();
        assert!(!Arc::ptr_eq(&first, &later), "a session may have been started since");
    }

    #[tokio::test(start_paused = true)]
    async fn r52_a_list_that_hangs_delays_no_call_for_long() {
        let temp = tempfile::tempdir().unwrap();
        let (home, list) = (testing::home(temp.path()), SharedList::default());
        let _hanging = list.0.latest.lock().await;
        let begun = tokio::time::Instant::now();
        for refused in futures_util::future::join_all((0..3).map(|_| list.get(&home))).await {
            assert_eq!(refused.err().map(|refused| refused.code()), Some(Code::Unreachable));
        }
        assert_eq!(begun.elapsed().as_secs(), LIST_TIMEOUT.as_secs(), "the calls wait at the same time");
    }

    #[tokio::test]
    async fn r52_callers_that_hang_up_do_not_start_more_reads() {
        let temp = tempfile::tempdir().unwrap();
        let (home, list) = (testing::home(temp.path()), SharedList::default());
        let reading = list.0.latest.lock().await;
        let before = reading.clone();
        for _ in 0..3 {
            assert!(futures_util::poll!(Box::pin(list.get(&home))).is_pending());
            tokio::task::yield_now().await;
        }
        drop(reading);
        let read = list.0.latest.lock().await.clone();
        assert!(!Arc::ptr_eq(&read, &before), "the read goes on without a caller");
        tokio::task::yield_now().await;
        assert!(Arc::ptr_eq(&read, &*list.0.latest.lock().await), "and no other one waits");
    }
}
