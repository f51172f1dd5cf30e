//! Writes the text of the systemd unit.

use std::path::Path;

use anyhow::Context;
use bowline_host::home::Home;

use crate::config::Loaded;
use crate::failure::{Code, Failure};

pub(super) const NAME: &str = "bowline.service";
/// Variables whose value may be a relative path. The unit gets absolute ones, since the service runs in another directory.
const PATH_VARIABLES: [&str; 2] = ["BOWLINE_TLS_CERT", "BOWLINE_TLS_KEY"];

/// The environment of the service: the paths of Bowline's files, and the variables that configure it, as set now.
pub(super) fn environment(home: &Home, config: &Path, loaded: &Loaded) -> anyhow::Result<Vec<(String, String)>> {
    let paths =
        [("BOWLINE_STATE_DIR", home.state()), ("BOWLINE_RUNTIME_DIR", home.runtime()), ("BOWLINE_CONFIG", config)];
    let mut variables = Vec::new();
    for (name, path) in paths {
        variables.push((name.to_owned(), absolute(path)?));
    }
    for name in loaded.variables() {
        let value = std::env::var(name).with_context(|| format!("cannot read {name}"))?;
        let value = if PATH_VARIABLES.contains(&name) { absolute(Path::new(&value))? } else { value };
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("cannot make {} an absolute path", path.display()))?;
    Ok(path.to_str().ok_or_else(|| unsupported(&path.display().to_string()))?.to_owned())
}

fn unsupported(value: &str) -> Failure {
    let hint = "use another path, or set the value in the configuration file";
    let message = format!("a systemd unit cannot contain {value:?}: it is not UTF-8 or has control characters");
    Failure::new(Code::Other, message, hint)
}

/// The unit that runs `program` as the gateway, with this environment.
pub(super) fn text(program: &Path, environment: &[(String, String)]) -> Result<String, Failure> {
    let path = program.to_str().ok_or_else(|| unsupported(&program.display().to_string()))?;
    if path.ends_with(" (deleted)") {
        let hint = "run `bowline service install` again, with the new binary";
        return Err(Failure::new(Code::Other, "this bowline binary was replaced while it ran", hint));
    }
    let mut variables = String::new();
    for (name, value) in environment {
        if value.contains(char::is_control) {
            return Err(unsupported(value));
        }
        variables.push_str(&format!("Environment={}\n", quote(&format!("{name}={value}"))));
    }
    // In a command line, systemd also expands `$`.
    let program = quote(path).replace('$', "$$");
    Ok(format!(
        "[Unit]
Description=Bowline gateway: the terminals of this machine
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={program} serve
ExecReload=/bin/kill -HUP $MAINPID
# Signal only the gateway on stop or restart; sessions keep running.
KillMode=process
OOMPolicy=continue
TimeoutStopSec=20
Restart=on-failure
RestartSec=2
{variables}
[Install]
WantedBy=default.target
"
    ))
}

/// Quotes a value so that systemd reads it as one word and does not expand `%`.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r57_the_unit_signals_only_the_gateway() {
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
            "a value must not add a line to the unit"
        );
    }
}
