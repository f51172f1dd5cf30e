//! The state and runtime directories: whose they are, who else can look in, how much fits.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bowline_host::home::Home;
use bowline_proto::ids::SessionId;

use super::report::Report;
use crate::units;

/// Less than this, and a session of the default size may not start.
const LITTLE_SPACE: u64 = 64 << 20;
/// Less than this, and nothing starts.
const NO_SPACE: u64 = 12 << 20;

/// Looks at them all; whether sessions can live there.
pub(super) fn check(report: &mut Report, home: &Home) -> bool {
    let usable = directory(report, "state directory", home.state());
    if !usable {
        return false;
    }
    if let Err(error) = home.ensure() {
        report.fail("state directory", &error, "set BOWLINE_STATE_DIR to a directory of your own");
        return false;
    }
    secrets(report, home);
    space(report, home.state());
    socket(report, home)
}

/// One directory; it may be missing if it can be made.
fn directory(report: &mut Report, name: &'static str, path: &Path) -> bool {
    let shown = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match bowline_host::home::ensure_private(path) {
            Ok(()) => {
                report.ok(name, format_args!("{shown}, just made"));
                return true;
            }
            Err(error) => {
                report.fail(name, error, format_args!("make it: mkdir -p -m 700 {shown}"));
                return false;
            }
        },
        Err(error) => {
            report.fail(name, format_args!("{shown}: {error}"), "every directory on the way must be yours to enter");
            return false;
        }
    };
    let me = rustix::process::geteuid().as_raw();
    if !found.is_dir() {
        report.fail(name, format_args!("{shown} is no directory"), "move it away, or set BOWLINE_STATE_DIR");
    } else if found.uid() != me {
        report.fail(name, format_args!("{shown} belongs to another user"), "set BOWLINE_STATE_DIR to one of your own");
    } else if rustix::fs::access(
        path,
        rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )
    .is_err()
        || found.mode() & 0o700 != 0o700
    {
        report.fail(name, format_args!("{shown} cannot be written by you"), format_args!("chmod 700 {shown}"));
    } else if found.mode() & 0o077 != 0 {
        let words =
            format_args!("{shown} was open to others (mode {:o}); it is closed now", found.mode() & 0o777).to_string();
        report.warn(
            name,
            words,
            "if others have accounts here: `bowline token ls`, and revoke what they may have seen",
        );
        return true;
    } else {
        report.ok(name, shown);
        return true;
    }
    false
}

/// Who holds this file holds the gateway.
fn secrets(report: &mut Report, home: &Home) {
    let path = home.state().join("auth.json");
    let Ok(found) = fs::metadata(&path) else { return };
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        let words = format!("{} can be read by others (mode {mode:o})", path.display());
        report.fail("tokens", words, format_args!("chmod 600 {}", path.display()));
    } else {
        report.ok("tokens", "only you can read them");
    }
}

fn space(report: &mut Report, path: &Path) {
    match rustix::fs::statvfs(path) {
        Err(error) => report.warn("space", error, "see to that disk"),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let words = format!("{} free", units::show_bytes(free));
            let remedy = "free some space, or keep less output (`log_size`, `bowline prune`)";
            match free {
                0..NO_SPACE => report.fail("space", words, remedy),
                NO_SPACE..LITTLE_SPACE => report.warn("space", words, remedy),
                // Some file systems have no fixed number of files, and say 0 of 0.
                _ if disk.f_files > 0 && disk.f_favail < 100 => {
                    report.fail("space", "no room for more files", "remove files; there are too many small ones")
                }
                _ => report.ok("space", words),
            }
        }
    }
}

/// A socket's path must be short.
fn socket(report: &mut Report, home: &Home) -> bool {
    let dir = home.session(&SessionId::from_random([0; 12]));
    match home.socket_path(&dir) {
        Ok(path) if path == dir.sock() => report.ok("socket path", "short enough"),
        Ok(path) => {
            let place = path.parent().unwrap_or(&path).display().to_string();
            report.ok("socket path", format_args!("too long in the state directory, so sockets are in {place}"));
        }
        Err(error) => {
            report.fail("socket path", error, "set BOWLINE_RUNTIME_DIR to a directory of your own with a short path");
            return false;
        }
    }
    true
}
