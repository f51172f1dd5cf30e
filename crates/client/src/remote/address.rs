//! Parses and checks the URL of a gateway.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// A gateway's URL: `http://` or `https://`, a host, an optional port, and an optional path prefix that a proxy adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    secure: bool,
    /// As in the URL: IPv6 in brackets, the port only if it was given.
    authority: String,
    /// Without brackets, in lower case.
    host: String,
    port: u16,
    /// The path prefix, without a trailing slash.
    base: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    #[error("{0:?} is not a server URL: use http://HOST:PORT or https://HOST, optionally with a path")]
    Malformed(String),
    #[error("unsupported server URL scheme {0}://: use http:// or https://")]
    Scheme(String),
    /// `user:password@`. The URL is not repeated, because it contains a secret.
    #[error("the server URL must not contain a user or password; put the token into BOWLINE_TOKEN")]
    Credentials,
    /// `?` or `#`.
    #[error("the server URL must not contain ? or #: it ends with the path")]
    Tail,
}

impl Address {
    /// Whether traffic crosses a network unencrypted.
    pub fn is_unencrypted(&self) -> bool {
        !self.secure && !self.is_loopback()
    }

    fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The HTTP URL of a path on the gateway.
    pub(super) fn http(&self, path: &str) -> String {
        format!("{}://{}{}{path}", if self.secure { "https" } else { "http" }, self.authority, self.base)
    }

    /// The WebSocket URL of a path on the gateway.
    pub(super) fn websocket(&self, path: &str) -> String {
        format!("{}://{}{}{path}", if self.secure { "wss" } else { "ws" }, self.authority, self.base)
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Address, InvalidAddress> {
        // Checked first, because the other errors repeat the URL and must not show a password.
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        if rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
            return Err(InvalidAddress::Credentials);
        }
        let malformed = || InvalidAddress::Malformed(text.to_owned());
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            "" => return Err(malformed()),
            other => return Err(InvalidAddress::Scheme(other.to_owned())),
        };
        if text.contains(['?', '#']) {
            return Err(InvalidAddress::Tail);
        }
        let uri: Uri = text.parse().map_err(|_| malformed())?;
        let authority = uri.authority().ok_or_else(malformed)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(malformed());
        }
        // An invalid port must not silently become the default one.
        if authority.port_u16().is_none() && authority.as_str().len() != authority.host().len() {
            return Err(malformed());
        }
        Ok(Address {
            secure,
            authority: authority.to_string(),
            host,
            port: authority.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.http(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r50_a_gateway_may_have_any_path_prefix() {
        for (text, url) in [
            ("https://host", "https://host/v1/x"),
            ("HTTPS://Host:8443/", "https://Host:8443/v1/x"),
            ("http://[::1]:7433", "http://[::1]:7433/v1/x"),
            ("https://host/bowline/", "https://host/bowline/v1/x"),
            ("https://host/a/b", "https://host/a/b/v1/x"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.http("/v1/x"), url);
            assert_eq!(address.websocket("/v1/x"), url.replacen("http", "ws", 1));
        }
    }

    #[test]
    fn invalid_urls_get_precise_errors() {
        let error = |text: &str| text.parse::<Address>().unwrap_err();
        assert_eq!(error("https://me:secret@host"), InvalidAddress::Credentials);
        assert_eq!(error("ftp://me:secret@host"), InvalidAddress::Credentials);
        assert_eq!(error("me:secret@host"), InvalidAddress::Credentials);
        assert_eq!(error("ssh://host"), InvalidAddress::Scheme("ssh".to_owned()));
        assert_eq!(error("https://host/#code=x"), InvalidAddress::Tail);
        assert_eq!(error("https://host/?token=x"), InvalidAddress::Tail);
        for bad in ["", "host", "localhost:7433", "https://", "https://a b", "http://host:99999", "http://host:"] {
            assert_eq!(error(bad), InvalidAddress::Malformed(bad.to_owned()), "{bad}");
        }
    }

    #[test]
    fn r53_only_unencrypted_traffic_to_other_machines_is_clear() {
        let clear = |text: &str| text.parse::<Address>().unwrap().is_unencrypted();
        assert!(clear("http://host") && clear("http://192.168.1.2:7433") && clear("http://[fe80::1]"));
        for private in ["https://host", "http://localhost:1", "http://127.0.0.2", "http://[::1]:7433"] {
            assert!(!clear(private), "{private}");
        }
    }
}
