//! What this process knows of the file, and who is here by it.

use bowline_proto::api::TokenScope;
use std::collections::HashMap;
use std::sync::Arc;

use time::OffsetDateTime;

use super::caller::{Caller, Kind, Life};
use super::records::Records;
use super::store::Stamp;

/// The records as last read, the lives of callers, and uses that are not written yet.
///
/// `lives` and `uses` have at most one entry for each token and login.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) stamp: Stamp,
    pub(super) records: Records,
    lives: HashMap<String, Arc<Life>>,
    uses: HashMap<String, OffsetDateTime>,
}

impl Known {
    pub(super) fn new(stamp: Stamp, records: Records) -> Known {
        Known { stamp, records, lives: HashMap::new(), uses: HashMap::new() }
    }

    /// Takes newly read records in, and ends everybody whose token or login is not among them.
    pub(super) fn install(&mut self, records: Records, now: OffsetDateTime) {
        self.records = records;
        self.end_expired(now);
    }

    /// Ends everybody whose token or login is gone or too old.
    pub(super) fn end_expired(&mut self, now: OffsetDateTime) {
        let records = &self.records;
        self.lives.retain(|id, life| {
            let good = records.is_good(id, now);
            if !good {
                life.end();
            }
            good
        });
        self.uses.retain(|id, _| records.is_good(id, now));
    }

    /// A caller by this token or login, which was just used.
    pub(super) fn caller(&mut self, id: &str, scope: TokenScope, kind: Kind, now: OffsetDateTime) -> Caller {
        self.uses.insert(id.to_owned(), now);
        let life = self.lives.entry(id.to_owned()).or_default();
        Caller::new(id, scope, kind, life.clone())
    }

    /// When a token or login was last used, as far as this process knows. One whose caller is still here is in use.
    pub(super) fn used(&self, id: &str, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let here = self.lives.get(id).is_some_and(|life| Arc::strong_count(life) > 1);
        if here { Some(now) } else { self.uses.get(id).copied() }
    }

    /// All uses that are known here.
    pub(super) fn all_used(&self, now: OffsetDateTime) -> HashMap<String, OffsetDateTime> {
        self.lives.keys().filter_map(|id| Some((id.clone(), self.used(id, now)?))).collect()
    }
}
