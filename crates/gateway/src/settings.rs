//! Everything that the gateway can be told, and its limits: each with a name, a default and a visible outcome.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bowline_host::launch::Launcher;
use bowline_host::remove::Retention;
use ipnet::IpNet;
use url::Url;

/// How a gateway runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What browsers and phones call it: drives the link, the QR code, Origin, Host and the Secure cookie.
    pub public_url: Option<Url>,
    /// The path under which it is served: empty, or `/some/where`.
    pub base_path: String,
    /// Names that a `Host` header may have, besides this machine's own addresses and the public URL's.
    pub hosts: Vec<String>,
    /// Whose `X-Forwarded-*` headers are believed.
    pub proxies: Vec<IpNet>,
    /// Who a trusted proxy says is calling.
    pub forward_auth: Option<ForwardAuth>,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<TlsFiles>,
    /// `/metrics` needs no token.
    pub open_metrics: bool,
    /// What is refused.
    pub limits: Limits,
    /// What a session is made of when its creator does not say.
    pub sessions: SessionDefaults,
    /// How session processes are run.
    pub launcher: Launcher,
}

impl Settings {
    /// Plain HTTP at this address, with the default limits and nothing else set.
    pub fn new(listen: SocketAddr, sessions: SessionDefaults, launcher: Launcher) -> Settings {
        Settings {
            listen,
            public_url: None,
            base_path: String::new(),
            hosts: Vec::new(),
            proxies: Vec::new(),
            forward_auth: None,
            tls: None,
            open_metrics: false,
            limits: Limits::default(),
            sessions,
            launcher,
        }
    }
}

/// A proxy that logs users in itself and names them in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// The header, such as `X-Forwarded-User`. It counts only from a trusted proxy.
    pub header: String,
    /// Who may come in.
    pub users: Vec<String>,
}

/// PEM files, read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and its chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What a session is made of when its creator does not say.
#[derive(Clone, Debug)]
pub struct SessionDefaults {
    /// The program; the login shell without.
    pub shell: Option<PathBuf>,
    /// Bytes of output that it keeps.
    pub log_size: u64,
    /// Lines that it keeps above the screen.
    pub history: u32,
    /// What is kept of ended sessions.
    pub retention: Retention,
}

/// What one caller, or all of them, may take. The outcome of each stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open sockets, at most three eighths of the open-file limit; one more gets 503 `too_many` (with TLS, or past 64 at a time, no word) and is closed.
    pub sockets: usize,
    /// Attachments and event streams; one more gets 4429 / 429 `too_many`.
    pub streams: usize,
    /// Attachments and event streams of one token or login; one more gets 4429 / 429 `too_many`.
    pub streams_per_token: usize,
    /// Attach attempts a second from one address, after a burst of ten seconds' worth; more gets 4429 / 429 `too_many`.
    pub attach_rate: u32,
    /// Login attempts a minute from one address; more gets 429 `too_many`.
    pub login_rate: u32,
    /// A request's body; a longer one gets 413 `too_large`.
    pub body: usize,
    /// A WebSocket message, at most what a session takes in one frame; a longer one is closed 1009.
    pub message: usize,
    /// A request's head must be there within this time; otherwise the socket is closed.
    pub head_within: Duration,
    /// A request's body must be there within this time; otherwise 408 `too_slow`.
    pub body_within: Duration,
    /// A WebSocket without its first message for this long is closed 4408.
    pub hello_within: Duration,
    /// How often an event stream pings; 2.25 times as long without a word from the other side is the end.
    pub heartbeat: Duration,
    /// A connection that takes nothing of what it is sent for this long is cut.
    pub stalled_after: Duration,
    /// How long a stop waits for connections to close.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sockets: 16_384,
            streams: 8192,
            streams_per_token: 4096,
            attach_rate: 500,
            login_rate: 10,
            body: 1 << 20,
            message: 256 << 10,
            head_within: Duration::from_secs(10),
            body_within: Duration::from_secs(30),
            hello_within: Duration::from_secs(10),
            heartbeat: Duration::from_secs(20),
            stalled_after: Duration::from_secs(45),
            drain: Duration::from_secs(5),
        }
    }
}
