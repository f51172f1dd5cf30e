//! Where a gateway is: the URL that a user gives, checked.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// A gateway's URL: `http://` or `https://`, a host, perhaps a port, perhaps a path that a proxy puts it under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    secure: bool,
    /// As in a URL: IPv6 in brackets, the port only where it was given.
    authority: String,
    host: String,
    port: u16,
    /// Without a slash at its end.
    base: String,
}

/// Why a text is no gateway's URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// No URL at all.
    #[error("{0:?} is no URL: write https://HOST, with :PORT and a path where it needs them")]
    Malformed(String),
    /// Another scheme.
    #[error("a server's URL begins with http:// or https://, not {0}://")]
    Scheme(String),
    /// `user:password@`. The text is not repeated: it is a secret.
    #[error("a server's URL carries no user or password; the token goes into BOWLINE_TOKEN")]
    Credentials,
    /// `?` or `#`.
    #[error("a server's URL ends with its path; what follows ? or # has no meaning here")]
    Tail,
}

impl Address {
    /// Whether what is said to it can be read on the way.
    pub fn is_clear(&self) -> bool {
        !self.secure && !self.is_loopback()
    }

    fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// Whether it speaks TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host, without brackets.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a path of the gateway, for HTTP.
    pub(super) fn http(&self, path: &str) -> String {
        format!("{}://{}{}{path}", if self.secure { "https" } else { "http" }, self.authority, self.base)
    }

    /// The URL of a path of the gateway, for a WebSocket.
    pub(super) fn websocket(&self, path: &str) -> String {
        format!("{}://{}{}{path}", if self.secure { "wss" } else { "ws" }, self.authority, self.base)
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        // First of all: no other complaint may repeat a password.
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        if rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
            return Err(BadAddress::Credentials);
        }
        let malformed = || BadAddress::Malformed(text.to_owned());
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            "" => return Err(malformed()),
            other => return Err(BadAddress::Scheme(other.to_owned())),
        };
        if text.contains(['?', '#']) {
            return Err(BadAddress::Tail);
        }
        let uri: Uri = text.parse().map_err(|_| malformed())?;
        let authority = uri.authority().ok_or_else(malformed)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(malformed());
        }
        // What is written as a port and is none must not become the default one.
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
    fn r50_a_gateway_may_be_below_any_path() {
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
    fn what_is_no_gateways_url_is_explained() {
        let why = |text: &str| text.parse::<Address>().unwrap_err();
        assert_eq!(why("https://me:secret@host"), BadAddress::Credentials);
        assert_eq!(why("ftp://me:secret@host"), BadAddress::Credentials);
        assert_eq!(why("me:secret@host"), BadAddress::Credentials);
        assert_eq!(why("ssh://host"), BadAddress::Scheme("ssh".to_owned()));
        assert_eq!(why("https://host/#code=x"), BadAddress::Tail);
        assert_eq!(why("https://host/?token=x"), BadAddress::Tail);
        for bad in ["", "host", "localhost:7433", "https://", "https://a b", "http://host:99999", "http://host:"] {
            assert_eq!(why(bad), BadAddress::Malformed(bad.to_owned()), "{bad}");
        }
    }

    #[test]
    fn r53_only_what_leaves_the_machine_in_clear_is_clear() {
        let clear = |text: &str| text.parse::<Address>().unwrap().is_clear();
        assert!(clear("http://host") && clear("http://192.168.1.2:7433") && clear("http://[fe80::1]"));
        for private in ["https://host", "http://localhost:1", "http://127.0.0.2", "http://[::1]:7433"] {
            assert!(!clear(private), "{private}");
        }
    }
}
