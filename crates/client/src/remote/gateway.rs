//! A gateway as this program knows it: where it is, the token that opens it, whom it believes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use rustls::ClientConfig;
use ureq::Agent;

use super::address::Address;
use super::trust::Trust;

/// How long finding and reaching the gateway may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to answer: ending a session takes its grace, and some more.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long an answer may stall.
const STALL: Duration = Duration::from_secs(30);

/// A gateway. Clones are cheap, and share its connections.
#[derive(Clone)]
pub struct Gateway {
    pub(super) address: Arc<Address>,
    /// `Authorization`.
    pub(super) bearer: HeaderValue,
    /// Where it speaks TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) agent: Agent,
}

/// Why a gateway cannot be spoken to, before anything is said.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Not what a token looks like.
    #[error("the token has characters that no token has")]
    Token,
    /// Nobody's certificate would be believed.
    #[error("this machine's certificates cannot be used: {0}")]
    NoRoots(String),
}

impl Gateway {
    /// The gateway at this address, opened by this token.
    pub fn new(address: Address, token: &str) -> Result<Gateway, GatewayError> {
        let trust = if address.is_secure() { Some(Trust::load()?) } else { None };
        Gateway::trusting(address, token, trust.as_ref())
    }

    pub(super) fn trusting(address: Address, token: &str, trust: Option<&Trust>) -> Result<Gateway, GatewayError> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(GatewayError::Token);
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| GatewayError::Token)?;
        bearer.set_sensitive(true);
        // No proxy of the environment and no redirect: the token goes to the address that was given, or nowhere.
        let mut config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("bowline/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT_WITHIN))
            .timeout_connect(Some(CONNECT_WITHIN))
            .timeout_recv_response(Some(ANSWER_WITHIN))
            .timeout_per_read(Some(STALL));
        let mut tls = None;
        if let Some(trust) = trust {
            tls = Some(trust.rustls()?);
            config = config.tls_config(trust.ureq());
        }
        Ok(Gateway { address: Arc::new(address), bearer, tls, agent: config.build().new_agent() })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gateway({})", self.address)
    }
}
