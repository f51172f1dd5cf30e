//! Periodically removes ended sessions that exceed the retention settings, even if no new session is started.

use std::time::Duration;

use bowline_host::remove;
use tokio::time::MissedTickBehavior;

use crate::app::App;

const INTERVAL: Duration = Duration::from_secs(3600);

/// Prunes at each interval. Never returns.
pub(crate) async fn run(app: &App) {
    let mut due = tokio::time::interval(INTERVAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let (home, retention) = (app.home.clone(), app.settings.sessions.retention);
        match tokio::task::spawn_blocking(move || remove::prune(&home, &retention, false)).await {
            Ok(Ok(pruned)) => {
                let removed = pruned.sessions.len() + pruned.damaged.len();
                tracing::debug!(sessions = removed, "removed ended sessions");
                for error in pruned.failed {
                    tracing::warn!(%error, "cannot remove an ended session");
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot remove ended sessions"),
            Err(error) => tracing::warn!(%error, "cannot remove ended sessions"),
        }
    }
}
