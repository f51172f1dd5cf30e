//! Counts every refused request and connection, and logs a bounded number of them, at the level `debug`.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::auth::TOKEN_PREFIX;
use crate::metrics;
use crate::problem::Problem;

/// Refusals logged in a second. More are only counted, and the next line says how many there were.
const MAX_PER_SECOND: u32 = 20;
/// Bytes of a path or detail that are logged; the rest is cut off.
const MAX_SHOWN: usize = 200;

/// Where a refused request came from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) client: IpAddr,
    /// Without the query, which may have a ticket. Empty if no request was read.
    pub(crate) path: String,
}

/// The one place that every refusal passes.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Window>);

impl Refusals {
    pub(crate) fn report(&self, source: &Source, problem: &Problem) {
        metrics::refused(problem.code());
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let left_out = self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
        let Some(left_out) = left_out else { return };
        let (code, detail, path) = (problem.code().name(), shown(problem.loggable_detail()), shown(&source.path));
        // `?` escapes control characters.
        tracing::debug!(code, ?detail, ?path, from = %source.client, left_out, "refused");
    }
}

/// The current second.
#[derive(Debug, Default)]
struct Window {
    start: Option<Instant>,
    logged: u32,
    left_out: u64,
}

impl Window {
    /// Whether to log one more. Returns how many were left out since the last one.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.start.is_none_or(|start| now.saturating_duration_since(start) >= Duration::from_secs(1)) {
            (self.start, self.logged) = (Some(now), 0);
        }
        if self.logged >= MAX_PER_SECOND {
            self.left_out += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The beginning of a text, without what looks like a token: a client may send one in the wrong place.
fn shown(text: &str) -> &str {
    let end = text.find(TOKEN_PREFIX).map_or(text.len(), |at| at + TOKEN_PREFIX.len());
    &text[..text.floor_char_boundary(end.min(MAX_SHOWN))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r52_a_flood_of_refusals_is_logged_in_part_and_the_rest_is_counted() {
        let (mut window, start) = (Window::default(), Instant::now());
        let logged = (0..1000).filter(|_| window.admit(start) == Some(0)).count();
        assert_eq!(logged, MAX_PER_SECOND as usize);
        let later = start + Duration::from_secs(1);
        assert_eq!(window.admit(later), Some(1000 - logged as u64));
        assert_eq!(window.admit(later), Some(0));
    }

    #[test]
    fn r49_a_token_in_the_wrong_place_is_not_logged() {
        assert_eq!(shown("/v1/tokens/bwl_k3v9x0q2m7aa_secret"), "/v1/tokens/bwl_");
        assert_eq!(shown("/v1/sessions"), "/v1/sessions");
        assert_eq!(shown(&"é".repeat(MAX_SHOWN)).len(), MAX_SHOWN);
        assert_eq!(shown(&format!("x{}", "é".repeat(MAX_SHOWN))).len(), MAX_SHOWN - 1);
    }
}
