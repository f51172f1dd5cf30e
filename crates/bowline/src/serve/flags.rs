//! The gateway's flags. They are the strongest layer of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use toml::Value;
use url::Url;

use crate::config::Flag;

/// What can be set for one run.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Where to listen [default: 127.0.0.1:7433]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// What browsers and phones call it, when that is another name: behind a proxy, or a name of this machine
    #[arg(long, value_name = "URL")]
    public_url: Option<Url>,
    /// The path under which it is served, such as /terminals [default: that of --public-url]
    #[arg(long, value_name = "PATH")]
    base_path: Option<String>,
    /// A further name by which it may be called; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// A proxy whose X-Forwarded-* headers are believed, such as 127.0.0.1/32; repeatable
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    proxy: Vec<IpNet>,
    /// The header in which such a proxy names the user who has logged in there
    #[arg(long, value_name = "HEADER")]
    forward_auth_header: Option<String>,
    /// A user who may come in by that header; repeatable
    #[arg(long, value_name = "USER")]
    forward_auth_user: Vec<String>,
    /// The certificate and its chain, PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Let anybody who can reach it read /metrics
    #[arg(long)]
    open_metrics: bool,
    /// What is logged: error, warn, info, debug or trace [default: info; env: RUST_LOG]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// A limit, such as streams=100; repeatable; `bowline config show` lists them
    #[arg(long, value_name = "NAME=VALUE")]
    limit: Vec<String>,
}

impl Flags {
    /// What they set.
    pub(crate) fn layer(&self) -> anyhow::Result<Vec<Flag>> {
        let path = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
        let single = [
            ("gateway.listen", self.listen.map(|address| address.to_string())),
            ("gateway.public_url", self.public_url.as_ref().map(Url::to_string)),
            ("gateway.base_path", self.base_path.clone()),
            ("gateway.forward_auth.header", self.forward_auth_header.clone()),
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

/// A network, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let one = text.parse().map(|address: std::net::IpAddr| IpNet::from(address));
    text.parse().or(one).map_err(|_| format!("{text:?} is no network: write an address, or one such as 10.0.0.0/8"))
}
