//! What a gateway says when it starts: where it is, how to log in, and what is unsafe about it.

use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use bowline_gateway::auth::{self, Auth, CODE_LIFE};
use bowline_gateway::settings::Settings;

use super::forward;
use crate::{qr, units};

/// By which names the gateway is reached.
pub(super) struct Urls {
    /// The socket.
    pub(super) address: SocketAddr,
    /// The socket, as a URL.
    socket: String,
    /// What browsers call.
    pub(super) link_base: String,
    /// Somebody on the way can read what is typed.
    in_the_clear: bool,
}

impl Urls {
    pub(super) fn new(settings: &Settings, address: SocketAddr) -> Urls {
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let outside = !address.ip().is_loopback();
        let public = settings.public_url.as_ref();
        let link_base = match public {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!(
                "{scheme}://{}{}",
                SocketAddr::new(own_address(address.ip()), address.port()),
                settings.base_path
            ),
        };
        Urls {
            address,
            socket: format!("{scheme}://{address}"),
            link_base,
            // Also behind a proxy with TLS: whoever calls the address itself gets past it.
            in_the_clear: outside && settings.tls.is_none(),
        }
    }
}

/// Says everything, what is unsafe first. The link goes to standard output, where its owner looks, and to no log.
pub(super) fn announce(urls: &Urls, settings: &Settings, auth: &Auth) -> anyhow::Result<()> {
    warn(urls, settings);
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {}", urls.socket)?;
    if is_journal() {
        writeln!(out, "`bowline login-link` prints a link that logs a browser in")?;
    } else {
        let link = auth::login_link(&urls.link_base, &auth.new_code()?.code);
        writeln!(out, "log in with {link}")?;
        if out.is_terminal()
            && let Some(code) = qr::draw(&link)?
        {
            writeln!(out, "\n{code}")?;
        }
        let life = units::show_duration(CODE_LIFE);
        writeln!(
            out,
            "The link works once, for {life}; `bowline login-link` prints another. Ctrl-C stops; sessions go on."
        )?;
    }
    out.flush()?;
    Ok(())
}

fn warn(urls: &Urls, settings: &Settings) {
    if urls.in_the_clear {
        eprintln!(
            "Warning: {} is open to other machines without TLS: whoever is on the way reads what you type.\n\
             Give --tls-cert and --tls-key, or listen on 127.0.0.1 behind ssh -L, Tailscale, Caddy or nginx (see \"Reaching \
             it\" in the README).",
            urls.address
        );
    }
    if settings.proxies.iter().any(|network| network.prefix_len() == 0) {
        eprintln!(
            "Warning: `proxies` believes X-Forwarded-* of everybody, so anybody can pretend to come from anywhere."
        );
    }
    if let Some(risk) = forward::risk(settings) {
        eprintln!("Warning: {risk}.\nWhat to do, {}.", forward::REMEDY);
    }
}

/// Whether standard output goes to systemd's journal, which keeps it: no place for a link.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stdout) = rustix::fs::fstat(io::stdout()) else { return false };
    stream == format!("{}:{}", stdout.st_dev, stdout.st_ino)
}

/// An address that a phone could call, where all of this machine's are listened on.
fn own_address(listen: IpAddr) -> IpAddr {
    let (any, far): (IpAddr, IpAddr) = match listen {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
        }
        ip => return ip,
    };
    // Connecting a datagram socket sends nothing; it only chooses the address that would be sent from.
    let chosen = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((far, 9))?;
        socket.local_addr()
    });
    let loopback = || if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    chosen.map_or_else(|_| loopback(), |address| address.ip())
}
