//! A whole attach through a gateway of our own, on this machine alone; and whether it keeps strangers out.

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

use super::probe::Trial;
use super::report::Report;
use crate::config::Config;

/// How long a token for the doctor lives, if the doctor dies.
const TOKEN_LIFE: Duration = Duration::from_secs(300);

/// The doctor looks and takes nothing away, least of all by the limits of a configuration that it could not read.
const KEEP_ALL: Retention = Retention { max_age: Duration::MAX, max_bytes: u64::MAX };

/// A token that is revoked when dropped.
pub(super) struct Token {
    auth: Auth,
    token: TokenReply,
}

impl Token {
    pub(super) fn new(home: &Home) -> anyhow::Result<Token> {
        let auth = Auth::open(home)?;
        let token = auth.create_token("doctor", TokenScope::Write, Some(TOKEN_LIFE))?;
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
        Err(error) => return report.fail("attach", error, "the machine has no room for another thread"),
    };
    let outcome = runtime.block_on(serve(home, config));
    match outcome {
        Err(error) => {
            report.fail("attach", format_args!("{error:#}"), "see the findings above; if there are none, it is a bug")
        }
        Ok((address, stop)) => {
            attach(report, home, address);
            strangers(report, address);
            stop.cancel();
        }
    }
    runtime.shutdown_timeout(Duration::from_secs(2));
}

/// Starts a gateway that nobody else knows of.
async fn serve(home: &Home, config: &Config) -> anyhow::Result<(SocketAddr, tokio_util::sync::CancellationToken)> {
    let configured = config.settings(Launcher::this_program());
    let sessions = SessionDefaults { retention: KEEP_ALL, ..configured.sessions };
    let settings = Settings {
        hosts: configured.hosts,
        open_metrics: configured.open_metrics,
        limits: configured.limits,
        ..Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)), sessions, configured.launcher)
    };
    let gateway = Gateway::bind(settings, home.clone(), Auth::open(home)?, None).await?;
    let found = (gateway.address(), gateway.stop());
    tokio::spawn(gateway.serve());
    Ok(found)
}

/// Makes a session, attaches, sees what it prints, ends it.
fn attach(report: &mut Report, home: &Home, address: SocketAddr) {
    let tried = || -> anyhow::Result<()> {
        let token = Token::new(home)?;
        let gateway = remote::Gateway::new(format!("http://{address}").parse()?, token.reveal())?;
        let trial = Trial::start(&gateway).map_err(anyhow::Error::msg)?;
        trial.attach().map_err(anyhow::Error::msg)?;
        Ok(())
    };
    match tried() {
        Ok(()) => report.ok("attach", "a session was made, attached to over WebSocket, and ended"),
        Err(error) => {
            let remedy = "try `bowline new --detach -- sleep 60` and `bowline ls`; what fails there says more";
            report.fail("attach", format_args!("{error:#}"), remedy);
        }
    }
}

/// A page of somebody else's must get nothing, whether by its name or by its origin.
fn strangers(report: &mut Report, address: SocketAddr) {
    let own = address.to_string();
    let refused = [
        ("Host", "evil.test", None, problem::Code::BadHost),
        ("Origin", &*own, Some("http://evil.test"), problem::Code::BadOrigin),
    ];
    for (name, host, origin, code) in refused {
        match ask(address, host, origin) {
            Ok(head) if head.starts_with("HTTP/1.1 403") && head.contains(code.name()) => {
                report.ok(name, format_args!("another {name} is refused"));
            }
            Ok(head) => {
                let head = head.lines().next().unwrap_or_default().to_owned();
                report.fail(
                    name,
                    format_args!("another {name} was answered with {head:?}"),
                    "do not run this gateway; report it",
                );
            }
            Err(error) => report.fail(name, error, "something on this machine gets between; look for a local firewall"),
        }
    }
}

fn ask(address: SocketAddr, host: &str, origin: Option<&str>) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(64 << 10).read_to_string(&mut answer)?;
    Ok(answer)
}
