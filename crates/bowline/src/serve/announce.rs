//! The messages of a starting gateway: warnings, its address, and a login link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use bowline_gateway::auth::{self, Auth};
use bowline_gateway::settings::Settings;
use bowline_host::home::Home;

use super::forward;
use crate::{login_link, print, qr};

/// The address of the gateway, and the URLs made from it.
pub(super) struct Urls {
    pub(super) address: SocketAddr,
    /// The address as a URL.
    listen: String,
    /// The URL that browsers use; login links start with it.
    pub(super) link_base: String,
    /// Other machines can connect without TLS.
    is_unencrypted: bool,
}

impl Urls {
    pub(super) fn new(settings: &Settings, address: SocketAddr) -> Urls {
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let is_public = !address.ip().is_loopback();
        let public = settings.public_url.as_ref();
        let link_base = match public {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!(
                "{scheme}://{}{}",
                SocketAddr::new(reachable_address(address.ip()), address.port()),
                settings.base_path
            ),
        };
        Urls {
            address,
            listen: format!("{scheme}://{address}"),
            link_base,
            // Even behind a proxy with TLS, clients can bypass the proxy and connect to this address.
            is_unencrypted: is_public && settings.tls.is_none(),
        }
    }
}

/// Prints warnings, the address, and a login link. The link goes to standard output, never to a log. `is_registered` says
/// whether `bowline login-link` finds this gateway.
pub(super) fn announce(
    urls: &Urls,
    settings: &Settings,
    home: &Home,
    auth: &Auth,
    is_registered: bool,
) -> anyhow::Result<()> {
    warn(urls, settings);
    if let Err(error) = home.check_writable() {
        eprintln!(
            "Warning: {error}.\nSessions and tokens that exist can be used, but none can be started or created until it can \
             be written again."
        );
    }
    println!("listening on {}", urls.listen);
    if is_journal() {
        if is_registered {
            println!("`bowline login-link` prints a link to log in a browser");
        }
    } else {
        match auth.new_code() {
            Ok(created) => {
                let link = auth::login_link(&urls.link_base, &created.code);
                println!("log in with {link}");
                if print::is_terminal()
                    && let Some(code) = qr::draw(&link)?
                {
                    println!("\n{code}");
                }
                let another = if is_registered { " `bowline login-link` prints a new one." } else { "" };
                println!("{}{another}", login_link::lifetime_note());
            }
            Err(error) => println!("no login link: {error}\n`bowline login-link` prints one once that is fixed."),
        }
        println!("Ctrl-C stops the gateway; sessions keep running.");
    }
    Ok(())
}

fn warn(urls: &Urls, settings: &Settings) {
    if urls.is_unencrypted {
        eprintln!(
            "Warning: other machines can connect to {} without TLS; others on the network can read everything you type.\n\
             Use --tls-cert and --tls-key, or listen on 127.0.0.1 behind ssh -L, Tailscale, Caddy or nginx (see \
             docs/REACHING.md).",
            urls.address
        );
    }
    if settings.proxies.iter().any(|network| network.prefix_len() == 0) {
        eprintln!(
            "Warning: `proxies` trusts the X-Forwarded-* headers of every client, so any client can fake its address.\n\
             List only the addresses of your proxies."
        );
    }
    if let Some(risk) = forward::risk(settings) {
        eprintln!("Warning: {risk}.\nTo fix this: {}.", forward::REMEDY);
    }
}

/// Whether standard output goes to systemd's journal, which must not store a login link.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stdout) = rustix::fs::fstat(rustix::stdio::stdout()) else { return false };
    stream == format!("{}:{}", stdout.st_dev, stdout.st_ino)
}

/// An address for links: `listen`, or, if that is all addresses, the one that other machines most likely reach.
fn reachable_address(listen: IpAddr) -> IpAddr {
    let (any, far): (IpAddr, IpAddr) = match listen {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
        }
        ip => return ip,
    };
    // Connecting a UDP socket sends nothing; it only selects the source address.
    let chosen = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((far, 9))?;
        socket.local_addr()
    });
    let loopback = || if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    chosen.map_or_else(|_| loopback(), |address| address.ip())
}
