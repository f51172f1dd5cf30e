//! Checks this machine: limits, clock, login shell, the service, and the running gateway.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use bowline_gateway::WebApp;
use bowline_gateway::descriptors::{self, OPEN_FILES_REMEDY};
use bowline_gateway::running::RunningGateway;
use bowline_gateway::settings::Limits;
use bowline_host::home::Home;
use rustix::process::{Resource, getrlimit};

use super::report::Report;
use crate::service::{self, systemd};

/// How long to compare the wall clock with the monotonic clock.
const CLOCK_INTERVAL: Duration = Duration::from_millis(200);
/// How much the two may differ in that time.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(100);
/// 2025-01-01. A clock before this date is wrong, because Bowline did not exist yet.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);

pub(super) fn check(report: &mut Report, limits: &Limits) {
    check_open_files(report, limits);
    check_clock(report);
    check_login_shell(report);
    check_lingering(report);
    check_web_app(report);
}

/// Checks that the binary contains the web app.
fn check_web_app(report: &mut Report) {
    const NAME: &str = "web app";
    match WebApp::embedded() {
        WebApp::Placeholder => {
            let remedy = "build with `cargo build --release` where Node 20.19 or newer is installed";
            report.warn(NAME, "not included: browsers see a page that explains how to build it", remedy);
        }
        inside => report.ok(NAME, inside.as_str()),
    }
}

/// Checks the hard limit, because the gateway raises its limit to it.
fn check_open_files(report: &mut Report, limits: &Limits) {
    let most = getrlimit(Resource::Nofile).maximum;
    match (descriptors::open_files_warning(most, limits), most) {
        (Some(few), _) => report.warn("open files", few, OPEN_FILES_REMEDY),
        (None, Some(most)) => report.ok("open files", format_args!("up to {most}")),
        (None, None) => report.ok("open files", "no limit"),
    }
}

/// Checks that the wall clock is plausible and steady, because login links and tokens expire by it.
fn check_clock(report: &mut Report) {
    let (monotonic, wall) = (Instant::now(), SystemTime::now());
    std::thread::sleep(CLOCK_INTERVAL);
    let (elapsed, now) = (monotonic.elapsed(), SystemTime::now());
    let remedy = "set the clock, and keep it synchronized (systemd-timesyncd, chrony)";
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    match now.duration_since(wall) {
        _ if since_epoch < EARLIEST => report.fail("clock", "years behind", remedy),
        Ok(passed) if passed.abs_diff(elapsed) < CLOCK_TOLERANCE => report.ok("clock", "has not jumped"),
        _ => report.warn("clock", "it was just changed, or is not steady", remedy),
    }
}

/// Checks that the login shell prints its environment, which sessions started by the gateway get.
fn check_login_shell(report: &mut Report) {
    const NAME: &str = "login shell";
    let remedy = "run it with `-l -c env` and check its startup files; until then, sessions started by the gateway get the \
                  gateway's environment";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let environment = match runtime {
        Ok(runtime) => runtime.block_on(bowline_gateway::login_environment()),
        Err(error) => return report.warn(NAME, error, remedy),
    };
    match environment {
        Ok(variables) if variables.iter().any(|(name, _)| name == "PATH") => {
            report.ok(NAME, "its environment was read")
        }
        Ok(_) => report.warn(NAME, "its environment has no PATH", remedy),
        Err(shell) => report.warn(NAME, format_args!("cannot read the environment of {}", shell.display()), remedy),
    }
}

/// Checks that the user lingers. Otherwise systemd ends the service and all sessions at logout.
fn check_lingering(report: &mut Report) {
    let installed = service::unit_path().is_ok_and(|path| path.exists());
    if !installed || !systemd::runs() {
        return;
    }
    match systemd::lingers() {
        Some(true) => report.ok("lingering", "on: sessions keep running when you log out"),
        _ => report.warn(
            "lingering",
            "off: systemd ends your sessions when you log out",
            format_args!("run: sudo loginctl enable-linger {}", systemd::user()),
        ),
    }
}

/// Checks that the running gateway, if there is one, answers.
pub(super) fn check_running(report: &mut Report, home: &Home) {
    let Some(running) = RunningGateway::find(home) else {
        return report.ok("gateway", "not running; `bowline serve` starts it");
    };
    let gateway = format!("process {} at {}", running.pid, running.url);
    match check_health(&running) {
        Ok(()) => report.ok("gateway", gateway),
        Err(cause) => {
            let remedy = format!("restart it: kill {}, then `bowline serve`; sessions keep running", running.pid);
            report.fail("gateway", format_args!("{gateway} does not answer: {cause}"), remedy);
        }
    }
}

/// Checks that the gateway accepts connections and, without TLS, that it is healthy.
fn check_health(running: &RunningGateway) -> Result<(), String> {
    const TIMEOUT: Duration = Duration::from_secs(5);
    let mut address: SocketAddr =
        running.listen.parse().map_err(|_| format!("{} is not an address", running.listen))?;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    let to_text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(to_text)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(to_text)?;
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").map_err(to_text)?;
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) if head.starts_with(b"HTTP/1.1 200") => Ok(()),
        Ok(()) if head.starts_with(b"HTTP") => Err(String::from_utf8_lossy(&head).into_owned()),
        // A gateway with TLS closes a plain connection, so it is running.
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err("no response within 5 seconds".into()),
        Err(_) => Ok(()),
    }
}
