//! Asking and telling systemd, by its own programs.

use std::process::{Command, Stdio};

use crate::failure::{Code, Failure};

/// Whether this process runs as a systemd service: systemd started it, and its group is that service's.
///
/// The variable alone would not do, for everything that a service starts inherits it.
pub(crate) fn is_service() -> bool {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    std::env::var_os("INVOCATION_ID").is_some() && in_service(&groups)
}

fn in_service(groups: &str) -> bool {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    group.is_some_and(|group| group.trim_end().ends_with(".service"))
}

/// Whether the user's service manager runs.
pub(crate) fn runs() -> bool {
    let state = ask("systemctl", &["--user", "is-system-running"]).unwrap_or_default();
    matches!(state.as_str(), "initializing" | "starting" | "running" | "degraded" | "maintenance")
}

/// Whether the service runs.
pub(super) fn is_active() -> bool {
    ask("systemctl", &["--user", "is-active", super::unit::NAME]).is_some_and(|state| state == "active")
}

/// Whether the service starts with the machine.
pub(super) fn is_enabled() -> bool {
    ask("systemctl", &["--user", "is-enabled", super::unit::NAME]).is_some_and(|state| state == "enabled")
}

/// Whether the user's services outlive their login; `None` when nobody says.
pub(crate) fn lingers() -> Option<bool> {
    match ask("loginctl", &["show-user", &user(), "--property=Linger", "--value"])?.as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Lets the user's services outlive their login; whether that worked.
pub(super) fn enable_linger() -> bool {
    let done = Command::new("loginctl").args(["enable-linger"]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// Tells the user's service manager to do something.
pub(super) fn systemctl(words: &[&str]) -> Result<(), Failure> {
    let done = Command::new("systemctl").arg("--user").args(words).stdin(Stdio::null()).status();
    if done.as_ref().is_ok_and(std::process::ExitStatus::success) {
        return Ok(());
    }
    let why = done.map_or_else(|error| error.to_string(), |status| status.to_string());
    let message = format!("`systemctl --user {}` failed: {why}", words.join(" "));
    Err(Failure::new(Code::Other, message, "`systemctl --user status bowline` says more"))
}

/// The name of this user.
pub(crate) fn user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = found.into_iter().find(|user| user.get(2) == Some(&&*uid)).map(|user| user[0].to_owned());
    found.unwrap_or(uid)
}

/// The first line that a program answers, whatever its exit code.
fn ask(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r57_a_service_is_told_from_a_login() {
        assert!(in_service("0::/user.slice/user-1000.slice/user@1000.service/app.slice/bowline.service\n"));
        assert!(!in_service("0::/user.slice/user-1000.slice/session-3.scope\n"));
        assert!(!in_service("0::/\n"));
        assert!(!in_service("1:name=systemd:/x.service\n0::/user.slice\n"));
        assert!(!in_service(""));
    }
}
