//! The text of the systemd unit.

use std::path::Path;

use anyhow::Context;
use bowline_host::home::Home;

use crate::config::Loaded;
use crate::failure::{Code, Failure};

/// The unit's name.
pub(super) const NAME: &str = "bowline.service";
/// Variables with a path that counts from the directory in which one is; the service is in another.
const PATHS: [&str; 2] = ["BOWLINE_TLS_CERT", "BOWLINE_TLS_KEY"];

/// The variables of the service: where Bowline's files are, as this command finds them, and what configures it here.
pub(super) fn environment(home: &Home, config: &Path, loaded: &Loaded) -> anyhow::Result<Vec<(String, String)>> {
    let places =
        [("BOWLINE_STATE_DIR", home.state()), ("BOWLINE_RUNTIME_DIR", home.runtime()), ("BOWLINE_CONFIG", config)];
    let mut variables = Vec::new();
    for (name, path) in places {
        variables.push((name.to_owned(), absolute(path)?));
    }
    for name in loaded.variables() {
        let value = std::env::var(name).with_context(|| format!("cannot read {name}"))?;
        let value = if PATHS.contains(&name) { absolute(Path::new(&value))? } else { value };
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?;
    Ok(path.to_str().ok_or_else(|| wrong(&path.display().to_string()))?.to_owned())
}

fn wrong(what: &str) -> Failure {
    let hint = "systemd takes only ordinary characters: use another path, or set it in the configuration file";
    Failure::new(Code::Other, format!("systemd cannot be told of {what:?}"), hint)
}

/// The unit that runs this program.
pub(super) fn text(program: &Path, environment: &[(String, String)]) -> Result<String, Failure> {
    let path = program.to_str().ok_or_else(|| wrong(&program.display().to_string()))?;
    if path.ends_with(" (deleted)") {
        let hint = "run `bowline service install` with the new one";
        return Err(Failure::new(Code::Other, "this bowline binary was replaced while it ran", hint));
    }
    let mut kept = String::new();
    for (name, value) in environment {
        if value.contains(char::is_control) {
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
        let unit =
            text(Path::new("/opt/a b/50%/$x/bowline"), &[("BOWLINE_STATE_DIR".into(), "/s \"x\"".into())]).unwrap();
        let has = |line: &str| assert!(unit.lines().any(|found| found == line), "{line} is not in\n{unit}");
        has("KillMode=process");
        has("Type=exec");
        has("Restart=on-failure");
        has("WantedBy=default.target");
        has("ExecStart=\"/opt/a b/50%%/$$x/bowline\" serve");
        has("Environment=\"BOWLINE_STATE_DIR=/s \\\"x\\\"\"");
        assert!(text(Path::new("/bin/bowline (deleted)"), &[]).is_err());
        assert!(
            text(Path::new("/b"), &[("BOWLINE_CONFIG".into(), "a\nExecStop=x".into())]).is_err(),
            "no line of its own"
        );
    }
}
