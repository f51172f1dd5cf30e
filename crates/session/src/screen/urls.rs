//! Addresses in the output: found across wraps and styling, and reported once each.

use super::state::State;

/// What has been found and reported.
#[derive(Debug, Default)]
pub(super) struct Urls {}

impl State {
    /// An address, from text or from a link.
    pub(super) fn report_url(&mut self, _url: &str) {}
}
