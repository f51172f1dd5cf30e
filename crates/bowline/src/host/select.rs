//! Selects the host: the gateway that `--server` names, or else this machine.

use bowline_client::remote::{Address, Gateway};
use bowline_host::home::Home;

use super::Host;
use super::local::LocalHost;
use super::remote::RemoteHost;
use crate::failure::{Code, Failure, GET_TOKEN};

/// Returns the host behind the gateway at `server`, or this machine without one.
pub(crate) fn select(server: Option<&str>) -> anyhow::Result<Box<dyn Host>> {
    Ok(match server {
        Some(url) => Box::new(RemoteHost::new(gateway_client(url)?)),
        None => Box::new(LocalHost::new(Home::from_env()?)),
    })
}

/// Prepares calls to the gateway at `url`, with the token in `BOWLINE_TOKEN`. Warns if they are not encrypted.
pub(crate) fn gateway_client(url: &str) -> anyhow::Result<Gateway> {
    let address: Address = url.parse()?;
    let token = std::env::var("BOWLINE_TOKEN").unwrap_or_default();
    if token.is_empty() {
        return Err(Failure::new(Code::Usage, format!("no token for {address}"), GET_TOKEN).into());
    }
    if address.is_unencrypted() {
        eprintln!(
            "bowline: warning: the connection to {address} is not encrypted; others on the network can read the token \
             and everything you type"
        );
    }
    Ok(Gateway::new(address, token.trim())?)
}
