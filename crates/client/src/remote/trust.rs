//! Loads the trusted root certificates: the machine's own, or those in the file that `SSL_CERT_FILE` names.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::GatewayError;

/// Root certificates, for both HTTP and WebSocket connections.
#[derive(Clone, Debug)]
pub(super) struct TrustedRoots {
    pub(super) roots: Vec<CertificateDer<'static>>,
}

impl TrustedRoots {
    pub(super) fn load() -> Result<TrustedRoots, GatewayError> {
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            let why = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
            return Err(GatewayError::NoRoots(why));
        }
        Ok(TrustedRoots { roots: found.certs })
    }

    /// The TLS configuration of WebSockets.
    pub(super) fn rustls(&self) -> Result<Arc<ClientConfig>, GatewayError> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(self.roots.iter().cloned());
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| GatewayError::NoRoots(error.to_string()))?;
        Ok(Arc::new(config.with_root_certificates(store).with_no_client_auth()))
    }

    /// The TLS configuration of HTTP requests.
    pub(super) fn ureq(&self) -> TlsConfig {
        let roots: Vec<_> = self.roots.iter().map(|root| Certificate::from_der(root.as_ref()).to_owned()).collect();
        TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(provider())
            .build()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
