//! This machine: limits, clocks, the login shell, the service, the gateway that runs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use bowline_gateway::WebApp;
use bowline_gateway::descriptors::{self, MORE_OPEN_FILES};
use bowline_gateway::running::Running;
use bowline_gateway::settings::Limits;
use bowline_host::home::Home;
use rustix::process::{Resource, getrlimit};

use super::report::Report;
use crate::service::{self, systemd};

/// How long the clocks are compared.
const COMPARED: Duration = Duration::from_millis(200);
/// How far apart they may be after that.
const APART: Duration = Duration::from_millis(100);
/// 2025-01-01: this program did not exist before.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);

pub(super) fn check(report: &mut Report, limits: &Limits) {
    open_files(report, limits);
    clock(report);
    login_shell(report);
    linger(report);
    web_app(report);
}

/// Which web app is in this binary.
fn web_app(report: &mut Report) {
    const NAME: &str = "web app";
    match WebApp::inside() {
        WebApp::Placeholder => {
            let remedy = "build with `cargo build --release` where Node 20.19 or newer is installed";
            report.warn(NAME, "placeholder: browsers see a page that says how to build it", remedy);
        }
        inside => report.ok(NAME, inside.as_str()),
    }
}

/// The hard limit, to which a gateway raises its own.
fn open_files(report: &mut Report, limits: &Limits) {
    let most = getrlimit(Resource::Nofile).maximum;
    match (descriptors::too_few(most, limits), most) {
        (Some(few), _) => report.warn("open files", few, MORE_OPEN_FILES),
        (None, Some(most)) => report.ok("open files", format_args!("up to {most}")),
        (None, None) => report.ok("open files", "no limit"),
    }
}

/// Links and tokens end by the clock on the wall; timers go by the other.
fn clock(report: &mut Report) {
    let (steady, wall) = (Instant::now(), SystemTime::now());
    std::thread::sleep(COMPARED);
    let (steady, now) = (steady.elapsed(), SystemTime::now());
    let remedy = "set the clock, and let it be kept right (systemd-timesyncd, chrony)";
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    match now.duration_since(wall) {
        _ if since < EARLIEST => report.fail("clock", "it is years behind", remedy),
        Ok(passed) if passed.abs_diff(steady) < APART => report.ok("clock", "goes evenly"),
        _ => report.warn("clock", "it was set just now, or does not go evenly", remedy),
    }
}

/// What sessions get that the gateway starts.
fn login_shell(report: &mut Report) {
    const NAME: &str = "login shell";
    let remedy =
        "see what its start files do: run it with -l -c env; sessions get the gateway's own environment meanwhile";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let told = match runtime {
        Ok(runtime) => runtime.block_on(bowline_gateway::login_environment()),
        Err(error) => return report.warn(NAME, error, remedy),
    };
    match told {
        Ok(told) if told.iter().any(|(name, _)| name == "PATH") => report.ok(NAME, "tells its environment"),
        Ok(_) => report.warn(NAME, "has no PATH", remedy),
        Err(shell) => report.warn(NAME, format_args!("{} does not tell its environment", shell.display()), remedy),
    }
}

/// A service of a user who does not linger ends at logout, and everything else of theirs, too.
fn linger(report: &mut Report) {
    let installed = service::unit_path().is_ok_and(|path| path.exists());
    if !installed || !systemd::runs() {
        return;
    }
    match systemd::lingers() {
        Some(true) => report.ok("lingering", "on: sessions go on when you log out"),
        _ => report.warn(
            "lingering",
            "off: systemd ends your sessions when you log out",
            format_args!("sudo loginctl enable-linger {}", systemd::user()),
        ),
    }
}

/// The gateway that is said to run must answer.
pub(super) fn check_running(report: &mut Report, home: &Home) {
    let Some(running) = Running::find(home) else {
        return report.ok("gateway", "none runs; `bowline serve` starts one");
    };
    let who = format!("process {} at {}", running.pid, running.url);
    match answers(&running) {
        Ok(()) => report.ok("gateway", who),
        Err(why) => {
            let remedy = format!("restart it; sessions go on: kill {}, then `bowline serve`", running.pid);
            report.fail("gateway", format_args!("{who} does not answer: {why}"), remedy);
        }
    }
}

/// Whether something takes connections there and, without TLS, says that it is well.
fn answers(running: &Running) -> Result<(), String> {
    const WITHIN: Duration = Duration::from_secs(5);
    let mut address: SocketAddr = running.listen.parse().map_err(|_| format!("{} is no address", running.listen))?;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    let words = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, WITHIN).map_err(words)?;
    stream.set_read_timeout(Some(WITHIN)).map_err(words)?;
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").map_err(words)?;
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) if head.starts_with(b"HTTP/1.1 200") => Ok(()),
        Ok(()) if head.starts_with(b"HTTP") => Err(String::from_utf8_lossy(&head).into_owned()),
        // One that speaks TLS hangs up on plain words, and that is an answer.
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err("no word in 5 seconds".into()),
        Err(_) => Ok(()),
    }
}
