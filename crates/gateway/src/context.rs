//! Where a request comes from, past trusted proxies, and whether its `Host` and `Origin` are allowed.
//!
//! Another site's page can make a browser call the gateway, from its own origin or through a host name that it
//! points here (DNS rebinding). So the `Host` must be one of the gateway's names, and an `Origin`, if present,
//! must be exactly the called origin or the public one.
//!
//! A rebound page can also send `X-Forwarded-*` and user headers, and on a proxy's machine it has the proxy's address.
//! It cannot choose its `Host`, so that is checked even if there is an `X-Forwarded-Host`.

use bowline_proto::problem::Code;
use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;
use http::{HeaderMap, HeaderName, Uri, header};
use subtle::ConstantTimeEq;
use url::Url;

use crate::problem::Problem;
use crate::settings::{ProxySecret, Settings};

/// The addresses of the socket that a request arrived on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketAddrs {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// What handlers know about where a request comes from. Its `Host` and `Origin` have been checked.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    /// The client's address, past trusted proxies.
    pub(crate) client: IpAddr,
    /// Whether the request comes from a trusted proxy.
    pub(crate) trusted: bool,
    /// Whether the client's connection is encrypted, as far as is known.
    pub(crate) secure: bool,
    /// The prefix of all paths as the client sees them: empty, or `/some/where`.
    pub(crate) prefix: String,
}

impl RequestContext {
    /// Checks first the `Host`, then the `Origin`. The `uri` is the request's target.
    pub(crate) fn check(
        settings: &Settings,
        addrs: SocketAddrs,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<RequestContext, Problem> {
        let peer = addrs.peer.ip().to_canonical();
        let secret = settings.forward_auth.as_ref().and_then(|forward| forward.secret.as_ref());
        let trusted = settings.proxies.iter().any(|network| network.contains(&peer))
            && secret.is_none_or(|secret| is_sent(secret, headers));
        let forwarded = |name: &str| if trusted { last(headers, name) } else { None };
        let received = received_host(uri, headers)?;
        check_host(settings, addrs.local, received)?;
        let host = forwarded("x-forwarded-host").unwrap_or(received);
        check_host(settings, addrs.local, host)?;
        let origin = single(headers, header::ORIGIN).map_err(|detail| Problem::new(Code::BadOrigin, detail))?;
        // A proxy may send no forwarding headers. Then the Host or the Origin shows that the https URL was called.
        let matches = |url: &Url| is_host_of(url, host) || origin == Some(&*url.origin().ascii_serialization());
        let public_https = settings.public_url.as_ref().is_some_and(|url| url.scheme() == "https" && matches(url));
        let proto = forwarded("x-forwarded-proto");
        let secure = public_https || proto.map_or(settings.tls.is_some(), |proto| proto.eq_ignore_ascii_case("https"));
        if let Some(origin) = origin {
            let called = format!("{}://{host}", if secure { "https" } else { "http" });
            check_origin(settings, &called, origin)?;
        }
        let prefix = forwarded("x-forwarded-prefix").filter(|prefix| is_url_path(prefix));
        let prefix = prefix.unwrap_or(&settings.base_path).trim_end_matches('/').to_owned();
        let client = if trusted { client(settings, headers).unwrap_or(peer) } else { peer };
        Ok(RequestContext { client, trusted, secure, prefix })
    }
}

/// The `Host` of the request as it arrived here. Proxies and the gateway could disagree about which of two names counts.
fn received_host<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
    // RFC 9112, section 3.2, asks for the status 400.
    let host = single(headers, header::HOST).map_err(|detail| Problem::new(Code::BadRequest, detail))?;
    let host = host.unwrap_or_default().trim();
    match uri.authority() {
        Some(target) if !target.as_str().eq_ignore_ascii_case(host) => {
            let detail =
                format!("the request's target names the host {:?}, and its Host header {host:?}", target.as_str());
            Err(Problem::new(Code::BadHost, detail))
        }
        _ => Ok(host),
    }
}

/// The value of a header that a request may have only once; empty if it is not text. On `Err`, the reason to refuse.
fn single(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, String> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or_default());
    if values.next().is_some() { Err(format!("the request has more than one {name} header")) } else { Ok(first) }
}

/// Whether the request has the proxy's secret, exactly once.
fn is_sent(secret: &ProxySecret, headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(&secret.header).iter();
    let (first, second) = (values.next(), values.next());
    let matches = |sent: &[u8]| sent.ct_eq(secret.secret.reveal().as_bytes()).into();
    second.is_none() && first.is_some_and(|sent| matches(sent.as_bytes()))
}

/// The nearest address in `X-Forwarded-For` that is not a trusted proxy, because clients can forge everything
/// before it. `None` if an entry up to there is not an address.
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
            "{host:?} is not a host name of this gateway; allow it with --public-url or `hosts` in the configuration"
        );
        Problem::new(Code::BadHost, detail)
    };
    let authority: Authority = host.parse().map_err(|_| refused())?;
    if host.contains('@') {
        return Err(refused());
    }
    let name = authority.host();
    // Addresses are safe from DNS rebinding, but another site's page can be served under an address that is not
    // ours.
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let allowed = match literal {
        Ok(address) => {
            address.is_loopback() || address.to_canonical() == local.ip().to_canonical() || is_listed(settings, name)
        }
        Err(_) => name.eq_ignore_ascii_case("localhost") || is_listed(settings, name),
    };
    if allowed { Ok(()) } else { Err(refused()) }
}

/// Whether this is the public URL's host or one of the configured hosts.
fn is_listed(settings: &Settings, name: &str) -> bool {
    let public = settings.public_url.as_ref().and_then(Url::host_str);
    public.into_iter().chain(settings.hosts.iter().map(String::as_str)).any(|known| known.eq_ignore_ascii_case(name))
}

/// Allows exactly the called origin and the public one.
fn check_origin(settings: &Settings, called: &str, origin: &str) -> Result<(), Problem> {
    let same = |ours: &str| Url::parse(ours).is_ok_and(|ours| ours.origin().ascii_serialization() == origin);
    let public = settings.public_url.as_ref().is_some_and(|public| public.origin().ascii_serialization() == origin);
    if public || same(called) {
        return Ok(());
    }
    let detail = format!(
        "pages from {origin:?} may not call this gateway; if that is the gateway's own URL, set it with --public-url"
    );
    Err(Problem::new(Code::BadOrigin, detail))
}

/// The last value of a header. Each proxy in a chain may append one, and clients can forge all but the last.
fn last<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    values.rsplit(',').map(str::trim).next().filter(|value| !value.is_empty())
}

/// Whether this is empty or a plain absolute path, which is safe to put into cookies and redirects.
pub fn is_url_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.is_empty() || (path.starts_with('/') && !path.contains("//") && path.bytes().all(plain))
}
