//! Work that all callers share: it is done once at a time, however many of them wait for it or have hung up.
//!
//! Without this, callers that come again and again while a file system hangs would take every thread that reads files.

use std::sync::{Arc, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Mutex;

use crate::problem::{Problem, internal};

/// The result of some work, as it is computed and shared. Cheap to clone.
pub(super) struct SharedWork<T>(Arc<Turns<T>>);

struct Turns<T> {
    /// The turn that has not begun yet. Calls share it, and its error too.
    next: std::sync::Mutex<Option<Turn<T>>>,
    /// Locked during a turn.
    running: Mutex<()>,
}

type Turn<T> = Shared<BoxFuture<'static, Result<Arc<T>, Problem>>>;

impl<T: Send + Sync + 'static> SharedWork<T> {
    /// A result that was begun after this call. Calls that come during a turn share the next one.
    pub(super) async fn get<F>(&self, work: impl FnOnce() -> F) -> Result<Arc<T>, Problem>
    where
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let turn = self.next().get_or_insert_with(|| self.run(work())).clone();
        turn.await
    }

    /// Does the work in the background, after the turn that runs now. It goes on if its callers hang up.
    fn run(&self, work: impl Future<Output = Result<T, Problem>> + Send + 'static) -> Turn<T> {
        let shared = self.clone();
        let turn = tokio::spawn(async move {
            let _running = shared.0.running.lock().await;
            // A later call may know of a newer change.
            shared.next().take();
            work.await.map(Arc::new)
        });
        turn.map(|turn| turn.unwrap_or_else(|error| Err(internal(&error)))).boxed().shared()
    }

    fn next(&self) -> MutexGuard<'_, Option<Turn<T>>> {
        self.0.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for SharedWork<T> {
    fn clone(&self) -> SharedWork<T> {
        SharedWork(self.0.clone())
    }
}

impl<T> Default for SharedWork<T> {
    fn default() -> SharedWork<T> {
        SharedWork(Arc::new(Turns { next: std::sync::Mutex::default(), running: Mutex::default() }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Work that hangs until `go` has a permit for it. Its result is how many were begun before it.
    fn work(begun: &Arc<AtomicUsize>, go: &Arc<Semaphore>) -> impl Future<Output = Result<usize, Problem>> + use<> {
        let (begun, go) = (begun.clone(), go.clone());
        async move {
            let before = begun.fetch_add(1, Ordering::SeqCst);
            go.acquire().await.unwrap().forget();
            Ok(before)
        }
    }

    #[tokio::test]
    async fn r52_work_that_hangs_is_begun_once_however_often_callers_come_and_hang_up() {
        let (shared, begun, go) = (SharedWork::default(), Arc::default(), Arc::new(Semaphore::new(0)));
        for _ in 0..40 {
            assert!(futures_util::poll!(Box::pin(shared.get(|| work(&begun, &go)))).is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        // One turn for those who came during the first, and none for each of them.
        go.add_permits(3);
        assert_eq!(*shared.get(|| work(&begun, &go)).await.ok().unwrap(), 1);
        assert_eq!(*shared.get(|| work(&begun, &go)).await.ok().unwrap(), 2, "a later call gets a newer result");
    }
}
