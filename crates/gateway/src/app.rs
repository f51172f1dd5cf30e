//! The state that all handlers share. What it holds about sessions, such as the latest list, only saves work: the truth
//! is in their files and processes.

use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bowline_host::home::Home;
use bowline_proto::ids::Epoch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::Agents;
use crate::auth::{Auth, Caller, LoginRate, PendingLogin, network};
use crate::board::Board;
use crate::descriptors;
use crate::ended::Screens;
use crate::environment::Environment;
use crate::files::Trees;
use crate::list::SharedList;
use crate::places::{Place, Places};
use crate::problem::Problem;
use crate::rate::Rate;
use crate::ready::Readiness;
use crate::refusals::Refusals;
use crate::settings::Settings;
use crate::text_stream::MAX_TEXTS;
use crate::turns::Turns;
use crate::uploads::MAX_ARRIVING;

/// Concurrent viewers of ended sessions. Those of one session keep its screen in memory together. One more closes the oldest viewer of
/// the caller that has the most, with 4429.
const MAX_ARCHIVE_VIEWERS: usize = 64;
/// Ended agent sessions whose events are read for event streams at the same time. One more cuts the oldest of the caller that has the
/// most; its stream connects again.
const MAX_ARCHIVE_FOLLOWS: usize = 64;
/// How long a request over the caller's rate waits. One that would wait longer gets 429 `too_many`.
const REQUEST_PATIENCE: Duration = Duration::from_secs(1);

/// The gateway's state; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// What [`App`] points to.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) home: Home,
    pub(crate) auth: Auth,
    pub(crate) environment: Environment,
    /// Identifies this run of the gateway.
    pub(crate) epoch: Epoch,
    pub(crate) board: Board,
    /// Cancelled when the gateway stops.
    pub(crate) stop: CancellationToken,
    /// Streams, and runs of programs for their versions, that the gateway waits for when it stops.
    pub(crate) streams: TaskTracker,
    stream_counts: Mutex<StreamCounts>,
    pub(crate) refusals: Refusals,
    /// Requests, by the caller's id.
    request_rate: Mutex<Rate<String>>,
    /// Attempts to open a stream, by the caller's id.
    attach_rate: Mutex<Rate<String>>,
    /// Requests with bad credentials, by address.
    failure_rate: Mutex<Rate<IpAddr>>,
    pub(crate) login_rate: LoginRate,
    /// WebSockets of browsers that sent their cookie but not yet their key, by address. Other programs of the
    /// machine can see the cookie, so these are strangers.
    pub(crate) without_key: Places<IpAddr>,
    pub(crate) turns: Turns,
    pub(crate) list: SharedList,
    pub(crate) readiness: Readiness,
    pub(crate) agents: Agents,
    /// Viewers of ended sessions, by the caller's id.
    pub(crate) archive_viewers: Places<String>,
    /// Follows of ended agent sessions by event streams, by the caller's id.
    pub(crate) archive_follows: Places<String>,
    /// What the viewers of ended sessions share.
    pub(crate) screens: Screens,
    /// How many sockets have been closed.
    pub(crate) closed_sockets: AtomicU64,
    /// Screens and pages of history on their way to callers, by the caller's id.
    pub(crate) text_places: Places<String>,
    /// Uploads that arrive, by the caller's id.
    pub(crate) upload_places: Places<String>,
    /// Lists of files that were read just now.
    pub(crate) trees: Trees,
    /// The soft limit on open files for sessions' programs: the gateway's own before it raised it.
    pub(crate) open_files: Option<u64>,
}

#[derive(Default)]
struct StreamCounts {
    all: usize,
    /// Of all, those of callers that cannot write.
    readers: usize,
    per_caller: HashMap<String, usize>,
}

impl std::ops::Deref for App {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn new(settings: Settings, home: Home, auth: Auth, open_files: Option<u64>) -> io::Result<App> {
        let mut random = [0; 4];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let rate = f64::from(settings.limits.attach_rate);
        let request_rate = f64::from(settings.limits.request_rate);
        let (stop, streams) = (CancellationToken::new(), TaskTracker::new());
        Ok(App(Arc::new(Shared {
            environment: Environment::new(),
            agents: Agents::new(stop.clone(), streams.clone()),
            without_key: Places::new((settings.limits.sockets / 4).max(1)),
            login_rate: LoginRate::new(settings.limits.login_rate),
            epoch: Epoch::from_random(random),
            board: Board::new(home.clone(), descriptors::followed(descriptors::open_files())),
            settings,
            home,
            auth,
            stop,
            streams,
            stream_counts: Mutex::default(),
            refusals: Refusals::default(),
            request_rate: Mutex::new(Rate::new(request_rate, request_rate * 10.0)),
            attach_rate: Mutex::new(Rate::new(rate, rate * 10.0)),
            failure_rate: Mutex::new(Rate::new(rate, rate * 10.0)),
            turns: Turns::new(),
            list: SharedList::default(),
            readiness: Readiness::default(),
            archive_viewers: Places::new(MAX_ARCHIVE_VIEWERS),
            archive_follows: Places::new(MAX_ARCHIVE_FOLLOWS),
            screens: Screens::default(),
            closed_sockets: AtomicU64::new(0),
            text_places: Places::new(MAX_TEXTS),
            upload_places: Places::new(MAX_ARRIVING),
            trees: Trees::default(),
            open_files,
        })))
    }

    /// Counts a request of this caller that takes as much work as `cost` usual ones, and waits until the caller's rate
    /// allows it. So a caller that sends requests without a pause is slowed down, and leaves the processors to others.
    pub(crate) async fn pace(&self, caller: &Caller, cost: u32) -> Result<(), Problem> {
        let per_second = self.settings.limits.request_rate;
        // However low the rate is, a single request may always wait for it.
        let patience = REQUEST_PATIENCE.max(Duration::from_secs_f64(f64::from(cost) / f64::from(per_second.max(1))));
        let turn = {
            let mut rate = self.request_rate.lock().unwrap_or_else(PoisonError::into_inner);
            let now = tokio::time::Instant::now().into_std();
            rate.take_soon(caller.id().to_owned(), f64::from(cost), patience, now)
        };
        match turn {
            Ok(Duration::ZERO) => Ok(()),
            Ok(wait) => {
                tokio::time::sleep(wait).await;
                Ok(caller.check()?)
            }
            Err(wait) => {
                let detail =
                    format!("more than {per_second} requests per second with this token or login; try again later");
                Err(Problem::new(Code::TooMany, detail).retry_after(wait.as_secs() + 1))
            }
        }
    }

    /// Counts an attempt of this caller to open a stream.
    pub(crate) fn check_attach_rate(&self, caller: &Caller) -> Result<(), Problem> {
        let mut rate = self.attach_rate.lock().unwrap_or_else(PoisonError::into_inner);
        rate.take(caller.id().to_owned(), Instant::now()).map_err(|wait| {
            let rate = self.settings.limits.attach_rate;
            let detail = format!("more than {rate} attempts per second with this token or login; try again later");
            Problem::new(Code::TooMany, detail).retry_after(wait.as_secs() + 1)
        })
    }

    /// Counts a request with bad credentials. Returns the problem to answer with: `problem`, or 429 above the rate.
    ///
    /// Only failures are counted, and only after the credentials were checked, so that strangers cannot lock out
    /// a caller with the same address.
    pub(crate) fn count_failure(&self, client: IpAddr, problem: Problem) -> Problem {
        let mut rate = self.failure_rate.lock().unwrap_or_else(PoisonError::into_inner);
        match rate.take(network(client), Instant::now()) {
            Ok(()) => problem,
            Err(wait) => {
                let rate = self.settings.limits.attach_rate;
                let detail = format!(
                    "more than {rate} requests per second with bad credentials from this address; try again later"
                );
                Problem::new(Code::TooMany, detail).retry_after(wait.as_secs() + 1)
            }
        }
    }

    /// The caller of a browser whose key has arrived. It is no stranger any more, so it leaves its place among those
    /// without a key at once: no flood of them may displace it while it waits for a session.
    pub(crate) fn check_key(
        &self,
        login: &PendingLogin,
        key: &str,
        client: IpAddr,
        place: Option<&Place<IpAddr>>,
    ) -> Result<Caller, Problem> {
        let caller = login.with_key(key);
        let caller = caller.ok_or_else(|| self.count_failure(client, Problem::not_authenticated()))?;
        place.inspect(|place| place.leave());
        Ok(caller)
    }

    /// Reserves a slot for one more stream of this caller.
    pub(crate) fn reserve_stream(&self, caller: &Caller) -> Result<StreamSlot, Problem> {
        let limits = &self.settings.limits;
        let mut counts = self.stream_counts.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |detail: String| Err(Problem::new(Code::TooMany, detail).retry_after(5));
        if counts.all >= limits.streams {
            let limit = limits.streams;
            return refused(format!(
                "the gateway has reached its limit of {limit} streams; close one, or raise `gateway.limits.streams`"
            ));
        }
        let is_reader = !caller.allows(TokenScope::Write);
        if is_reader && counts.readers >= limits.streams - limits.streams / 4 {
            return refused(
                "the gateway keeps its last streams for callers that may write; try again later".to_owned(),
            );
        }
        let own = counts.per_caller.entry(caller.id().to_owned()).or_default();
        if *own >= limits.streams_per_token {
            let limit = limits.streams_per_token;
            return refused(format!(
                "this token or login has reached its limit of {limit} streams; close one, or raise \
                 `gateway.limits.streams_per_token`"
            ));
        }
        *own += 1;
        counts.all += 1;
        counts.readers += usize::from(is_reader);
        Ok(StreamSlot { app: self.clone(), caller: caller.id().to_owned(), is_reader })
    }
}

/// One stream in the counts, released on drop.
pub(crate) struct StreamSlot {
    app: App,
    caller: String,
    is_reader: bool,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut counts = self.app.stream_counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        counts.readers -= usize::from(self.is_reader);
        if let Some(own) = counts.per_caller.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                counts.per_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::testing;

    #[tokio::test(start_paused = true)]
    async fn r49_a_caller_that_sends_too_many_requests_is_slowed_down_and_others_are_not() {
        let temp = tempfile::tempdir().unwrap();
        let app = testing::app(temp.path(), |settings| settings.limits.request_rate = 2);
        let [busy, other] = ["busy", "other"].map(|name| {
            let token = app.auth.create_token(name, TokenScope::Read, None).unwrap();
            app.auth.bearer(token.token.reveal()).unwrap()
        });
        let begun = tokio::time::Instant::now();
        for _ in 0..20 {
            assert!(app.pace(&busy, 1).await.is_ok());
        }
        assert_eq!(begun.elapsed().as_millis(), 0, "a burst is served at once");
        for _ in 0..6 {
            assert!(app.pace(&busy, 1).await.is_ok());
        }
        assert_eq!(begun.elapsed().as_millis(), 3000, "requests one after another are slowed down, not refused");
        let together = futures_util::future::join_all((0..5).map(|_| app.pace(&busy, 1))).await;
        let refused: Vec<_> = together.into_iter().filter_map(Result::err).map(|refused| refused.code()).collect();
        assert_eq!(refused, [Code::TooMany; 3], "only a second's worth may wait");
        let begun = tokio::time::Instant::now();
        assert!(app.pace(&other, 10).await.is_ok());
        assert_eq!(begun.elapsed().as_millis(), 0, "each caller has a rate of its own");
    }

    #[test]
    fn r49_a_browser_that_has_sent_its_key_is_not_displaced_by_those_without_one() {
        let temp = tempfile::tempdir().unwrap();
        let app = testing::app(temp.path(), |settings| settings.limits.sockets = 8);
        let client = IpAddr::from([127, 0, 0, 1]);
        let login = app.auth.login(app.auth.new_code().unwrap().code.reveal(), "Firefox").unwrap();
        let pending = app.auth.cookies([login.cookie.reveal()].into_iter()).unwrap();
        let [owner, stranger] = [(); 2].map(|()| app.without_key.take(client));
        assert!(app.check_key(&pending, login.key.reveal(), client, Some(&owner)).is_ok());
        assert!(app.check_key(&pending, "x", client, Some(&stranger)).is_err());
        let _flood = [(); 9].map(|()| app.without_key.take(client));
        assert!(owner.displaced().now_or_never().is_none());
        assert!(stranger.displaced().now_or_never().is_some());
    }
}
