//! What every handler shares. None of it is about a session: whatever is, its files and its process know.

use bowline_proto::problem::Code;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bowline_host::home::Home;
use bowline_proto::ids::Epoch;
use bowline_proto::ids::SessionId;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Auth, Caller, LoginRate, network};
use crate::board::Board;
use crate::descriptors;
use crate::environment::Environment;
use crate::problem::Problem;
use crate::rate::Rate;
use crate::settings::Settings;

/// Locks for sessions of derived ids: two of them rarely share one.
const MAKING: usize = 64;
/// Starts, ends and restarts of sessions at a time. Each may hold a thread for as long as a session takes to end.
const SLOW: usize = 64;
/// Viewers of ended sessions at a time; another one is closed 1013.
const ARCHIVES: usize = 64;

/// The gateway's state; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// What [`App`] points to.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) home: Home,
    pub(crate) auth: Auth,
    pub(crate) environment: Environment,
    /// This run of the gateway, told apart from others.
    pub(crate) epoch: Epoch,
    /// What event streams tell of.
    pub(crate) board: Board,
    /// Set when the gateway stops.
    pub(crate) stop: CancellationToken,
    /// Streams that a stop waits for.
    pub(crate) streams: TaskTracker,
    /// How many streams there are, and whose.
    counts: Mutex<Counts>,
    attach_rate: Mutex<Rate<IpAddr>>,
    pub(crate) login_rate: LoginRate,
    /// Held while a session with a derived id is made, so that a repeat finds the first one whole; by the id.
    making: [tokio::sync::Mutex<()>; MAKING],
    /// Starts, ends and restarts at a time; others wait.
    pub(crate) slow: Semaphore,
    /// Viewers of ended sessions, each of which takes a thread.
    pub(crate) archives: Arc<Semaphore>,
    /// The soft limit of open files before the gateway raised its own: what programs expect.
    pub(crate) open_files: Option<u64>,
}

#[derive(Default)]
struct Counts {
    all: usize,
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
        let rate = settings.limits.attach_rate;
        Ok(App(Arc::new(Shared {
            environment: Environment::new(),
            login_rate: LoginRate::new(settings.limits.login_rate),
            epoch: Epoch::from_random(random),
            board: Board::new(home.clone(), descriptors::followed(descriptors::open_files())),
            settings,
            home,
            auth,
            stop: CancellationToken::new(),
            streams: TaskTracker::new(),
            counts: Mutex::default(),
            attach_rate: Mutex::new(Rate::new(f64::from(rate), f64::from(rate) * 10.0)),
            making: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            slow: Semaphore::new(SLOW),
            archives: Arc::new(Semaphore::new(ARCHIVES)),
            open_files,
        })))
    }

    /// The lock under which the session of a derived id is made.
    pub(crate) fn making(&self, id: &SessionId) -> &tokio::sync::Mutex<()> {
        let sum: usize = id.as_str().bytes().map(usize::from).sum();
        &self.making[sum % MAKING]
    }

    /// Counts an attempt to attach from an address.
    pub(crate) fn check_attach_rate(&self, client: IpAddr) -> Result<(), Problem> {
        let taken =
            self.attach_rate.lock().unwrap_or_else(PoisonError::into_inner).take(network(client), Instant::now());
        taken.map_err(|wait| {
            let detail = format!("more than {} attempts a second from this address", self.settings.limits.attach_rate);
            Problem::new(Code::TooMany, detail).retry_after(wait.as_secs() + 1)
        })
    }

    /// A place for one more stream of this caller, given back when dropped.
    pub(crate) fn take_place(&self, caller: &Caller) -> Result<Place, Problem> {
        let limits = &self.settings.limits;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |what: String| Err(Problem::new(Code::TooMany, what).retry_after(5));
        if counts.all >= limits.streams {
            return refused(format!("the gateway serves {} streams at a time", limits.streams));
        }
        let mine = counts.per_caller.entry(caller.id().to_owned()).or_default();
        if *mine >= limits.streams_per_token {
            return refused(format!("a token has {} streams at a time", limits.streams_per_token));
        }
        *mine += 1;
        counts.all += 1;
        Ok(Place { app: self.clone(), caller: caller.id().to_owned() })
    }
}

/// A stream that counts.
pub(crate) struct Place {
    app: App,
    caller: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.app.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        if let Some(mine) = counts.per_caller.get_mut(&self.caller) {
            *mine -= 1;
            if *mine == 0 {
                counts.per_caller.remove(&self.caller);
            }
        }
    }
}
