//! Queries and controls systemd through `systemctl` and `loginctl`.

use std::process::{Command, Stdio};

use crate::failure::{Code, Failure};

/// Whether this process runs as a systemd service: `INVOCATION_ID` is set and the process is in the service's cgroup. The
/// variable alone proves nothing, because children of a service inherit it.
pub(crate) fn is_service() -> bool {
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    std::env::var_os("INVOCATION_ID").is_some() && is_service_cgroup(&cgroups)
}

fn is_service_cgroup(cgroups: &str) -> bool {
    let cgroup = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
    cgroup.is_some_and(|cgroup| cgroup.trim_end().ends_with(".service"))
}

/// Whether the user's service manager is running.
pub(crate) fn runs() -> bool {
    let state = query("systemctl", &["--user", "is-system-running"]).unwrap_or_default();
    matches!(state.as_str(), "initializing" | "starting" | "running" | "degraded" | "maintenance")
}

/// Whether the service is running.
pub(super) fn is_active() -> bool {
    query("systemctl", &["--user", "is-active", super::unit::NAME]).is_some_and(|state| state == "active")
}

/// Whether the service starts at boot.
pub(super) fn is_enabled() -> bool {
    query("systemctl", &["--user", "is-enabled", super::unit::NAME]).is_some_and(|state| state == "enabled")
}

/// Whether the user's services keep running after logout; `None` if `loginctl` does not answer.
pub(crate) fn lingers() -> Option<bool> {
    match query("loginctl", &["show-user", &user(), "--property=Linger", "--value"])?.as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Lets the user's services keep running after logout. Returns whether that worked.
pub(super) fn enable_linger() -> bool {
    let status = Command::new("loginctl").args(["enable-linger"]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs `systemctl --user` with these arguments.
pub(super) fn systemctl(args: &[&str]) -> Result<(), Failure> {
    let status = Command::new("systemctl").arg("--user").args(args).stdin(Stdio::null()).status();
    if status.as_ref().is_ok_and(std::process::ExitStatus::success) {
        return Ok(());
    }
    let cause = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let message = format!("`systemctl --user {}` failed: {cause}", args.join(" "));
    Err(Failure::new(Code::Other, message, "`systemctl --user status bowline` shows details"))
}

/// The name of the current user, or the uid if it has no name.
pub(crate) fn user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = found.into_iter().find(|user| user.get(2) == Some(&&*uid)).map(|user| user[0].to_owned());
    found.unwrap_or(uid)
}

/// The first line that a program prints, regardless of its exit code.
fn query(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r57_a_service_is_recognized_by_its_cgroup() {
        assert!(is_service_cgroup("0::/user.slice/user-1000.slice/user@1000.service/app.slice/bowline.service\n"));
        assert!(!is_service_cgroup("0::/user.slice/user-1000.slice/session-3.scope\n"));
        assert!(!is_service_cgroup("0::/\n"));
        assert!(!is_service_cgroup("1:name=systemd:/x.service\n0::/user.slice\n"));
        assert!(!is_service_cgroup(""));
    }
}
