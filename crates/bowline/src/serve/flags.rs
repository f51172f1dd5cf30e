//! The flags of `bowline serve`: the topmost layer of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use toml::Value;
use url::Url;

use crate::config::Flag;
use crate::units;

/// The flags of `bowline serve`, which `bowline config show` also takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Address and port to listen on [default: 127.0.0.1:7433]
    #[arg(long, value_name = "ADDRESS", value_parser = units::parse_listen)]
    listen: Option<SocketAddr>,
    /// URL that browsers use, if it differs from the listening address; needed behind a proxy
    #[arg(long, value_name = "URL", value_parser = units::parse_url)]
    public_url: Option<Url>,
    /// Path under which the gateway is served, such as /terminals [default: that of --public-url]
    #[arg(long, value_name = "PATH")]
    base_path: Option<String>,
    /// Additional host name to accept; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Proxy whose X-Forwarded-* headers to trust, such as 127.0.0.1/32; repeatable
    #[arg(long, value_name = "NETWORK", value_parser = parse_network)]
    proxy: Vec<IpNet>,
    /// Header in which a trusted proxy names the user that it has authenticated
    #[arg(long, value_name = "HEADER")]
    forward_auth_header: Option<String>,
    /// User that this header may log in; repeatable
    #[arg(long, value_name = "USER")]
    forward_auth_user: Vec<String>,
    /// Header in which that proxy sends the secret of --forward-auth-secret-file with each request
    #[arg(long, value_name = "HEADER")]
    forward_auth_secret_header: Option<String>,
    /// File with the secret that proves that a request comes from the proxy
    #[arg(long, value_name = "FILE")]
    forward_auth_secret_file: Option<PathBuf>,
    /// Certificate and its chain, PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Serve /metrics without a token
    #[arg(long)]
    open_metrics: bool,
    /// What to log: error, warn, info, debug or trace [default: info; env: RUST_LOG]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Set a limit, such as streams=100; repeatable; `bowline config show` lists them
    #[arg(long, value_name = "NAME=VALUE")]
    limit: Vec<String>,
}

impl Flags {
    /// The values that the flags set.
    pub(crate) fn to_layer(&self) -> anyhow::Result<Vec<Flag>> {
        let path = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
        let single = [
            ("gateway.listen", self.listen.map(|address| address.to_string())),
            ("gateway.public_url", self.public_url.as_ref().map(Url::to_string)),
            ("gateway.base_path", self.base_path.clone()),
            ("gateway.forward_auth.header", self.forward_auth_header.clone()),
            ("gateway.forward_auth.secret_header", self.forward_auth_secret_header.clone()),
            ("gateway.forward_auth.secret_file", self.forward_auth_secret_file.as_ref().map(path)),
            ("gateway.tls.cert", self.tls_cert.as_ref().map(path)),
            ("gateway.tls.key", self.tls_key.as_ref().map(path)),
            ("gateway.log_level", self.log_level.clone()),
        ];
        let lists = [
            ("gateway.hosts", self.host.clone()),
            ("gateway.proxies", self.proxy.iter().map(IpNet::to_string).collect()),
            ("gateway.forward_auth.users", self.forward_auth_user.clone()),
        ];
        let mut flags = Vec::new();
        for (path, value) in single {
            flags.extend(value.map(|value| Flag::new(path, Value::String(value))).transpose()?);
        }
        for (path, values) in lists.into_iter().filter(|(_, values)| !values.is_empty()) {
            flags.push(Flag::new(path, Value::Array(values.into_iter().map(Value::String).collect()))?);
        }
        if self.open_metrics {
            flags.push(Flag::new("gateway.open_metrics", Value::Boolean(true))?);
        }
        for limit in &self.limit {
            flags.push(Flag::limit(limit)?);
        }
        Ok(flags)
    }
}

/// Parses a network, or a single address.
fn parse_network(text: &str) -> Result<IpNet, String> {
    let address = text.parse().map(|address: std::net::IpAddr| IpNet::from(address));
    text.parse().or(address).map_err(|_| format!("{text:?} is not an address or a network such as 10.0.0.0/8"))
}
