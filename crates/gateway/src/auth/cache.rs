//! This process's copy of the file, and its current callers.

use bowline_proto::api::TokenScope;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use time::OffsetDateTime;

use super::AuthError;
use super::caller::{Caller, Kind, Revocation};
use super::records::Records;
use super::store::{Content, Stamp};

/// The records as last read, with this process's callers and last-use times.
///
/// `revocations` and `last_used` have at most one entry for each token and login.
#[derive(Debug)]
pub(super) struct AuthCache {
    pub(super) stamp: Stamp,
    pub(super) records: Records,
    /// Whether the files still have to be brought together; see [`Content`].
    pub(super) is_behind: bool,
    /// Tokens and logins that were revoked here, and that is not yet on the disk.
    pub(super) unrecorded: BTreeSet<String>,
    revocations: HashMap<String, Arc<Revocation>>,
    last_used: HashMap<String, OffsetDateTime>,
}

impl AuthCache {
    pub(super) fn new(content: Content) -> Result<AuthCache, AuthError> {
        let Content { stamp, records, is_behind } = content;
        Ok(AuthCache {
            stamp,
            records: records?,
            is_behind,
            unrecorded: BTreeSet::new(),
            revocations: HashMap::new(),
            last_used: HashMap::new(),
        })
    }

    /// Takes what was read, and revokes the callers whose token or login is no longer valid. Damaged records are an
    /// error, and the previous ones stay.
    pub(super) fn install(&mut self, content: Content, now: OffsetDateTime) -> Result<(), AuthError> {
        (self.stamp, self.is_behind) = (content.stamp, content.is_behind);
        self.records = content.records?;
        self.records.remove_all(&self.unrecorded);
        self.revoke_expired(now);
        Ok(())
    }

    /// Revokes tokens and logins in this process, whatever happens to the files. Returns those that there were.
    pub(super) fn revoke(&mut self, mut ids: BTreeSet<String>, now: OffsetDateTime) -> BTreeSet<String> {
        // One that could not be recorded is found again, so that recording it is tried again.
        ids.retain(|id| self.records.is_valid(id, now) || self.unrecorded.contains(id));
        self.records.remove_all(&ids);
        self.unrecorded.extend(ids.iter().cloned());
        self.revoke_expired(now);
        ids
    }

    /// Revokes the callers whose token or login is gone or expired.
    pub(super) fn revoke_expired(&mut self, now: OffsetDateTime) {
        let records = &self.records;
        self.revocations.retain(|id, revocation| {
            let valid = records.is_valid(id, now);
            if !valid {
                revocation.revoke();
            }
            valid
        });
        self.last_used.retain(|id, _| records.is_valid(id, now));
    }

    /// A caller with this token or login. Counts as a use.
    pub(super) fn caller(&mut self, id: &str, scope: TokenScope, kind: Kind, now: OffsetDateTime) -> Caller {
        self.last_used.insert(id.to_owned(), now);
        let revocation = self.revocations.entry(id.to_owned()).or_default();
        Caller::new(id, scope, kind, revocation.clone())
    }

    /// When this process last saw a token or login in use: now, if one of its callers still exists.
    pub(super) fn used(&self, id: &str, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let in_use = self.revocations.get(id).is_some_and(|revocation| Arc::strong_count(revocation) > 1);
        if in_use { Some(now) } else { self.last_used.get(id).copied() }
    }

    /// The last-use times of all tokens and logins that this process has seen.
    pub(super) fn all_used(&self, now: OffsetDateTime) -> HashMap<String, OffsetDateTime> {
        self.revocations.keys().filter_map(|id| Some((id.clone(), self.used(id, now)?))).collect()
    }
}
