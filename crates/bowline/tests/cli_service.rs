//! `bowline service`, and sessions in scopes of their own, with programs in place of systemd's that note what they are told;
//! and with systemd itself where it runs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod serving;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};
use serving::Gateway;
use support::World;

/// Answers as systemctl(1) says: a state in a word, whatever the exit code.
const SYSTEMCTL: &str = r#"
case "$*" in
"--user is-system-running") echo running ;;
"--user is-active bowline.service") if [ -e "$HOME/active" ]; then echo active; else echo inactive; exit 3; fi ;;
"--user is-enabled bowline.service") echo enabled ;;
"--user enable --now bowline.service") touch "$HOME/active" ;;
"--user disable --now bowline.service") rm "$HOME/active" ;;
esac"#;

/// Answers as loginctl(1) says; lingering can be turned on.
const LOGINCTL: &str = r#"
case "$*" in
"show-user "*" --property=Linger --value") if [ -e "$HOME/linger" ]; then echo yes; else echo no; fi ;;
enable-linger) touch "$HOME/linger" ;;
esac"#;

/// Does as systemd-run(1) says of --scope: the command replaces it, with its standard input and output.
const SYSTEMD_RUN: &str = r#"while [ "$1" != -- ]; do shift; done; shift; exec "$@""#;

/// A world in which these programs are the first on the PATH.
struct Faked {
    world: World,
    bin: PathBuf,
}

impl Faked {
    fn new(programs: &[(&str, &str)]) -> Faked {
        let world = World::new();
        let bin = world.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for (name, script) in programs {
            let log = world.path().join("told");
            let noted = format!("#!/bin/sh\necho \"{name} $*\" >>{}\n{script}\n", log.display());
            let written = world.path().join(name);
            std::fs::write(&written, noted).unwrap();
            std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o755)).unwrap();
            // By another program: what other tests are just starting would have it open for writing, and it could not run.
            assert!(Command::new("cp").arg(&written).arg(&bin).status().unwrap().success());
        }
        Faked { world, bin }
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

    /// What the programs were told, a line each.
    fn told(&self) -> String {
        std::fs::read_to_string(self.world.path().join("told")).unwrap_or_default()
    }

    fn unit(&self) -> PathBuf {
        self.world.path().join(".config/systemd/user/bowline.service")
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn r57_install_writes_the_unit_starts_it_and_lets_it_linger() {
    let faked = Faked::new(&[("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)]);
    let printed = faked.run(&["service", "install", "--print"]);
    assert!(printed.status.success() && !faked.unit().exists() && faked.told().is_empty(), "only shown");
    let installed = faked.run(&["service", "install"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let unit = std::fs::read_to_string(faked.unit()).unwrap();
    assert_eq!(unit.trim_end(), String::from_utf8_lossy(&printed.stdout).trim_end());
    assert!(unit.contains(&format!("ExecStart=\"{}\" serve\n", env!("CARGO_BIN_EXE_bowline"))), "{unit}");
    assert!(unit.contains("KillMode=process\n") && unit.contains("BOWLINE_STATE_DIR="), "{unit}");
    let told = faked.told();
    for line in
        ["systemctl --user daemon-reload", "systemctl --user enable --now bowline.service", "loginctl enable-linger"]
    {
        assert!(told.lines().any(|found| found == line), "{line} is missing:\n{told}");
    }
    assert!(!told.contains("restart"), "there was none to restart:\n{told}");
    assert!(text(&faked.run(&["service", "status"])).contains("runs     yes"));
    assert!(text(&faked.run(&["service", "install"])).contains("lingering is on"));
    assert!(faked.told().contains("systemctl --user restart bowline.service"), "the old gateway makes room");

    let removed = faked.run(&["service", "uninstall"]);
    assert!(removed.status.success() && !faked.unit().exists(), "{}", text(&removed));
    assert!(faked.told().contains("systemctl --user disable --now bowline.service"));
    assert_eq!(faked.run(&["service", "status"]).status.code(), Some(1));
    assert_eq!(faked.run(&["service", "uninstall"]).status.code(), Some(1));
}

#[test]
fn r57_the_service_finds_what_the_other_verbs_find() {
    let faked = Faked::new(&[("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)]);
    let at = |name: &str| faked.world.path().join(name).display().to_string();
    let install = |extra: &[&str]| {
        let words: Vec<&str> = ["service", "install"].iter().chain(extra).copied().collect();
        let mut command = faked.bowline(&words);
        command.env_remove("BOWLINE_STATE_DIR").env_remove("BOWLINE_RUNTIME_DIR");
        command.env("XDG_STATE_HOME", "state").env("XDG_RUNTIME_DIR", at("run")).env("XDG_CONFIG_HOME", at("conf"));
        command.env("BOWLINE_LISTEN", "127.0.0.1:7999").env("BOWLINE_TLS_CERT", "c.pem").env("BOWLINE_TLS_KEY", "/k");
        command.env("RUST_LOG", "debug").env("BOWLINE_TOKEN", "secret");
        command.output().unwrap()
    };
    let printed = install(&["--print"]);
    assert!(text(&printed).contains("has to be there"), "{}", text(&printed));
    assert!(!faked.world.path().join("conf").exists(), "only shown");
    let installed = install(&[]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert!(text(&installed).contains("BOWLINE_LISTEN"), "{}", text(&installed));
    let unit = std::fs::read_to_string(faked.world.path().join("conf/systemd/user/bowline.service")).unwrap();
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
    assert!(faked.world.path().join("conf/bowline/config.toml").exists(), "what is named has to be there");
}

#[test]
fn r57_without_systemd_install_says_so() {
    let faked = Faked::new(&[("systemctl", "echo offline; exit 1")]);
    let installed = faked.run(&["service", "install"]);
    assert_eq!(installed.status.code(), Some(1));
    assert!(text(&installed).contains("systemd does not run here") && text(&installed).contains("@reboot"));
    assert!(faked.unit().exists());
    let config = faked.world.path().join("xdg");
    let elsewhere = faked.bowline(&["service", "install"]).env("XDG_CONFIG_HOME", &config).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(config.join("systemd/user/bowline.service").exists());
    assert!(faked.run(&["service", "uninstall"]).status.success());
    assert!(!faked.told().contains("disable"), "nobody is there to be told");
}

/// Asks the gateway for a session of `cat`; its id.
fn make(world: &World, gateway: &Gateway) -> String {
    let token = world.ok(&["token", "create", "--name", "t", "--scope", "write"]);
    let mut command = world.bowline(&["--server", gateway.url(), "new", "--detach", "--", "cat"]);
    let made = command.env("BOWLINE_TOKEN", token.trim()).output().unwrap();
    assert!(made.status.success(), "{}", text(&made));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn r57_session_processes_get_scopes_of_their_own() {
    let faked = Faked::new(&[("systemd-run", SYSTEMD_RUN)]);
    let mut command = faked.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BOWLINE_SCOPES", "always").env("SECRET", "not for systemd-run");
    let mut gateway = Gateway::start(&faked.world, command);
    let id = make(&faked.world, &gateway);
    let exe = format!("/proc/{}/exe", gateway.pid());
    assert_eq!(
        faked.told(),
        format!(
            "systemd-run --user --scope --collect --quiet --unit=bowline-session-{id} -- {exe} session-process {id}\n"
        )
    );
    assert_eq!(gateway.stop(Signal::TERM), Some(0));
    assert_eq!(faked.world.info(&id, "state"), "running");
    faked.world.ok(&["kill", "--keep", &id]);
    assert_eq!(faked.world.info(&id, "state"), "exited");
}

#[test]
fn r57_a_session_starts_without_a_scope_when_there_is_none_to_have() {
    let faked = Faked::new(&[("systemd-run", "echo 'Failed to connect to bus' >&2; exit 1")]);
    let mut command = faked.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BOWLINE_SCOPES", "always");
    let gateway = Gateway::start(&faked.world, command);
    let id = make(&faked.world, &gateway);
    assert_eq!(faked.world.info(&id, "state"), "running");
    assert!(gateway.log().contains("no systemd scope for a session"), "{}", gateway.log());
}

#[test]
fn r57_a_gateway_that_is_no_service_needs_no_systemd() {
    let faked = Faked::new(&[("systemd-run", SYSTEMD_RUN)]);
    let mut command = faked.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    // What a shell below some service inherits.
    command.env("INVOCATION_ID", "0123456789abcdef");
    let gateway = Gateway::start(&faked.world, command);
    make(&faked.world, &gateway);
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let in_service = group.lines().any(|line| line.starts_with("0::") && line.ends_with(".service"));
    assert_eq!(faked.told().is_empty(), !in_service, "{}", faked.told());
}

/// Where systemd runs: a service of the real one, stopped and restarted, with a session that lives through both. Where it
/// does not: installing says so, by the real systemctl or without any.
#[test]
fn r57_with_systemd_itself_neither_stop_nor_restart_ends_a_session() {
    let state = Command::new("systemctl").args(["--user", "is-system-running"]).output();
    let state = state.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let world = World::new();
    if !["running", "degraded", "starting"].contains(&state.as_str()) {
        let installed = world.run(&["service", "install"]);
        assert_eq!(installed.status.code(), Some(1));
        assert!(text(&installed).contains("systemd does not run here"), "{}", text(&installed));
        return;
    }
    let unit = format!("bowline-test-{}", std::process::id());
    let systemctl = |words: &[&str]| {
        let done = Command::new("systemctl").arg("--user").args(words).arg(&unit).status().unwrap();
        assert!(done.success(), "{words:?}");
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
    let made = command.env("BOWLINE_TOKEN", token.trim()).output().unwrap();
    let id = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let pid = world.process_of(&id);
    let group = std::fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).unwrap();
    assert!(group.contains(&format!("bowline-session-{id}.scope")), "{group}");
    systemctl(&["restart"]);
    assert_eq!(world.info(&id, "state"), json!("running"));
    systemctl(&["stop"]);
    assert_eq!(world.info(&id, "state"), json!("running"));
    assert_eq!(world.process_of(&id), pid, "it is the same life");
}
