//! How a request reached us: who is calling from where, by which name, and whether that name may be ours.
//!
//! A page of somebody else's can make a browser call us, under a name that it points here (DNS rebinding) or from its own
//! origin. So the `Host` must be one of ours, and an `Origin`, if there is one, exactly the origin that was called.

use bowline_proto::problem::Code;
use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::uri::Authority;
use url::Url;

use crate::problem::Problem;
use crate::settings::Settings;

/// The two ends of the socket that a request came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// How a request reached us, checked.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// The caller's address, past trusted proxies.
    pub(crate) client: IpAddr,
    /// The last hop is a proxy that we trust.
    pub(crate) trusted: bool,
    /// The caller's side is encrypted.
    pub(crate) secure: bool,
    /// The path that all of ours begin with, as the caller sees it: empty, or `/some/where`.
    pub(crate) prefix: String,
}

impl Reach {
    /// Works it out and checks it: first the host, then the origin.
    pub(crate) fn check(settings: &Settings, ends: Ends, headers: &HeaderMap) -> Result<Reach, Problem> {
        let peer = ends.peer.ip().to_canonical();
        let trusted = settings.proxies.iter().any(|network| network.contains(&peer));
        let forwarded = |name: &str| if trusted { last(headers, name) } else { None };
        let host = forwarded("x-forwarded-host").or_else(|| text(headers, "host")).unwrap_or_default();
        let proto = forwarded("x-forwarded-proto");
        let secure = proto.map_or(settings.tls.is_some(), |proto| proto.eq_ignore_ascii_case("https"));
        check_host(settings, ends.local, host)?;
        if let Some(origin) = headers.get(http::header::ORIGIN) {
            let called = format!("{}://{host}", if secure { "https" } else { "http" });
            check_origin(settings, &called, origin.to_str().unwrap_or_default())?;
        }
        let prefix = forwarded("x-forwarded-prefix").filter(|prefix| is_path(prefix));
        let prefix = prefix.unwrap_or(&settings.base_path).trim_end_matches('/').to_owned();
        let client = if trusted { client(settings, headers).unwrap_or(peer) } else { peer };
        // A proxy that says nothing of itself is still known by the name that was called, or by the page that calls.
        let origin = headers.get(http::header::ORIGIN).and_then(|origin| origin.to_str().ok());
        let is_called = |url: &Url| {
            is_host_of(url, host) || origin.is_some_and(|origin| url.origin().ascii_serialization() == origin)
        };
        let by_name = settings.public_url.as_ref().is_some_and(|url| url.scheme() == "https" && is_called(url));
        Ok(Reach { client, trusted, secure: secure || by_name, prefix })
    }
}

/// The nearest address of `X-Forwarded-For` that is not a proxy of ours: whatever stands before it, anybody can write.
/// None where that is not an address.
fn client(settings: &Settings, headers: &HeaderMap) -> Option<IpAddr> {
    let values: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().map(|value| value.to_str().unwrap_or("?")).collect();
    let mut nearest = None;
    for hop in values.iter().flat_map(|value| value.split(',')).rev().map(str::trim) {
        let address = hop.parse().or_else(|_| hop.parse::<SocketAddr>().map(|socket| socket.ip())).ok()?;
        let address = IpAddr::to_canonical(&address);
        nearest = Some(address);
        if !settings.proxies.iter().any(|network| network.contains(&address)) {
            break;
        }
    }
    nearest
}

/// Whether a `Host` header names this URL's host.
fn is_host_of(url: &Url, host: &str) -> bool {
    let called = host.parse::<Authority>();
    called.is_ok_and(|called| url.host_str().is_some_and(|name| name.eq_ignore_ascii_case(called.host())))
}

fn check_host(settings: &Settings, local: SocketAddr, host: &str) -> Result<(), Problem> {
    let refused = || {
        let detail = format!(
            "{host:?} is not a name of this gateway; allow it with --public-url or `hosts` in the configuration"
        );
        Problem::new(Code::BadHost, detail)
    };
    let authority: Authority = host.parse().map_err(|_| refused())?;
    if host.contains('@') {
        return Err(refused());
    }
    let name = authority.host();
    // An address cannot be pointed elsewhere, but a page can be served under one that is not ours.
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let allowed = match literal {
        Ok(address) => {
            address.is_loopback() || address.to_canonical() == local.ip().to_canonical() || listed(settings, name)
        }
        Err(_) => name.eq_ignore_ascii_case("localhost") || listed(settings, name),
    };
    if allowed { Ok(()) } else { Err(refused()) }
}

/// Whether the public URL or the configuration has this name.
fn listed(settings: &Settings, name: &str) -> bool {
    let public = settings.public_url.as_ref().and_then(Url::host_str);
    public.into_iter().chain(settings.hosts.iter().map(String::as_str)).any(|known| known.eq_ignore_ascii_case(name))
}

/// Exactly the origin that was called, or the public one.
fn check_origin(settings: &Settings, called: &str, origin: &str) -> Result<(), Problem> {
    let same = |ours: &str| Url::parse(ours).is_ok_and(|ours| ours.origin().ascii_serialization() == origin);
    let public = settings.public_url.as_ref().is_some_and(|public| public.origin().ascii_serialization() == origin);
    if public || same(called) {
        return Ok(());
    }
    let detail = format!("a page of {origin:?} may not call this gateway; if it is yours, give it with --public-url");
    Err(Problem::new(Code::BadOrigin, detail))
}

/// What the nearest proxy says: proxies in a row may each add a value, and what stands before the last, anybody can write.
fn last<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    values.rsplit(',').map(str::trim).next().filter(|value| !value.is_empty())
}

/// A header as text, trimmed; of several, the first.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
}

/// A plain absolute path: it ends up in cookies and in the page.
pub fn is_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.is_empty() || (path.starts_with('/') && !path.contains("//") && path.bytes().all(plain))
}
