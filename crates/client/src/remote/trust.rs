//! Whose certificates are believed: the machine's own list, as its other programs use it, or the file that
//! `SSL_CERT_FILE` names instead.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::GatewayError;

/// The roots, for both kinds of connection.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) roots: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// Reads the list.
    pub(super) fn load() -> Result<Trust, GatewayError> {
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            let why = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
            return Err(GatewayError::NoRoots(why));
        }
        Ok(Trust { roots: found.certs })
    }

    /// For WebSockets.
    pub(super) fn rustls(&self) -> Result<Arc<ClientConfig>, GatewayError> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(self.roots.iter().cloned());
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| GatewayError::NoRoots(error.to_string()))?;
        Ok(Arc::new(config.with_root_certificates(store).with_no_client_auth()))
    }

    /// For HTTP.
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
