//! The text of the systemd unit.

use std::path::Path;

use crate::failure::{Code, Failure};

/// The unit's name.
pub(super) const NAME: &str = "bowline.service";
/// What of the environment says where Bowline's files are; the service has to find the same ones.
const KEPT: [&str; 3] = ["BOWLINE_STATE_DIR", "BOWLINE_RUNTIME_DIR", "BOWLINE_CONFIG"];

/// The variables that the service keeps.
pub(super) fn environment() -> Vec<(&'static str, String)> {
    let absolute = |text: String| std::path::absolute(&text).map_or(text, |path| path.display().to_string());
    KEPT.into_iter()
        .filter_map(|name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?)))
        .map(|(name, value)| (name, absolute(value)))
        .collect()
}

/// The unit that runs this program.
pub(super) fn text(program: &Path, environment: &[(&str, String)]) -> Result<String, Failure> {
    let wrong = |what: &str| {
        let hint = "move it to a path of ordinary characters";
        Failure::new(Code::Other, format!("systemd cannot be told of the path {what}"), hint)
    };
    let path = program.to_str().ok_or_else(|| wrong(&program.display().to_string()))?;
    if path.ends_with(" (deleted)") {
        let hint = "run `bowline service install` with the new one";
        return Err(Failure::new(Code::Other, "this bowline binary was replaced while it ran", hint));
    }
    let mut kept = String::new();
    for (name, value) in environment {
        if value.contains('\n') {
            return Err(wrong(value));
        }
        kept.push_str(&format!("Environment={}\n", quoted(&format!("{name}={value}"))));
    }
    // In a command line, systemd also replaces `$`.
    let program = quoted(path).replace('$', "$$");
    Ok(format!(
        "[Unit]
Description=Bowline: this machine's terminals, from anywhere
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={program} serve
ExecReload=/bin/kill -HUP $MAINPID
# Sessions outlive the gateway: a stop or a restart signals the gateway alone.
KillMode=process
OOMPolicy=continue
TimeoutStopSec=20
Restart=on-failure
RestartSec=2
{kept}
[Install]
WantedBy=default.target
"
    ))
}

/// As systemd reads it back: one word, `%` for itself.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r57_the_unit_stops_the_gateway_alone() {
        let unit = text(Path::new("/opt/a b/50%/$x/bowline"), &[("BOWLINE_STATE_DIR", "/s \"x\"".into())]).unwrap();
        let has = |line: &str| assert!(unit.lines().any(|found| found == line), "{line} is not in\n{unit}");
        has("KillMode=process");
        has("Type=exec");
        has("Restart=on-failure");
        has("WantedBy=default.target");
        has("ExecStart=\"/opt/a b/50%%/$$x/bowline\" serve");
        has("Environment=\"BOWLINE_STATE_DIR=/s \\\"x\\\"\"");
        assert!(text(Path::new("/bin/bowline (deleted)"), &[]).is_err());
        assert!(text(Path::new("/b"), &[("BOWLINE_CONFIG", "a\nExecStop=x".into())]).is_err(), "no line of its own");
    }
}
