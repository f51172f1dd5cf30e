//! Attaches through a temporary gateway on the loopback address, and checks that it refuses foreign requests.

use bowline_proto::problem;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bowline_client::remote;
use bowline_gateway::Gateway;
use bowline_gateway::auth::Auth;
use bowline_gateway::settings::{SessionDefaults, Settings};
use bowline_host::home::Home;
use bowline_host::launch::Launcher;
use bowline_host::remove::Retention;
use bowline_proto::api::{TokenReply, TokenScope};

use super::probe::TestSession;
use super::report::Report;
use crate::config::Config;

/// When the token expires if the doctor is killed and cannot revoke it.
const TOKEN_TTL: Duration = Duration::from_secs(300);

/// A token that is revoked when dropped.
pub(super) struct Token {
    auth: Auth,
    token: TokenReply,
}

impl Token {
    pub(super) fn new(home: &Home) -> anyhow::Result<Token> {
        let auth = Auth::open(home)?;
        let token = auth.create_token("doctor", TokenScope::Write, Some(TOKEN_TTL))?;
        Ok(Token { auth, token })
    }

    pub(super) fn reveal(&self) -> &str {
        self.token.token.reveal()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let _ = self.auth.revoke(&self.token.id);
    }
}

pub(super) fn check(report: &mut Report, home: &Home, config: &Config) {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.fail("attach", error, "the system cannot start another thread; check its limits"),
    };
    match runtime.block_on(serve(home, config)) {
        Err(error) => {
            let remedy = "fix the problems above; if there are none, this is a bug: please report it";
            report.fail("attach", format_args!("{error:#}"), remedy)
        }
        Ok((address, stop)) => {
            check_attach(report, home, address);
            check_foreign_requests(report, address);
            stop.cancel();
        }
    }
    runtime.shutdown_timeout(Duration::from_secs(2));
}

/// Starts a gateway on a free port, without registering it in `gateway.json`.
async fn serve(home: &Home, config: &Config) -> anyhow::Result<(SocketAddr, tokio_util::sync::CancellationToken)> {
    let configured = config.settings(Launcher::this_program())?;
    // The doctor must not change anything, and the configuration may be unreadable.
    let sessions = SessionDefaults { retention: Retention::KEEP_ALL, ..configured.sessions };
    let settings = Settings {
        hosts: configured.hosts,
        open_metrics: configured.open_metrics,
        limits: configured.limits,
        ..Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)), sessions, configured.launcher)
    };
    let gateway = Gateway::bind(settings, home.clone(), Auth::open(home)?, None).await?;
    let handles = (gateway.address(), gateway.stop());
    tokio::spawn(gateway.serve());
    Ok(handles)
}

/// Starts a session, attaches to it, waits for its output, and ends it.
fn check_attach(report: &mut Report, home: &Home, address: SocketAddr) {
    let attach = || -> anyhow::Result<()> {
        let token = Token::new(home)?;
        let gateway = remote::Gateway::new(format!("http://{address}").parse()?, token.reveal())?;
        let session = TestSession::start(&gateway)?;
        session.attach().map_err(anyhow::Error::msg)?;
        Ok(())
    };
    match attach() {
        Ok(()) => report.ok("attach", "started a session, attached to it over WebSocket, and ended it"),
        Err(error) => {
            let remedy = "try `bowline new --detach -- sleep 60` and `bowline ls`; their errors say more";
            report.fail("attach", format_args!("{error:#}"), remedy);
        }
    }
}

/// Checks that the gateway refuses requests with a foreign Host or Origin header.
fn check_foreign_requests(report: &mut Report, address: SocketAddr) {
    let own = address.to_string();
    let refused = [
        ("Host", "evil.test", None, problem::Code::BadHost),
        ("Origin", &*own, Some("http://evil.test"), problem::Code::BadOrigin),
    ];
    for (name, host, origin, code) in refused {
        match request(address, host, origin) {
            Ok(response) if response.starts_with("HTTP/1.1 403") && response.contains(code.name()) => {
                report.ok(name, format_args!("a request with a foreign {name} header is refused"));
            }
            Ok(response) => {
                let status = response.lines().next().unwrap_or_default();
                let message = format!("a request with a foreign {name} header got the response {status:?}");
                report.fail(name, message, "do not run this gateway, and report the bug");
            }
            Err(error) => report.fail(name, error, "check for a firewall on this machine that blocks connections"),
        }
    }
}

/// Sends a request for `/healthz` and returns the response.
fn request(address: SocketAddr, host: &str, origin: Option<&str>) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.take(64 << 10).read_to_string(&mut response)?;
    Ok(response)
}
