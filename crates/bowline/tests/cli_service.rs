//! `bowline service`, and session processes in systemd scopes. Uses fake systemd programs that record their arguments, and
//! the real systemd where it runs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod serving;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};
use serving::Gateway;
use support::World;

/// A fake `systemctl`. It prints a state as a single word, regardless of the exit code.
const SYSTEMCTL: &str = r#"
case "$*" in
"--user is-system-running") echo running ;;
"--user is-active bowline.service") if [ -e "$HOME/active" ]; then echo active; else echo inactive; exit 3; fi ;;
"--user is-enabled bowline.service") echo enabled ;;
"--user enable --now bowline.service") touch "$HOME/active" ;;
"--user disable --now bowline.service") rm "$HOME/active" ;;
esac"#;

/// A fake `loginctl`. Lingering can be turned on.
const LOGINCTL: &str = r#"
case "$*" in
"show-user "*" --property=Linger --value") if [ -e "$HOME/linger" ]; then echo yes; else echo no; fi ;;
enable-linger) touch "$HOME/linger" ;;
esac"#;

/// A fake `systemd-run --scope`: the command replaces it, with the same standard input and output.
const SYSTEMD_RUN: &str = r#"while [ "$1" != -- ]; do shift; done; shift; exec "$@""#;

/// A world with fake systemd programs first on the PATH.
struct FakeSystemd {
    world: World,
    bin: PathBuf,
}

impl FakeSystemd {
    fn new(programs: &[(&str, &str)]) -> FakeSystemd {
        let world = World::new();
        let bin = world.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for (name, script) in programs {
            let log = world.path().join("calls");
            let script = format!("#!/bin/sh\necho \"{name} $*\" >>{}\n{script}\n", log.display());
            let written = world.path().join(name);
            std::fs::write(&written, script).unwrap();
            std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o755)).unwrap();
            // Copied by another process: a child that another test is just forking may have `written` open for writing, and
            // then it could not be executed.
            assert!(Command::new("cp").arg(&written).arg(&bin).status().unwrap().success());
        }
        FakeSystemd { world, bin }
    }

    fn bowline(&self, args: &[&str]) -> Command {
        let mut command = self.world.bowline(args);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.bin.display())).env_remove("BOWLINE_CONFIG");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.bowline(args).output().unwrap()
    }

    /// The calls of the fake programs, one per line.
    fn calls(&self) -> String {
        std::fs::read_to_string(self.world.path().join("calls")).unwrap_or_default()
    }

    fn unit(&self) -> PathBuf {
        self.world.path().join(".config/systemd/user/bowline.service")
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn r57_install_writes_and_starts_the_unit_and_turns_on_lingering() {
    let fake = FakeSystemd::new(&[("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)]);
    let printed = fake.run(&["service", "install", "--print"]);
    assert!(printed.status.success() && !fake.unit().exists() && fake.calls().is_empty(), "--print changed something");
    let installed = fake.run(&["service", "install"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let unit = std::fs::read_to_string(fake.unit()).unwrap();
    assert_eq!(unit.trim_end(), String::from_utf8_lossy(&printed.stdout).trim_end());
    assert!(unit.contains(&format!("ExecStart=\"{}\" serve\n", env!("CARGO_BIN_EXE_bowline"))), "{unit}");
    assert!(unit.contains("KillMode=process\n") && unit.contains("BOWLINE_STATE_DIR="), "{unit}");
    let calls = fake.calls();
    for line in
        ["systemctl --user daemon-reload", "systemctl --user enable --now bowline.service", "loginctl enable-linger"]
    {
        assert!(calls.lines().any(|found| found == line), "{line} is missing:\n{calls}");
    }
    assert!(!calls.contains("restart"), "no gateway was running:\n{calls}");
    assert!(text(&fake.run(&["service", "status"])).contains("running  yes"));
    assert!(text(&fake.run(&["service", "install"])).contains("lingering is on"));
    assert!(fake.calls().contains("systemctl --user restart bowline.service"), "the old gateway was not replaced");

    let removed = fake.run(&["service", "uninstall"]);
    assert!(removed.status.success() && !fake.unit().exists(), "{}", text(&removed));
    assert!(fake.calls().contains("systemctl --user disable --now bowline.service"));
    assert_eq!(fake.run(&["service", "status"]).status.code(), Some(1));
    assert_eq!(fake.run(&["service", "uninstall"]).status.code(), Some(1));
}

#[test]
fn r57_the_service_uses_the_same_files_and_settings_as_the_other_verbs() {
    let fake = FakeSystemd::new(&[("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)]);
    let at = |name: &str| fake.world.path().join(name).display().to_string();
    let install = |extra: &[&str]| {
        let args: Vec<&str> = ["service", "install"].iter().chain(extra).copied().collect();
        let mut command = fake.bowline(&args);
        command.env_remove("BOWLINE_STATE_DIR").env_remove("BOWLINE_RUNTIME_DIR");
        command.env("XDG_STATE_HOME", "state").env("XDG_RUNTIME_DIR", at("run")).env("XDG_CONFIG_HOME", at("conf"));
        command.env("BOWLINE_LISTEN", "127.0.0.1:7999").env("BOWLINE_TLS_CERT", "c.pem").env("BOWLINE_TLS_KEY", "/k");
        command.env("RUST_LOG", "debug").env("BOWLINE_TOKEN", "secret");
        command.output().unwrap()
    };
    let printed = install(&["--print"]);
    assert!(text(&printed).contains("needs the configuration file"), "{}", text(&printed));
    assert!(!fake.world.path().join("conf").exists(), "--print created files");
    let installed = install(&[]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert!(text(&installed).contains("BOWLINE_LISTEN"), "{}", text(&installed));
    let unit = std::fs::read_to_string(fake.world.path().join("conf/systemd/user/bowline.service")).unwrap();
    let mut found: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("Environment=")).collect();
    found.sort_unstable();
    let expected = [
        ("BOWLINE_CONFIG", at("conf/bowline/config.toml")),
        ("BOWLINE_LISTEN", "127.0.0.1:7999".into()),
        ("BOWLINE_RUNTIME_DIR", at("run/bowline")),
        ("BOWLINE_STATE_DIR", at("state/bowline")),
        ("BOWLINE_TLS_CERT", at("c.pem")),
        ("BOWLINE_TLS_KEY", "/k".into()),
        ("RUST_LOG", "debug".into()),
    ];
    assert_eq!(found, expected.map(|(name, value)| format!("\"{name}={value}\"")));
    assert!(fake.world.path().join("conf/bowline/config.toml").exists(), "the unit names a missing file");
}

#[test]
fn r57_without_systemd_install_says_so() {
    let fake = FakeSystemd::new(&[("systemctl", "echo offline; exit 1")]);
    let installed = fake.run(&["service", "install"]);
    assert_eq!(installed.status.code(), Some(1));
    assert!(text(&installed).contains("systemd is not running") && text(&installed).contains("@reboot"));
    assert!(fake.unit().exists());
    let config = fake.world.path().join("xdg");
    let elsewhere = fake.bowline(&["service", "install"]).env("XDG_CONFIG_HOME", &config).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(config.join("systemd/user/bowline.service").exists());
    assert!(fake.run(&["service", "uninstall"]).status.success());
    assert!(!fake.calls().contains("disable"), "systemctl was called");
}

/// Starts a session of `cat` through the gateway; returns its id.
fn start_session(world: &World, gateway: &Gateway) -> String {
    let token = world.ok(&["token", "create", "--name", "t", "--scope", "write"]);
    let mut command = world.bowline(&["--server", gateway.url(), "new", "--detach", "--", "cat"]);
    let output = command.env("BOWLINE_TOKEN", token.trim()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn r57_each_session_process_gets_its_own_scope() {
    let fake = FakeSystemd::new(&[("systemd-run", SYSTEMD_RUN)]);
    let mut command = fake.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BOWLINE_SCOPES", "always").env("SECRET", "not for systemd-run");
    let mut gateway = Gateway::start(&fake.world, command);
    let id = start_session(&fake.world, &gateway);
    let exe = format!("/proc/{}/exe", gateway.pid());
    assert_eq!(
        fake.calls(),
        format!(
            "systemd-run --user --scope --collect --quiet --unit=bowline-session-{id} -- {exe} session-process {id}\n"
        )
    );
    assert_eq!(gateway.stop(Signal::TERM), Some(0));
    assert_eq!(fake.world.info(&id, "state"), "running");
    fake.world.ok(&["kill", "--keep", &id]);
    assert_eq!(fake.world.info(&id, "state"), "exited");
}

#[test]
fn r57_a_session_starts_without_a_scope_if_systemd_run_fails() {
    let fake = FakeSystemd::new(&[("systemd-run", "echo 'Failed to connect to bus' >&2; exit 1")]);
    let mut command = fake.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BOWLINE_SCOPES", "always");
    let gateway = Gateway::start(&fake.world, command);
    let id = start_session(&fake.world, &gateway);
    assert_eq!(fake.world.info(&id, "state"), "running");
    assert!(gateway.log().contains("cannot create a systemd scope"), "{}", gateway.log());
}

#[test]
fn r57_a_gateway_that_is_not_a_service_does_not_use_systemd() {
    let fake = FakeSystemd::new(&[("systemd-run", SYSTEMD_RUN)]);
    let mut command = fake.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    // A shell that was started by some service inherits this variable.
    command.env("INVOCATION_ID", "0123456789abcdef");
    let gateway = Gateway::start(&fake.world, command);
    start_session(&fake.world, &gateway);
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let in_service = cgroups.lines().any(|line| line.starts_with("0::") && line.ends_with(".service"));
    assert_eq!(fake.calls().is_empty(), !in_service, "{}", fake.calls());
}

/// Where systemd runs, restarts and stops a real service while a session keeps running. Elsewhere, checks that installing
/// reports that systemd is not running.
#[test]
fn r57_with_real_systemd_neither_stop_nor_restart_ends_a_session() {
    let state = Command::new("systemctl").args(["--user", "is-system-running"]).output();
    let state = state.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let world = World::new();
    if !["running", "degraded", "starting"].contains(&state.as_str()) {
        let installed = world.run(&["service", "install"]);
        assert_eq!(installed.status.code(), Some(1));
        assert!(text(&installed).contains("systemd is not running"), "{}", text(&installed));
        return;
    }
    let unit = format!("bowline-test-{}", std::process::id());
    let systemctl = |args: &[&str]| {
        let status = Command::new("systemctl").arg("--user").args(args).arg(&unit).status().unwrap();
        assert!(status.success(), "{args:?}");
    };
    let mut run = Command::new("systemd-run");
    run.args(["--user", "--quiet", "--collect", "--property=KillMode=process", "--property=Type=exec"]);
    run.arg(format!("--unit={unit}"));
    for (name, value) in world.env() {
        run.arg(format!("--setenv={name}={}", value.display()));
    }
    world.configure("[gateway]\nlisten = \"127.0.0.1:0\"");
    run.arg(env!("CARGO_BIN_EXE_bowline")).arg("serve");
    assert!(run.status().unwrap().success());
    let file =
        || -> Option<Value> { serde_json::from_slice(&std::fs::read(world.path().join("s/gateway.json")).ok()?).ok() };
    support::wait_until("the service listens", || file().is_some());
    let token = world.ok(&["token", "create", "--name", "t", "--scope", "write"]);
    let url = file().unwrap()["url"].as_str().unwrap().to_owned();
    let mut command = world.bowline(&["--server", &url, "new", "--detach", "--", "cat"]);
    let output = command.env("BOWLINE_TOKEN", token.trim()).output().unwrap();
    let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let pid = world.process_of(&id);
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).unwrap();
    assert!(cgroup.contains(&format!("bowline-session-{id}.scope")), "{cgroup}");
    systemctl(&["restart"]);
    assert_eq!(world.info(&id, "state"), json!("running"));
    systemctl(&["stop"]);
    assert_eq!(world.info(&id, "state"), json!("running"));
    assert_eq!(world.process_of(&id), pid, "the session was restarted");
}
