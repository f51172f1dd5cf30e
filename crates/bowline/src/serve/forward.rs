//! Detects an unsafe `forward_auth`: one that trusts proxies on this machine without a secret.

use bowline_gateway::settings::Settings;
use ipnet::IpNet;

/// What to do about the [`risk`].
pub(crate) const REMEDY: &str = "set `secret_header` and `secret_file` in [gateway.forward_auth], and let the proxy send the \
                                 secret; docs/REACHING.md shows how";

/// Describes the risk, if any user of this machine could pretend to be the proxy and so log in with `forward_auth`.
pub(crate) fn risk(settings: &Settings) -> Option<String> {
    settings.forward_auth.as_ref().filter(|forward| forward.secret.is_none())?;
    let network = settings.proxies.iter().find(|network| has_loopback(network))?;
    Some(format!(
        "`forward_auth` trusts {network} without a secret, so any user of this machine can log in as any user of the gateway"
    ))
}

/// Whether the network contains a loopback address.
fn has_loopback(network: &IpNet) -> bool {
    let loopback = match network {
        IpNet::V4(_) => "127.0.0.0/8",
        IpNet::V6(_) => "::1/128",
    };
    loopback.parse().is_ok_and(|loopback: IpNet| loopback.contains(network) || network.contains(&loopback))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r50_networks_with_a_loopback_address_are_detected() {
        let has = |text: &str| has_loopback(&text.parse().unwrap());
        for text in ["127.0.0.1/32", "127.0.0.0/8", "127.3.0.0/16", "0.0.0.0/0", "::1/128", "::/0"] {
            assert!(has(text), "{text}");
        }
        for text in ["10.0.0.0/8", "128.0.0.0/1", "192.0.2.1/32", "fd00::/8", "::2/128"] {
            assert!(!has(text), "{text}");
        }
    }
}
