//! TLS, with certificates that are read again when their files change.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::settings::TlsFiles;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {why}")]
    File {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
    /// Certificate and key do not go together.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(#[from] tokio_rustls::rustls::Error),
}

/// Accepts TLS with the newest certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    files: TlsFiles,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn load(files: TlsFiles) -> Result<Tls, TlsError> {
        let current = Arc::new(RwLock::new(Arc::new(read(&files)?)));
        Ok(Tls { files, current })
    }

    /// A handshake.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Follows the files, for as long as it is polled, and reads them at once when told. Files that make no pair leave what
    /// was there.
    pub(crate) async fn follow(self, told: &Notify) {
        let mut seen = stamps(&self.files);
        loop {
            let at_once = tokio::time::timeout(LOOK_EVERY, told.notified()).await.is_ok();
            let now = stamps(&self.files);
            if now != seen || at_once {
                seen = now;
                self.reload();
            }
        }
    }

    fn reload(&self) {
        match read(&self.files) {
            Ok(config) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!("the certificate was read again");
            }
            Err(error) => tracing::error!(%error, "the new certificate cannot be used; the old one stays"),
        }
    }
}

fn stamps(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    let stamp = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    [stamp(&files.cert), stamp(&files.key)]
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let file = |path: &Path, why: &dyn std::fmt::Display| TlsError::File {
        path: path.display().to_string(),
        why: why.to_string(),
    };
    let certs = CertificateDer::pem_file_iter(&files.cert).map_err(|why| file(&files.cert, &why))?;
    let certs = certs.collect::<Result<Vec<_>, _>>().map_err(|why| file(&files.cert, &why))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|why| file(&files.key, &why))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_single_cert(certs, key)?)
}
