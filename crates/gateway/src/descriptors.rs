//! How the descriptors that this process may have are shared out, so that no use takes what another needs: without them, no
//! file can be read and nobody be let in.

use rustix::process::{Resource, getrlimit};

/// For what grows neither with viewers nor with sessions: files, sessions that are being started or asked, the listener.
const RESERVE: u64 = 256;
/// So many sockets, and sessions that are followed, there are in any case.
const LEAST: u64 = 16;

/// How many descriptors there may be; `None` without a limit.
pub(crate) fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
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
