//! Which place a verb speaks of: `--server`, or else this machine.

use bowline_client::remote::{Address, Gateway};
use bowline_host::home::Home;

use super::Place;
use super::here::Here;
use super::there::There;
use crate::failure::{Code, Failure, GET_TOKEN};

/// The gateway at this URL; without a URL, this machine.
pub(crate) fn choose(server: Option<&str>) -> anyhow::Result<Box<dyn Place>> {
    Ok(match server {
        Some(url) => Box::new(There::new(gateway(url)?)),
        None => Box::new(Here::new(Home::from_env()?)),
    })
}

/// The gateway at this URL, with the token of the environment.
pub(crate) fn gateway(url: &str) -> anyhow::Result<Gateway> {
    let address: Address = url.parse()?;
    let token = std::env::var("BOWLINE_TOKEN").unwrap_or_default();
    if token.is_empty() {
        return Err(Failure::new(Code::Usage, format!("there is no token for {address}"), GET_TOKEN).into());
    }
    if address.is_clear() {
        eprintln!("bowline: {address} is not encrypted: whoever is on the way can read the token and all you type");
    }
    Ok(Gateway::new(address, token.trim())?)
}
