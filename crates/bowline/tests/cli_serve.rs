//! `bowline serve` and `bowline config`: starting, stopping, configuration, certificates.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod serving;
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use serving::{Gateway, get};
use support::{World, wait_until};

#[test]
fn r55_bowline_alone_serves_and_prints_a_link() {
    let world = World::new();
    world.configure("[gateway]\nlisten = \"127.0.0.1:0\"");
    let gateway = Gateway::start(&world, world.bowline(&[]));
    assert!(gateway.stdout().contains(&format!("log in with {}/#login=", gateway.url())), "{}", gateway.stdout());
    assert!(get(gateway.address(), "/healthz").starts_with("HTTP/1.1 200"));
    let file: Value = serde_json::from_slice(&std::fs::read(world.path().join("s/gateway.json")).unwrap()).unwrap();
    assert_eq!((&file["url"], file["pid"].as_u64()), (&gateway.url().into(), Some(gateway.pid().into())));
    assert!(file["started"].is_string() && file["listen"] == gateway.address().to_string());
}

#[test]
fn r20_a_stop_is_clean_and_sessions_keep_running() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        let id = world.start("w", "echo here; cat");
        let mut gateway = Gateway::new(&world, &[]);
        assert_eq!(gateway.stop(signal), Some(0), "{}", gateway.log());
        assert!(!world.path().join("s/gateway.json").exists(), "gateway.json was not removed");
        assert_eq!(world.info(&id, "state"), "running");
        assert!(world.screen("w").contains("here"));
    }
}

#[test]
fn r20_a_gateway_handles_signals_once_gateway_json_exists() {
    let world = World::new();
    let (mut read, write) = std::io::pipe().unwrap();
    // A full pipe blocks the gateway while it prints its first messages.
    let room = rustix::pipe::fcntl_setpipe_size(&write, 4096).unwrap();
    (&write).write_all(&vec![b'.'; room]).unwrap();
    let mut command = world.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = serving::Guard(command.stdout(write).stderr(Stdio::null()).spawn().unwrap());
    drop(command);
    wait_until("gateway.json exists", || world.path().join("s/gateway.json").exists());
    child.signal(Signal::TERM);
    read.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0), "the signal was not handled");
    assert!(!world.path().join("s/gateway.json").exists());
}

#[test]
fn r20_a_second_signal_stops_at_once() {
    let world = World::new();
    let mut gateway = Gateway::new(&world, &["--limit", "drain=1h", "--limit", "head_within=1h"]);
    // The gateway waits for a request that never ends.
    let mut slow = TcpStream::connect(gateway.address()).unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    assert!(get(gateway.address(), "/healthz").contains("200"), "the gateway must have accepted the slow connection");
    gateway.signal(Signal::TERM);
    wait_until("the gateway is stopping", || gateway.log().contains("stopping"));
    assert_eq!(gateway.stop(Signal::TERM), Some(0));
    assert!(!world.path().join("s/gateway.json").exists());
}

#[test]
fn r21_a_second_gateway_serves_the_same_sessions_and_says_so() {
    let world = World::new();
    let first = Gateway::new(&world, &[]);
    let file = world.path().join("s/gateway.json");
    let before = std::fs::read(&file).unwrap();
    let mut second = Gateway::new(&world, &[]);
    let note = format!("Note: another gateway (process {}, {}) is already serving", first.pid(), first.url());
    assert!(second.log().contains(&note), "{}", second.log());
    wait_until("everything is printed", || second.stdout().contains("Ctrl-C") && first.stdout().contains("Ctrl-C"));
    assert!(first.stdout().contains("expires in 10 minutes. `bowline login-link` prints a new one."));
    assert!(!second.stdout().contains("login-link"), "{}", second.stdout());
    assert!(get(second.address(), "/healthz").contains("200"));
    assert_eq!(second.stop(Signal::TERM), Some(0));
    assert_eq!(std::fs::read(&file).unwrap(), before, "the second gateway changed gateway.json");
}

#[test]
fn r55_an_address_in_use_is_explained() {
    let world = World::new();
    let mut gateway = Gateway::new(&world, &[]);
    let taken = world.run(&["serve", "--listen", &gateway.address().to_string()]);
    let stderr = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert_eq!(taken.status.code(), Some(5));
    assert!(stderr.contains(&format!("process {}", gateway.pid())) && stderr.contains("login-link"), "{stderr}");
    gateway.stop(Signal::TERM);

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = world.run(&["serve", "--listen", &other.local_addr().unwrap().to_string()]);
    let stderr = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(stderr.contains("another program uses it") && stderr.contains("--listen"), "{stderr}");
    let nowhere = world.run(&["serve", "--listen", "192.0.2.1:7433"]);
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("no such address"));
}

#[test]
fn r48_the_login_link_is_not_written_to_the_journal() {
    use std::os::unix::fs::MetadataExt;
    let world = World::new();
    let journal = std::fs::File::create(world.path().join("journal")).unwrap();
    let meta = journal.metadata().unwrap();
    let mut command = world.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("JOURNAL_STREAM", format!("{}:{}", meta.dev(), meta.ino())).stdout(journal).stderr(Stdio::null());
    let mut child = serving::Guard(command.spawn().unwrap());
    let stdout = || std::fs::read_to_string(world.path().join("journal")).unwrap();
    wait_until("everything is printed", || stdout().contains("login-link"));
    assert!(stdout().contains("listening on") && !stdout().contains("#login="), "{}", stdout());
    child.stop(Signal::TERM);
}

#[test]
fn r50_a_public_address_without_tls_gets_a_warning() {
    let world = World::new();
    let warned = |flags: &[&str]| {
        let args: Vec<&str> = ["serve", "--listen", "0.0.0.0:0"].iter().chain(flags).copied().collect();
        let gateway = Gateway::start(&world, world.bowline(&args));
        gateway.log().contains("without TLS")
    };
    assert!(warned(&[]));
    assert!(warned(&["--public-url", "http://box.example"]));
    assert!(warned(&["--public-url", "https://box.example"]), "clients can bypass the proxy that has TLS");
    let certified = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
    let (cert, key) = (world.path().join("cert.pem"), world.path().join("key.pem"));
    std::fs::write(&cert, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    assert!(!warned(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]));
    assert!(!Gateway::new(&world, &[]).log().contains("Warning"), "a warning for a loopback address");
}

#[test]
fn r50_the_public_url_determines_the_link_and_the_allowed_host() {
    let world = World::new();
    let gateway = Gateway::new(&world, &["--public-url", "https://box.example/term/"]);
    assert!(gateway.stdout().contains("log in with https://box.example/term/#login="), "{}", gateway.stdout());
    let get = |path: &str, host: &str| serving::get_with_host(gateway.address(), path, host);
    assert!(get("/term/healthz", "box.example").starts_with("HTTP/1.1 200"));
    assert!(get("/healthz", "box.example").starts_with("HTTP/1.1 200"), "a proxy may strip the path");
    assert!(get("/healthz", "evil.test").contains("bad_host"));
    assert!(world.ok(&["login-link"]).starts_with("https://box.example/term/#login="));
}

#[test]
fn r50_serve_prints_a_qr_code_only_if_a_phone_can_open_the_link() {
    let world = World::new();
    let blocks = |text: &str| text.chars().filter(|c| matches!(c, '█' | '▀' | '▄')).count();
    for (flags, expected) in [(&["--public-url", "https://box.example"][..], true), (&[], false)] {
        let args: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(flags).copied().collect();
        let mut terminal = support::Terminal::run(&world, &args, 120, 60);
        terminal.wait_until("the gateway listens", |terminal| terminal.history().contains("Ctrl-C stops"));
        assert_eq!(blocks(&terminal.history()) > 100, expected, "{}", terminal.history());
        terminal.press(b"\x03");
        assert_eq!(terminal.exit_code(), 0, "Ctrl-C stops it");
    }
}

#[test]
fn r55_config_show_prints_the_source_of_each_value() {
    let world = World::new();
    world.configure(
        "log_size = \"1M\"\n[gateway]\nhosts = [\"a.example\"]\nlisten = \"127.0.0.1:1\"\n\
         [agents.gemini]\nmodes = [\"plan\"]",
    );
    let shown = |args: &[&str]| {
        let mut command = world.bowline(args);
        let output = command.env("BOWLINE_LISTEN", "127.0.0.1:2").env("BOWLINE_LIMITS_BODY", "2M").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let json: Value = serde_json::from_str(&shown(&["config", "show", "--json", "--limit", "streams=3"])).unwrap();
    let key = |path: &str| (json["keys"][path]["value"].clone(), json["keys"][path]["from"].clone());
    assert_eq!(key("log_size"), ("1M".into(), "file".into()));
    assert_eq!(key("gateway.listen"), ("127.0.0.1:2".into(), "environment".into()));
    assert_eq!(key("gateway.limits.body"), ("2M".into(), "environment".into()));
    assert_eq!(key("gateway.limits.streams"), (3.into(), "flag".into()));
    assert_eq!(key("gateway.limits.drain"), ("5s".into(), "default".into()));
    assert_eq!(key("agents.gemini.modes"), (vec!["plan"].into(), "file".into()));
    assert_eq!(key("agents.gemini.allow_bypass"), (false.into(), "default".into()));
    assert_eq!(json["file"], world.path().join("config.toml").to_str().unwrap());
    let text = shown(&["config", "show", "--listen", "127.0.0.1:3"]);
    let line = |path: &str| text.lines().find(|line| line.starts_with(path)).unwrap().to_owned();
    assert!(line("gateway.listen").contains("127.0.0.1:3") && line("gateway.listen").ends_with("flag"), "{text}");
    assert!(line("gateway.limits.body").ends_with("BOWLINE_LIMITS_BODY"), "{text}");
    assert!(
        line("agents.gemini.modes").contains("[\"plan\"]") && line("agents.gemini.modes").ends_with("file"),
        "{text}"
    );
    assert_eq!(shown(&["config", "path"]).trim(), world.path().join("config.toml").to_str().unwrap());
}

#[test]
fn r55_a_wrong_configuration_fails_only_the_verbs_that_need_it() {
    let world = World::new();
    world.start("w", "cat");
    world.configure("[gateway]\nlisen = \"127.0.0.1:1\"");
    for args in [&["serve"][..], &["new", "-d", "cat"], &["config", "show"], &["prune"], &["service", "install"], &[]] {
        let output = world.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("lisen") && stderr.contains("config.toml"), "{stderr}");
    }
    assert!(world.ok(&["ls"]).contains('w'));
    world.ok(&["config", "path"]);
    world.ok(&["kill", "--keep", "w"]);
    let restarted = world.run(&["restart", "w"]);
    assert!(restarted.status.success(), "restart must only warn");
    assert!(String::from_utf8_lossy(&restarted.stderr).contains("Continuing with the default configuration"));
    world.ok(&["kill", "w"]);
    let output = world.bowline(&["serve"]).env("BOWLINE_LIMITS_DRAIN", "soon").output().unwrap();
    world.configure("");
    let again = world.bowline(&["serve"]).env("BOWLINE_LIMITS_DRAIN", "soon").output().unwrap();
    assert_eq!((output.status.code(), again.status.code()), (Some(2), Some(2)));
    assert!(String::from_utf8_lossy(&again.stderr).contains("BOWLINE_LIMITS_DRAIN is invalid"));
}

#[test]
fn r55_wrong_values_are_refused_with_an_explanation() {
    let world = World::new();
    let refused = |args: &[&str], variable: (&str, &str)| {
        let output = world.bowline(args).env(variable.0, variable.1).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?} {variable:?}: {stderr}");
        stderr
    };
    let unset = ("UNUSED", "");
    for (args, variable, expected) in [
        (&["serve", "--log-level", "wran"][..], unset, "error, warn, info, debug, trace or off"),
        (&["serve"], ("RUST_LOG", "wran"), "\"wran\" is not a level"),
        (&["service", "install", "--print"], ("RUST_LOG", "wran"), "\"wran\" is not a level"),
        (&["serve", "--listen", "foo"], unset, "\"foo\" is not an address and port: use ADDRESS:PORT"),
        (&["serve"], ("BOWLINE_LISTEN", "foo"), "\"foo\" is not an address and port: use ADDRESS:PORT"),
        (&["serve", "--public-url", "foo"], unset, "\"foo\" is not a URL: use https://HOST"),
        (&["serve"], ("BOWLINE_PUBLIC_URL", "foo"), "\"foo\" is not a URL: use https://HOST"),
        (&["serve", "--tls-key", "a"], unset, "--tls-cert and --tls-key (tls.cert and tls.key) must be used together"),
        (&["log", "w", "--from", "x"], unset, "\"x\" is not a whole number"),
        (&["new", "-d", "cat"], ("BOWLINE_SCROLLBACK", "x"), "\"x\" is not a whole number"),
        (&["config", "show"], ("BOWLINE_CONFIG", "/nowhere.toml"), "create it, or unset BOWLINE_CONFIG"),
        (&["config", "show"], ("BOWLINE_CONFIG", "/"), "cannot read the configuration file /"),
    ] {
        let stderr = refused(args, variable);
        assert!(stderr.contains(expected), "{args:?} {variable:?}: {stderr}");
    }
}

#[test]
fn r50_an_untrusted_certificate_is_reported_with_a_hint() {
    let world = World::new();
    let (cert, key) = (world.path().join("cert.pem"), world.path().join("key.pem"));
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".into()]).unwrap();
    std::fs::write(&cert, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let gateway = Gateway::new(&world, &["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    let token = world.ok(&["token", "create", "--name", "test", "--scope", "read"]);
    let list = |roots: &std::path::Path| {
        let mut command = world.bowline(&["--server", gateway.url(), "ls"]);
        command.env("BOWLINE_TOKEN", token.trim()).env("SSL_CERT_FILE", roots).output().unwrap()
    };
    let trusted = list(&cert);
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    let other = world.path().join("other.pem");
    std::fs::write(&other, rcgen::generate_simple_self_signed(["127.0.0.1".into()]).unwrap().cert.pem()).unwrap();
    let untrusted = list(&other);
    let stderr = String::from_utf8(untrusted.stderr).unwrap();
    assert_eq!(untrusted.status.code(), Some(6), "{stderr}");
    assert!(stderr.contains("cannot be trusted: its certificate ") && stderr.contains("SSL_CERT_FILE"), "{stderr}");
    let plain = Gateway::new(&world, &[]);
    let mut command = world.bowline(&["--server", &plain.url().replace("http:", "https:"), "ls"]);
    let output = command.env("BOWLINE_TOKEN", token.trim()).env("SSL_CERT_FILE", &cert).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("the server does not use TLS on this port; use http://"), "{stderr}");
    let mut doctor = world.bowline(&["doctor", "--quick", "--url", gateway.url()]);
    let found = String::from_utf8(doctor.env("SSL_CERT_FILE", &other).output().unwrap().stdout).unwrap();
    assert!(found.contains("FAIL  url") && found.contains("SSL_CERT_FILE"), "{found}");
}

#[test]
fn r50_tls_works_and_sighup_reloads_the_certificate() {
    let world = World::new();
    let (cert, key) = (world.path().join("cert.pem"), world.path().join("key.pem"));
    let issue = || {
        let certified = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
        std::fs::write(&cert, certified.cert.pem()).unwrap();
        std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        certified.cert.der().to_vec()
    };
    let first = issue();
    let gateway = Gateway::new(&world, &["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    assert!(gateway.url().starts_with("https://"), "{}", gateway.stdout());
    assert_eq!(serving::certificate(gateway.address()), first);
    let second = issue();
    gateway.signal(Signal::HUP);
    wait_until("the new certificate is served", || serving::certificate(gateway.address()) == second);
    std::fs::write(&key, "no key").unwrap();
    gateway.signal(Signal::HUP);
    wait_until("the error is logged", || gateway.log().contains("the old one stays"));
    assert_eq!(serving::certificate(gateway.address()), second);
    let plain = {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        response
    };
    assert!(!plain.starts_with(b"HTTP/1.1 200"), "the gateway answered without TLS");
    let missing =
        world.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "nowhere.pem", "--tls-key", "nowhere.pem"]);
    let stderr = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(stderr.contains("cannot read the TLS certificate ") && stderr.contains("nowhere.pem: No such"), "{stderr}");
    assert!(!stderr.contains("os error"), "{stderr}");
    assert_eq!(missing.status.code(), Some(2));
}
