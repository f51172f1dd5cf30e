//! Whether the gateway can serve and start sessions. `/readyz` needs no login, so its callers share a check, and only
//! a change is logged.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline_host::home::{Home, HomeError};
use bowline_proto::problem::Code;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

use crate::problem::{Problem, internal};
use crate::sessions::blocking;

/// How long the result of a check is used.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(1);

/// The latest check of the state directory, and when it was begun.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Check)>>);

type Check = Shared<BoxFuture<'static, Result<(), Problem>>>;

impl Readiness {
    pub(crate) async fn check(&self, home: &Home) -> Result<(), Problem> {
        self.current(home).await
    }

    /// The check that is running, or is not too old. Otherwise a new one, which goes on if its callers hang up.
    fn current(&self, home: &Home) -> Check {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &*latest {
            Some((begun, check)) => match check.clone().now_or_never() {
                Some(before) if begun.elapsed() >= MAX_AGE => before,
                _ => return check.clone(),
            },
            None => Ok(()),
        };
        let check = tokio::spawn(check(home.clone(), before));
        let check = check.map(|checked| checked.unwrap_or_else(|error| Err(internal(&error)))).boxed().shared();
        *latest = Some((Instant::now(), check.clone()));
        check
    }
}

/// Checks that the state directory is usable and can be written. The reason and the path are only logged.
async fn check(home: Home, before: Result<(), Problem>) -> Result<(), Problem> {
    let failed = |detail: &str, error: HomeError| (Problem::new(Code::Unreachable, detail), error);
    let checked = blocking(move || {
        let usable =
            home.ensure().map_err(|error| failed("the state directory is not usable; see the gateway's log", error));
        Ok(usable.and_then(|()| {
            let detail =
                "the state directory cannot be written, so sessions can be used but not started; see the gateway's log";
            home.check_writable().map_err(|error| failed(detail, error))
        }))
    });
    match checked.await? {
        Ok(()) => {
            if before.is_err() {
                tracing::info!("the state directory can be used and written again");
            }
            Ok(())
        }
        Err((problem, error)) => {
            if before.as_ref() != Err(&problem) {
                tracing::error!(%error, "{}", problem.loggable_detail());
            }
            Err(problem)
        }
    }
}
