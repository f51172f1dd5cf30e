//! Divides the open-file limit between sockets, followed sessions and everything else, so that none of them uses
//! up the descriptors that the others need.

use rustix::process::{Resource, getrlimit};

use crate::settings::Limits;

/// More sockets than the browsers and programs of one person need.
const ENOUGH: usize = 1024;
/// The remedy for [`open_files_warning`].
pub const OPEN_FILES_REMEDY: &str =
    "raise `nofile` in /etc/security/limits.conf, or LimitNOFILE= in the service that starts the gateway";

/// Descriptors for everything that does not grow with viewers or sessions: files, starts, control requests, the
/// listener.
const RESERVE: u64 = 256;
/// The least number of sockets, and of followed sessions, even with a very low limit.
const MINIMUM: u64 = 16;

/// The soft limit on open files; `None` if unlimited.
pub(crate) fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// A warning if the open-file limit leaves fewer sockets than configured, and fewer than 1024.
pub fn open_files_warning(open_files: Option<u64>, limits: &Limits) -> Option<String> {
    let sockets = sockets(open_files);
    let limit = open_files.filter(|_| sockets < limits.sockets.min(ENOUGH))?;
    Some(format!("the limit of {limit} open files allows only {sockets} sockets"))
}

/// The largest number of sockets. A viewer needs two descriptors: its own socket and its session's.
pub(crate) fn sockets(open_files: Option<u64>) -> usize {
    share(open_files, |rest| rest / 4 * 3 / 2)
}

/// The largest number of sessions that the board follows, each over a socket.
pub(crate) fn followed(open_files: Option<u64>) -> usize {
    share(open_files, |rest| rest / 4)
}

fn share(open_files: Option<u64>, part: impl Fn(u64) -> u64) -> usize {
    let share = open_files.map(|open| part(open.saturating_sub(RESERVE)).max(MINIMUM));
    share.and_then(|share| share.try_into().ok()).unwrap_or(u32::MAX as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r55_a_low_open_file_limit_is_reported_only_if_it_matters() {
        let warning = |open, sockets| open_files_warning(open, &Limits { sockets, ..Limits::default() });
        let default = Limits::default().sockets;
        assert_eq!(
            (warning(Some(20_000), default), warning(Some(4096), default), warning(None, default)),
            (None, None, None)
        );
        let expected = "the limit of 1024 open files allows only 288 sockets";
        assert_eq!(warning(Some(1024), default).as_deref(), Some(expected));
        assert_eq!(warning(Some(1024), 288), None, "no more are configured");
    }

    #[test]
    fn r52_viewers_and_followed_sessions_leave_room_for_the_rest() {
        for open in [1024, 1025, 4096, 524_288, 1 << 40] {
            let used = 2 * sockets(Some(open)) as u64 + followed(Some(open)) as u64;
            assert!(used + RESERVE <= open, "{used} of {open}");
        }
        assert_eq!((sockets(Some(4096)), followed(Some(4096))), (1440, 960));
        assert_eq!((sockets(Some(0)), followed(Some(0))), (16, 16));
        assert!(sockets(None) > 1 << 30 && followed(None) > 1 << 30);
    }
}
