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
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::settings::TlsFiles;

/// How often the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}: {why}")]
    File { path: String, why: String },
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
