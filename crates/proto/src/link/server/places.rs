//! The places for viewers: who may still attach when many are attached.

use super::caller::Caller;
use crate::config::{CALLER_SHARE, OWNER_SHARE, WRITER_SHARE};

/// Why there is no place for another viewer among `places`, if there is none. A flood of readers must leave room for
/// writers, one caller for others, and all of them for the owner.
///
/// `attached` lists for whom each viewer connects, and whether it may write.
pub(crate) fn no_place_for<'a, I: Iterator<Item = (&'a Caller, bool)>>(
    caller: &Caller,
    write: bool,
    places: usize,
    attached: impl Fn() -> I,
) -> Option<&'static str> {
    if attached().count() >= places {
        return Some("too many viewers; retry_after=5");
    }
    let Caller::Gateway(name) = caller else { return None };
    let remote = || attached().filter(|(caller, _)| **caller != Caller::Owner);
    let places_left = places - places.div_ceil(OWNER_SHARE);
    if remote().count() >= places_left {
        return Some("too many viewers; retry_after=5");
    }
    if !write && remote().filter(|(_, write)| !write).count() >= places_left - places / WRITER_SHARE {
        return Some("too many read-only viewers; retry_after=5");
    }
    // An older gateway's callers cannot be told apart.
    let own = || remote().filter(|(other, _)| *other == caller).count();
    if name.is_some() && own() >= places.div_ceil(CALLER_SHARE) {
        return Some("this token or login has too many viewers of the session; retry_after=5");
    }
    None
}
