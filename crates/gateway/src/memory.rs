//! Gives memory back to the system that the C library keeps after a burst of requests.
//!
//! The C library returns only what is free at the end of its heaps. After hundreds of connections have come and gone,
//! most free memory is between blocks that are in use, and would stay with the gateway for good.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::app::App;
use crate::sessions::on_thread;

/// Memory is given back while the gateway has this much more than the least it ever had, in bytes.
const MIN_GROWTH: u64 = 4 << 20;
/// If less than this was given back, in bytes, the rest is in use, and the next try can wait.
const MIN_RELEASED: u64 = 1 << 20;
/// The time until the next check.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest time until the next check, after memory could not be given back several times.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Gives memory back from time to time, for as long as the gateway runs.
pub(crate) async fn run(app: &App) {
    let (mut least, mut pause, mut closed) = (u64::MAX, PAUSE, 0);
    while let Some(before) = private() {
        least = least.min(before);
        app.trees.forget_old();
        // Nothing is freed as long as all connections stay open.
        let closed_before = std::mem::replace(&mut closed, app.closed_sockets.load(Ordering::Relaxed));
        if before > least + MIN_GROWTH && closed != closed_before {
            // It takes milliseconds, and each heap is locked meanwhile.
            let after = on_thread((), || {
                trim();
                Ok(private())
            });
            let after = after.await.ok().flatten().unwrap_or(before);
            least = least.min(after);
            let released = before.saturating_sub(after);
            pause = if released >= MIN_RELEASED { PAUSE } else { (pause * 2).min(MAX_PAUSE) };
        } else {
            pause = PAUSE;
        }
        tokio::time::sleep(pause).await;
    }
}

/// The resident memory of this process that is not backed by files, in bytes. `None` if /proc is not available.
fn private() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    // The first field is the size of the address space.
    let mut pages = statm.split(' ').skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

#[cfg(target_env = "gnu")]
fn trim() {
    #[allow(unsafe_code, reason = "there is no safe function for this")]
    // SAFETY: malloc_trim has no preconditions, may be called by any thread at any time, and touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries return free memory by themselves.
#[cfg(not(target_env = "gnu"))]
fn trim() {}
