//! Forgets ended sessions that are too old or too many, also where no new one is started for a long time.

use std::time::Duration;

use bowline_host::remove;
use tokio::time::MissedTickBehavior;

use crate::app::App;

/// How often.
const EVERY: Duration = Duration::from_secs(3600);

/// Prunes now and then. Never returns.
pub(crate) async fn run(app: &App) {
    let mut due = tokio::time::interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let (home, retention) = (app.home.clone(), app.settings.sessions.retention);
        match tokio::task::spawn_blocking(move || remove::prune(&home, &retention, false)).await {
            Ok(Ok(pruned)) => {
                let forgot = pruned.sessions.len() + pruned.damaged.len();
                tracing::debug!(sessions = forgot, "forgot ended sessions");
                for error in pruned.failed {
                    tracing::warn!(%error, "cannot forget an ended session");
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot forget ended sessions"),
            Err(error) => tracing::warn!(%error, "cannot forget ended sessions"),
        }
    }
}
