//! TLS, with a certificate that is reloaded when its files change.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::settings::TlsFiles;

/// How often the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// `what` is `certificate` or `key`.
    #[error("cannot read the TLS {what} {path}: {why}")]
    File { what: &'static str, path: String, why: String },
    /// `what` is `certificate` or `private key`.
    #[error("{path} contains no {what} in PEM format")]
    Missing { what: &'static str, path: String },
    /// They are invalid, or do not belong together.
    #[error("cannot use the certificate and key: {0}")]
    Pair(#[from] tokio_rustls::rustls::Error),
}

/// Accepts TLS connections with the current certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    files: TlsFiles,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Tls {
    pub(crate) fn load(files: TlsFiles) -> Result<Tls, TlsError> {
        let current = Arc::new(RwLock::new(Arc::new(read(&files)?)));
        Ok(Tls { files, current })
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Reloads the files when they change or when notified. If they cannot be used, the current certificate
    /// stays. Never returns.
    pub(crate) async fn follow(self, reload: &Notify) {
        let mut loaded = stamps(&self.files);
        loop {
            let notified = tokio::time::timeout(CHECK_INTERVAL, reload.notified()).await.is_ok();
            let now = stamps(&self.files);
            if now != loaded || notified {
                loaded = now;
                self.reload();
            }
        }
    }

    fn reload(&self) {
        match read(&self.files) {
            Ok(config) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!("reloaded the certificate");
            }
            Err(error) => tracing::error!(%error, "cannot use the new certificate; the old one stays"),
        }
    }
}

fn stamps(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    let stamp = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    [stamp(&files.cert), stamp(&files.key)]
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let path = |path: &Path| path.display().to_string();
    let cert_error = |error| match error {
        pem::Error::NoItemsFound => TlsError::Missing { what: "certificate", path: path(&files.cert) },
        error => TlsError::File { what: "certificate", path: path(&files.cert), why: describe(&error) },
    };
    let certs = CertificateDer::pem_file_iter(&files.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certs = certs.map_err(cert_error)?;
    if certs.is_empty() {
        return Err(cert_error(pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::Missing { what: "private key", path: path(&files.key) },
        error => TlsError::File { what: "key", path: path(&files.key), why: describe(&error) },
    })?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_single_cert(certs, key)?)
}

/// Says why a file cannot be read, without the number of a system error.
fn describe(error: &pem::Error) -> String {
    let pem::Error::Io(error) = error else { return error.to_string() };
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file_and_what_it_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key, empty) = (dir.path().join("cert"), dir.path().join("key"), dir.path().join("empty"));
        std::fs::write(&cert, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
        std::fs::write(&empty, "nothing").unwrap();
        let error = |cert: &Path, key: &Path| {
            read(&TlsFiles { cert: cert.to_owned(), key: key.to_owned() }).unwrap_err().to_string()
        };
        let missing = Path::new("/nowhere.pem");
        assert_eq!(error(missing, &key), "cannot read the TLS certificate /nowhere.pem: No such file or directory");
        assert_eq!(error(&cert, missing), "cannot read the TLS key /nowhere.pem: No such file or directory");
        assert_eq!(error(&empty, &key), format!("{} contains no certificate in PEM format", empty.display()));
        assert_eq!(error(&cert, &empty), format!("{} contains no private key in PEM format", empty.display()));
    }
}
