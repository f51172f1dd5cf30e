//! What is unsafe about believing a proxy that says who is calling.

use bowline_gateway::settings::Settings;
use ipnet::IpNet;

/// What to do about it.
pub(crate) const REMEDY: &str = "unless nobody else has an account here: run the proxy on another address (a machine or a \
                                 container of its own) and list only that in `proxies`, or let a firewall allow the \
                                 gateway's port to the proxy's account alone (iptables -m owner --uid-owner)";

/// Says so when any account of this machine could claim to be a user of `forward_auth`.
pub(crate) fn risk(settings: &Settings) -> Option<String> {
    settings.forward_auth.as_ref()?;
    let network = settings.proxies.iter().find(|network| has_loopback(network))?;
    Some(format!(
        "`forward_auth` believes {network}, and every account of this machine can call from there and claim to be the user"
    ))
}

/// Whether one of the network's addresses is a loopback address.
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
    fn r50_networks_with_a_loopback_address_are_known() {
        let has = |text: &str| has_loopback(&text.parse().unwrap());
        for text in ["127.0.0.1/32", "127.0.0.0/8", "127.3.0.0/16", "0.0.0.0/0", "::1/128", "::/0"] {
            assert!(has(text), "{text}");
        }
        for text in ["10.0.0.0/8", "128.0.0.0/1", "192.0.2.1/32", "fd00::/8", "::2/128"] {
            assert!(!has(text), "{text}");
        }
    }
}
