//! A gateway to send requests to: its address, the token, and TLS settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use rustls::ClientConfig;
use ureq::Agent;

use super::address::Address;
use super::trust::TrustedRoots;

/// The limit for name resolution, and for connecting.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a response may take to start. Ending a session takes at least its grace period.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a response body may stall.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A gateway. Clones are cheap and share a connection pool.
#[derive(Clone)]
pub struct Gateway {
    pub(super) address: Arc<Address>,
    /// The `Authorization` header.
    pub(super) bearer: HeaderValue,
    /// `None` for plain HTTP.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) agent: Agent,
}

#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("the token is empty or has characters that are not allowed in a token")]
    Token,
    /// Without root certificates, no server could be trusted.
    #[error("cannot load this machine's root certificates: {0}")]
    NoRoots(String),
}

impl Gateway {
    /// Loads the machine's root certificates if the address uses TLS.
    pub fn new(address: Address, token: &str) -> Result<Gateway, GatewayError> {
        let trust = if address.is_secure() { Some(TrustedRoots::load()?) } else { None };
        Gateway::trusting(address, token, trust.as_ref())
    }

    pub(super) fn trusting(
        address: Address,
        token: &str,
        trust: Option<&TrustedRoots>,
    ) -> Result<Gateway, GatewayError> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(GatewayError::Token);
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| GatewayError::Token)?;
        bearer.set_sensitive(true);
        // No proxy from the environment and no redirects: the token is sent to the given address only.
        let mut config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("bowline/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT_WITHIN))
            .timeout_connect(Some(CONNECT_WITHIN))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .timeout_per_read(Some(STALL_TIMEOUT));
        let mut tls = None;
        if let Some(trust) = trust {
            tls = Some(trust.rustls()?);
            config = config.tls_config(trust.ureq());
        }
        Ok(Gateway { address: Arc::new(address), bearer, tls, agent: config.build().new_agent() })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gateway({})", self.address)
    }
}
