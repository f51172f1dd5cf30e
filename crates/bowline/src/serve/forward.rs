//! Detects an unsafe `forward_auth`: one that trusts proxies on this machine.

use bowline_gateway::settings::Settings;
use ipnet::IpNet;

/// What to do about the [`risk`].
pub(crate) const REMEDY: &str = "if this machine has other users, run the proxy on another machine or in a container and list \
                                 only its address in `proxies`, or use a firewall to allow only the proxy's account to \
                                 connect to the gateway's port (iptables -m owner --uid-owner)";

/// Describes the risk, if any user of this machine could pretend to be the proxy and so log in with `forward_auth`.
pub(crate) fn risk(settings: &Settings) -> Option<String> {
    settings.forward_auth.as_ref()?;
    let network = settings.proxies.iter().find(|network| has_loopback(network))?;
    Some(format!("`forward_auth` trusts {network}, so any user of this machine can log in as any user of the gateway"))
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
