//! The gateway's settings and limits. Each limit says what happens when it is reached.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bowline_host::agents::AgentTable;
use bowline_host::launch::Launcher;
use bowline_host::remove::Retention;
use bowline_proto::api::Secret;
use http::HeaderName;
use ipnet::IpNet;
use url::Url;

#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    /// The URL that browsers use. Login links and QR codes contain it; its host and origin are allowed; and if it
    /// is https, cookies are `Secure`.
    pub public_url: Option<Url>,
    /// The path prefix of all routes: empty, or `/some/where`.
    pub base_path: String,
    /// Allowed `Host` headers, besides localhost, the listening address and the public URL's host.
    pub hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-*` headers are trusted, if they also send the secret of `forward_auth`, where there
    /// is one.
    pub proxies: Vec<IpNet>,
    pub forward_auth: Option<ForwardAuth>,
    /// Without it, the gateway serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Whether `/metrics` needs no token.
    pub open_metrics: bool,
    pub limits: Limits,
    pub sessions: SessionDefaults,
    /// The folders below which folders can be listed, to start sessions in: absolute paths, or ones that start with `~`.
    pub roots: Vec<PathBuf>,
    /// The agents that a request may name.
    pub agents: AgentTable,
    /// Starts session processes.
    pub launcher: Launcher,
}

/// The default of [`Settings::roots`]: the home directory.
pub const HOME_ROOT: &str = "~";

impl Settings {
    /// Plain HTTP with the default limits and the built-in agents, and nothing optional set.
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
            roots: vec![PathBuf::from(HOME_ROOT)],
            agents: AgentTable::builtin(),
            launcher,
        }
    }
}

/// Trusts a proxy that authenticates users and names them in a header.
#[derive(Clone, Debug)]
pub struct ForwardAuth {
    /// The header, such as `X-Forwarded-User`. It is ignored unless it comes from a trusted proxy.
    pub header: String,
    /// The users that are allowed, with the scope `admin`.
    pub users: Vec<String>,
    /// Proves that a request comes from the proxy, and not from another program at the proxy's address.
    pub secret: Option<ProxySecret>,
}

/// A secret that the proxy sends with each request.
#[derive(Clone, Debug)]
pub struct ProxySecret {
    pub header: HeaderName,
    pub secret: Secret,
}

/// PEM files, which are reloaded when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its chain.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Defaults for what a request to start a session leaves out.
#[derive(Clone, Debug)]
pub struct SessionDefaults {
    /// The program to run. Default: the login shell.
    pub shell: Option<PathBuf>,
    /// Bytes of output that the log retains.
    pub log_size: u64,
    /// Lines of scrollback above the screen.
    pub scrollback: u32,
    /// How long, and up to which total size, ended sessions are kept.
    pub retention: Retention,
}

/// Limits per caller and for the whole gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open sockets, at most three eighths of the open-file limit. One more closes the oldest without an authenticated
    /// request, of the address that has the most. If there is none, it gets 503 `too_many` and is closed; with TLS, or
    /// when 64 sockets are already being refused, it is closed without a response.
    pub sockets: usize,
    /// Attachments and event streams of all callers; one more gets 4429 / 429 `too_many`.
    pub streams: usize,
    /// Attachments and event streams of one token or login; one more gets 4429 / 429 `too_many`.
    pub streams_per_token: usize,
    /// Requests per second with one token, login or proxy user, with a burst of ten seconds' worth; a screen counts as
    /// two, with scrollback as ten. More wait for up to a second, and then get 429 `too_many`.
    pub request_rate: u32,
    /// Attempts to open a stream per second with one token, login or proxy user, and requests with bad credentials
    /// per second from one address; both with a burst of ten seconds' worth. More get 4429 / 429 `too_many`.
    pub attach_rate: u32,
    /// Wrong login codes per minute from one address; more get 429 `too_many`.
    pub login_rate: u32,
    /// Bytes in a request's body; a longer one gets 413 `too_large`.
    pub body: usize,
    /// Bytes in a WebSocket message, at most what a session accepts in one frame; a longer one is closed with 1009.
    pub message: usize,
    /// How long a client may take to send a request's head, or for the TLS handshake; after that the socket is
    /// closed.
    pub head_within: Duration,
    /// How long a client may take to send a request's body; after that it gets 408 `too_slow`.
    pub body_within: Duration,
    /// How long a WebSocket client may take to send its first message; after that it is closed with 4408.
    pub hello_within: Duration,
    /// How often an event stream pings. A WebSocket that receives nothing for 2.25 times as long is closed with
    /// 4408.
    pub heartbeat: Duration,
    /// How long a connection may accept no data while there is some to send; after that it is cut. A viewer of an
    /// ended session that acknowledges nothing for this long is closed with 4408.
    pub stalled_after: Duration,
    /// How long the gateway, when it stops, waits for connections to close.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sockets: 16_384,
            streams: 8192,
            streams_per_token: 4096,
            request_rate: 200,
            attach_rate: 200,
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
