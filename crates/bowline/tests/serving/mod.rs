//! Runs `bowline serve` with any flags, and sends it plain requests.

#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};

use super::support::{World, wait_until};

/// A process that is killed when dropped.
pub(crate) struct Guard(pub(crate) Child);

impl Guard {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Signals the process and waits for it; returns its exit code.
    pub(crate) fn stop(&mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        self.0.wait().unwrap().code()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `bowline serve`.
pub(crate) struct Gateway {
    child: Guard,
    out: PathBuf,
    err: PathBuf,
    url: String,
}

impl Gateway {
    /// Runs it on a free port of the loopback address, with these flags.
    pub(crate) fn new(world: &World, flags: &[&str]) -> Gateway {
        let args: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(flags).copied().collect();
        Gateway::start(world, world.bowline(&args))
    }

    /// Runs `command`, and returns once it has printed its address and the login link.
    pub(crate) fn start(world: &World, mut command: Command) -> Gateway {
        let dir = tempfile::Builder::new().tempdir_in(world.path()).unwrap().keep();
        let (out, err) = (dir.join("out"), dir.join("err"));
        command.stdin(std::process::Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut child = Guard(command.spawn().unwrap());
        let stdout = || std::fs::read_to_string(&out).unwrap();
        wait_until("the gateway listens", || {
            let ended = child.0.try_wait().unwrap();
            assert_eq!(ended, None, "{}", std::fs::read_to_string(&err).unwrap());
            stdout().contains("Ctrl-C stops")
        });
        let url = stdout().lines().find_map(|line| line.strip_prefix("listening on ").map(str::to_owned)).unwrap();
        Gateway { child, out, err, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.url.rsplit("//").next().unwrap().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    /// Its standard error, which contains the log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    pub(crate) fn stop(&mut self, signal: Signal) -> Option<i32> {
        self.child.stop(signal)
    }
}

/// Sends a GET request and returns the response.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    get_with_host(address, path, &address.to_string())
}

/// Sends a GET request with another Host header.
pub(crate) fn get_with_host(address: SocketAddr, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Returns the certificate that the gateway serves, without verifying it.
pub(crate) fn certificate(address: SocketAddr) -> Vec<u8> {
    let certificate = Arc::new(Mutex::new(Vec::new()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(CertificateRecorder { certificate: certificate.clone(), provider }))
        .with_no_client_auth();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).unwrap();
    }
    let certificate = certificate.lock().unwrap();
    certificate.clone()
}

/// Records the certificate of the server, and accepts it.
#[derive(Debug)]
struct CertificateRecorder {
    certificate: Arc<Mutex<Vec<u8>>>,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl rustls::client::danger::ServerCertVerifier for CertificateRecorder {
    fn verify_server_cert(
        &self,
        end_entity: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        *self.certificate.lock().unwrap() = end_entity.to_vec();
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
