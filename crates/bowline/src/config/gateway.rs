//! The configuration's `[gateway]`: how `bowline serve` runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bowline_gateway::is_path;
use bowline_gateway::settings::{ForwardAuth, Limits, SessionDefaults, Settings, TlsFiles};
use bowline_host::launch::Launcher;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use url::Url;

use super::Config;
use crate::units;

/// How `bowline serve` runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatewayConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) public_url: Option<Url>,
    base_path: String,
    hosts: Vec<String>,
    proxies: Vec<IpNet>,
    open_metrics: bool,
    pub(crate) log_level: String,
    pub(crate) scopes: Scopes,
    forward_auth: Forward,
    tls: TlsConfig,
    #[serde(with = "LimitsText")]
    limits: Limits,
}

/// Whether sessions get systemd scopes of their own, which no stop of the service reaches.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scopes {
    /// When the gateway runs as a systemd service.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Forward {
    header: Option<String>,
    users: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct TlsConfig {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// How [`Limits`] are written.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Limits", default = "Limits::default", deny_unknown_fields)]
struct LimitsText {
    sockets: usize,
    streams: usize,
    streams_per_token: usize,
    attach_rate: u32,
    login_rate: u32,
    #[serde(with = "units::size_text")]
    body: usize,
    #[serde(with = "units::size_text")]
    message: usize,
    #[serde(with = "units::time_text")]
    head_within: Duration,
    #[serde(with = "units::time_text")]
    body_within: Duration,
    #[serde(with = "units::time_text")]
    hello_within: Duration,
    #[serde(with = "units::time_text")]
    heartbeat: Duration,
    #[serde(with = "units::time_text")]
    stalled_after: Duration,
    #[serde(with = "units::time_text")]
    drain: Duration,
}

impl Default for GatewayConfig {
    fn default() -> GatewayConfig {
        GatewayConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 7433)),
            public_url: None,
            base_path: String::new(),
            hosts: Vec::new(),
            proxies: Vec::new(),
            open_metrics: false,
            log_level: "info".into(),
            scopes: Scopes::default(),
            forward_auth: Forward::default(),
            tls: TlsConfig::default(),
            limits: Limits::default(),
        }
    }
}

impl GatewayConfig {
    /// What no type can say: which values do not go together, and which make no gateway.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(url) = &self.public_url {
            let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
            if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !plain || url.fragment().is_some() {
                return Err(format!(
                    "public_url is http://HOST or https://HOST, with a path if there is one, not {url}"
                ));
            }
        }
        if !is_path(&self.base()) {
            return Err(format!("base_path is empty or a plain path such as /terminals, not {:?}", self.base()));
        }
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err("a certificate needs its key: give both tls.cert and tls.key, or neither".into());
        }
        match (&self.forward_auth.header, self.forward_auth.users.is_empty()) {
            (Some(header), _) if http::HeaderName::try_from(header.as_str()).is_err() => {
                return Err(format!("forward_auth.header is the name of a header, not {header:?}"));
            }
            (Some(_), true) | (None, false) => {
                return Err("forward_auth needs a header and the users who may come in by it".into());
            }
            (Some(_), false) if self.proxies.is_empty() => {
                return Err("forward_auth counts only from a proxy that `proxies` lists, and none is".into());
            }
            _ => {}
        }
        if let Err(error) = EnvFilter::try_new(&self.log_level) {
            return Err(format!("log_level is error, warn, info, debug or trace, not {:?}: {error}", self.log_level));
        }
        check_limits(&self.limits)
    }

    /// The base path; that of the public URL where none is given.
    fn base(&self) -> String {
        let path = match (&self.public_url, self.base_path.as_str()) {
            (Some(url), "") => url.path(),
            (_, path) => path,
        };
        path.trim_end_matches('/').to_owned()
    }
}

/// The least that lets a gateway work.
fn check_limits(limits: &Limits) -> Result<(), String> {
    /// A viewer's longest text message must fit.
    const LEAST_MESSAGE: usize = bowline_proto::config::TEXT;
    /// What a session takes in one piece: past that, its process drops the viewer, who would come back with the same message.
    const MOST_MESSAGE: usize = bowline_proto::frame::MAX_PAYLOAD;
    let counts = [
        ("sockets", limits.sockets),
        ("streams", limits.streams),
        ("streams_per_token", limits.streams_per_token),
        ("attach_rate", limits.attach_rate as usize),
        ("login_rate", limits.login_rate as usize),
        ("body", limits.body),
    ];
    let times = [
        ("head_within", limits.head_within),
        ("body_within", limits.body_within),
        ("hello_within", limits.hello_within),
        ("heartbeat", limits.heartbeat),
        ("stalled_after", limits.stalled_after),
    ];
    let none = counts.iter().find(|(_, count)| *count == 0).map(|(name, _)| name);
    if let Some(name) = none.or(times.iter().find(|(_, time)| time.is_zero()).map(|(name, _)| name)) {
        return Err(format!("limits.{name} is 0, which would refuse everything"));
    }
    if !(LEAST_MESSAGE..=MOST_MESSAGE).contains(&limits.message) {
        let (least, most) = (units::write_bytes(LEAST_MESSAGE as u64), units::write_bytes(MOST_MESSAGE as u64));
        return Err(format!("limits.message is at least {least} and at most {most}"));
    }
    Ok(())
}

impl Config {
    /// The gateway's settings.
    pub(crate) fn settings(&self, launcher: Launcher) -> Settings {
        let gateway = &self.gateway;
        let (forward, tls) = (gateway.forward_auth.clone(), gateway.tls.clone());
        Settings {
            listen: gateway.listen,
            public_url: gateway.public_url.clone(),
            base_path: gateway.base(),
            hosts: gateway.hosts.clone(),
            proxies: gateway.proxies.clone(),
            forward_auth: forward.header.map(|header| ForwardAuth { header, users: forward.users }),
            tls: tls.cert.zip(tls.key).map(|(cert, key)| TlsFiles { cert, key }),
            open_metrics: gateway.open_metrics,
            limits: gateway.limits.clone(),
            sessions: SessionDefaults {
                shell: self.shell.clone(),
                log_size: self.log_size,
                history: self.scrollback,
                retention: self.retention(),
            },
            launcher,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let config: Config = toml::from_str(text).unwrap();
        config.gateway.check().unwrap_err()
    }

    #[test]
    fn r55_values_that_make_no_gateway_are_explained() {
        assert!(wrong("[gateway]\npublic_url = \"ftp://a.example\"").contains("http://HOST"));
        assert!(wrong("[gateway]\npublic_url = \"https://me:secret@a.example\"").contains("public_url"));
        assert!(wrong("[gateway]\nbase_path = \"a b\"").contains("plain path"));
        assert!(wrong("[gateway.tls]\ncert = \"a.pem\"").contains("needs its key"));
        assert!(wrong("[gateway.forward_auth]\nheader = \"X-User\"").contains("users"));
        assert!(wrong("[gateway.forward_auth]\nheader = \"X-User\"\nusers = [\"me\"]").contains("proxies"));
        assert!(wrong("[gateway]\nlog_level = \"a=b=c\"").contains("log_level"));
        assert!(wrong("[gateway.limits]\nsockets = 0").contains("limits.sockets"));
        assert!(wrong("[gateway.limits]\nheartbeat = \"0s\"").contains("limits.heartbeat"));
        assert!(wrong("[gateway.limits]\nmessage = \"1K\"").contains("at least 128K"));
        assert!(wrong("[gateway.limits]\nmessage = \"1048577\"").contains("at most 1M"));
        let most: Config = toml::from_str("[gateway.limits]\nmessage = \"1M\"").unwrap();
        assert_eq!(most.gateway.check(), Ok(()));
    }

    #[test]
    fn r50_the_base_path_follows_the_public_url() {
        let base = |text: &str| toml::from_str::<Config>(text).unwrap().gateway.base();
        assert_eq!(base("[gateway]\npublic_url = \"https://a.example/term/\""), "/term");
        assert_eq!(base("[gateway]\npublic_url = \"https://a.example\""), "");
        assert_eq!(base("[gateway]\npublic_url = \"https://a.example/x\"\nbase_path = \"/y\""), "/y");
    }
}
