//! Waiting until the board shows a session in a certain state.

use std::sync::Arc;

use bowline_proto::ids::SessionId;
use bowline_proto::session::SessionInfo;
use tokio::sync::Notify;

use super::BoardTasks;

/// The sessions that the board shows. Cheap to clone; while one exists, the board is kept up to date.
#[derive(Clone)]
pub(crate) struct ShownSessions(Arc<BoardTasks>);

impl ShownSessions {
    pub(super) fn new(tasks: Arc<BoardTasks>) -> ShownSessions {
        ShownSessions(tasks)
    }

    /// Waits until `find` returns something for the session's state, which includes states that subscribers do not
    /// get, such as a new offset alone. Cancel safe.
    pub(crate) async fn wait_for<T>(&self, id: &SessionId, find: impl Fn(&SessionInfo) -> Option<T>) -> T {
        let waiter = Waiter::new(self.0.clone(), id.clone());
        loop {
            let notified = waiter.wake.notified();
            tokio::pin!(notified);
            // Before the state is read, so that a change in between is noticed.
            notified.as_mut().enable();
            let found = self.0.shared.state().sessions.get(id).and_then(|shown| find(&shown.info));
            if let Some(found) = found {
                return found;
            }
            notified.await;
        }
    }
}

/// What those that wait for one session share.
#[derive(Default)]
pub(super) struct Waiting {
    wake: Arc<Notify>,
    waiters: usize,
}

impl Waiting {
    pub(super) fn wake(&self) {
        self.wake.notify_waiters();
    }
}

/// One that waits for a session.
struct Waiter {
    tasks: Arc<BoardTasks>,
    id: SessionId,
    wake: Arc<Notify>,
}

impl Waiter {
    fn new(tasks: Arc<BoardTasks>, id: SessionId) -> Waiter {
        let wake = {
            let mut state = tasks.shared.state();
            let waiting = state.waiting.entry(id.clone()).or_default();
            waiting.waiters += 1;
            waiting.wake.clone()
        };
        Waiter { tasks, id, wake }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.tasks.shared.state();
        if let Some(waiting) = state.waiting.get_mut(&self.id) {
            waiting.waiters -= 1;
            if waiting.waiters == 0 {
                state.waiting.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::super::Board;
    use crate::testing;

    use super::*;

    fn info(offset: u64) -> SessionInfo {
        let info = serde_json::json!({
            "id": SessionId::from_random([1; 12]), "name": null, "kind": "agent", "state": "exited", "exit": null,
            "created": "", "cwd": "/", "title": "", "clients": 0, "epoch": "00000001", "offset": offset,
            "degraded": false, "version": "", "agent": "fake",
        });
        serde_json::from_value(info).unwrap()
    }

    #[tokio::test]
    async fn a_new_offset_alone_wakes_those_that_wait_and_no_waiter_is_left_behind() {
        let temp = tempfile::tempdir().unwrap();
        let board = Board::new(testing::home(temp.path()), 1);
        let subscription = board.subscribe();
        let (shown, shared) = (subscription.shown(), &subscription.tasks.shared);
        let id = info(0).id;
        let reached = |offset| shown.wait_for(&id, move |info| (info.offset >= offset).then_some(info.offset));
        let mut waits = [1, 2].map(|offset| Box::pin(reached(offset)));
        assert!(waits.iter_mut().all(|wait| wait.now_or_never().is_none()), "it does not exist");
        shared.state().put(info(0));
        assert!(waits.iter_mut().all(|wait| wait.now_or_never().is_none()));
        shared.state().put(info(1));
        let [first, second] = &mut waits;
        assert_eq!((first.now_or_never(), second.now_or_never()), (Some(1), None));
        assert_eq!(shared.state().waiting.len(), 1);
        assert_eq!(reached(1).await, 1, "a state that it has already");
        drop(waits);
        assert!(shared.state().waiting.is_empty());
    }
}
