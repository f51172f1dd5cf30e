//! Checks the state and runtime directories: owner, permissions, free space and path length.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bowline_host::home::Home;
use bowline_proto::ids::SessionId;
use rustix::fs::Access;
use rustix::io::Errno;

use super::report::Report;
use crate::failure::SET_STATE_DIR;
use crate::units;

/// Below this, a session with the default log size may not start.
const LOW_SPACE: u64 = 64 << 20;
/// Below this, no session starts.
const NO_SPACE: u64 = 12 << 20;

/// Runs all checks. Returns whether sessions can use the directories.
pub(super) fn check(report: &mut Report, home: &Home) -> bool {
    let usable = check_directory(report, "state directory", home.state());
    if !usable {
        return false;
    }
    if let Err(error) = home.ensure() {
        report.fail("state directory", &error, SET_STATE_DIR);
        return false;
    }
    check_tokens(report, home);
    check_space(report, home.state());
    check_socket_path(report, home)
}

/// Checks a directory, and creates it if it is missing.
fn check_directory(report: &mut Report, name: &'static str, path: &Path) -> bool {
    let shown = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match bowline_host::home::ensure_private(path) {
            Ok(()) => {
                report.ok(name, format_args!("{shown} (created)"));
                return true;
            }
            Err(error) => {
                report.fail(name, error, format_args!("create it: mkdir -p -m 700 {shown}"));
                return false;
            }
        },
        Err(error) => {
            report.fail(name, format_args!("{shown}: {error}"), "check the permissions of its parent directories");
            return false;
        }
    };
    let uid = rustix::process::geteuid().as_raw();
    let access = rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK);
    if !found.is_dir() {
        report.fail(name, format_args!("{shown} is not a directory"), "move it away, or set BOWLINE_STATE_DIR");
    } else if found.uid() != uid {
        report.fail(name, format_args!("{shown} belongs to another user"), SET_STATE_DIR);
    } else if access == Err(Errno::ROFS) {
        let message = format!("{shown} is on a read-only file system, so no session can be started");
        report.fail(name, message, "make the file system writable, or set BOWLINE_STATE_DIR");
    } else if access.is_err() || found.mode() & 0o700 != 0o700 {
        report.fail(name, format_args!("you cannot write to {shown}"), format_args!("run: chmod 700 {shown}"));
    } else if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        report.warn(
            name,
            format!("{shown} was accessible to other users (mode {mode:o}); this is now fixed"),
            "if this machine has other users, revoke tokens that they may have seen: `bowline token ls` lists them",
        );
        return true;
    } else {
        report.ok(name, shown);
        return true;
    }
    false
}

/// Checks that other users cannot read the file with the tokens.
fn check_tokens(report: &mut Report, home: &Home) {
    let path = home.state().join("auth.json");
    let Ok(found) = fs::metadata(&path) else { return };
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        let message = format!("other users can read {} (mode {mode:o})", path.display());
        report.fail("tokens", message, format_args!("run: chmod 600 {}", path.display()));
    } else {
        report.ok("tokens", "readable only by you");
    }
}

fn check_space(report: &mut Report, path: &Path) {
    match rustix::fs::statvfs(path) {
        Err(error) => report.warn("space", error, "check that disk"),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let message = format!("{} free", units::format_bytes(free));
            let remedy = "free some disk space, or keep less output (`log_size`, `bowline prune`)";
            match free {
                0..NO_SPACE => report.fail("space", message, remedy),
                NO_SPACE..LOW_SPACE => report.warn("space", message, remedy),
                // File systems without a fixed number of inodes report 0 of 0.
                _ if disk.f_files > 0 && disk.f_favail < 100 => {
                    report.fail("space", "no free inodes", "remove files; the file system has too many small ones")
                }
                _ => report.ok("space", message),
            }
        }
    }
}

/// Checks that socket paths are within the limit of the system.
fn check_socket_path(report: &mut Report, home: &Home) -> bool {
    let dir = home.session(&SessionId::from_random([0; 12]));
    match home.socket_path(&dir) {
        Ok(path) if path == dir.sock() => report.ok("socket path", "within the length limit"),
        Ok(path) => {
            let dir = path.parent().unwrap_or(&path).display().to_string();
            report.ok("socket path", format_args!("too long in the state directory, so sockets are in {dir}"));
        }
        Err(error) => {
            report.fail(
                "socket path",
                error,
                "set BOWLINE_RUNTIME_DIR to a directory of your own that has a short path",
            );
            return false;
        }
    }
    true
}
