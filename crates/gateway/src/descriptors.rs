//! How the descriptors that this process may have are shared out, so that no use takes what another needs: without them, no
//! file can be read and nobody be let in.

use rustix::process::{Resource, getrlimit};

use crate::settings::Limits;

/// As many sockets as the browsers and programs of one person need, and more.
const ENOUGH: usize = 1024;
/// What to do about [`too_few`].
pub const MORE_OPEN_FILES: &str =
    "raise `nofile` in /etc/security/limits.conf, or LimitNOFILE= of the service that starts the gateway";

/// For what grows neither with viewers nor with sessions: files, sessions that are being started or asked, the listener.
const RESERVE: u64 = 256;
/// So many sockets, and sessions that are followed, there are in any case.
const LEAST: u64 = 16;

/// How many descriptors there may be; `None` without a limit.
pub(crate) fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Says so if an open-file limit leaves a gateway with few sockets, and with fewer than configured.
pub fn too_few(open_files: Option<u64>, limits: &Limits) -> Option<String> {
    let sockets = sockets(open_files);
    let limit = open_files.filter(|_| sockets < limits.sockets.min(ENOUGH))?;
    Some(format!("the limit of {limit} open files leaves room for {sockets} sockets"))
}

/// How many sockets there may be: a viewer takes two descriptors, one for its own and one for its session's.
pub(crate) fn sockets(open_files: Option<u64>) -> usize {
    share(open_files, |rest| rest / 4 * 3 / 2)
}

/// How many sessions the board may follow, each by a socket.
pub(crate) fn followed(open_files: Option<u64>) -> usize {
    share(open_files, |rest| rest / 4)
}

fn share(open_files: Option<u64>, part: impl Fn(u64) -> u64) -> usize {
    let most = open_files.map(|open| part(open.saturating_sub(RESERVE)).max(LEAST));
    most.and_then(|most| most.try_into().ok()).unwrap_or(u32::MAX as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r55_few_open_files_are_told_of_only_where_they_matter() {
        let told = |open, sockets| too_few(open, &Limits { sockets, ..Limits::default() });
        let default = Limits::default().sockets;
        assert_eq!((told(Some(20_000), default), told(Some(4096), default), told(None, default)), (None, None, None));
        let words = "the limit of 1024 open files leaves room for 288 sockets";
        assert_eq!(told(Some(1024), default).as_deref(), Some(words));
        assert_eq!(told(Some(1024), 288), None, "no more were wanted");
    }

    #[test]
    fn r52_viewers_and_followed_sessions_leave_room_for_the_rest() {
        for open in [1024, 1025, 4096, 524_288, 1 << 40] {
            let taken = 2 * sockets(Some(open)) as u64 + followed(Some(open)) as u64;
            assert!(taken + RESERVE <= open, "{taken} of {open}");
        }
        assert_eq!((sockets(Some(4096)), followed(Some(4096))), (1440, 960));
        assert_eq!((sockets(Some(0)), followed(Some(0))), (16, 16));
        assert!(sockets(None) > 1 << 30 && followed(None) > 1 << 30);
    }
}
