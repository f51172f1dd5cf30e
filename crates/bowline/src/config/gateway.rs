//! The section `[gateway]` of the configuration: the settings of `bowline serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bowline_gateway::is_url_path;
use bowline_gateway::settings::{ForwardAuth, Limits, SessionDefaults, Settings, TlsFiles};
use bowline_host::launch::Launcher;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, de};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use url::Url;

use super::Config;
use crate::failure::{Code, Failure};
use crate::units;

/// The settings of `bowline serve`; [`super::keys`] describes each.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatewayConfig {
    #[serde(deserialize_with = "read_listen")]
    pub(crate) listen: SocketAddr,
    #[serde(deserialize_with = "read_url")]
    pub(crate) public_url: Option<Url>,
    base_path: String,
    hosts: Vec<String>,
    proxies: Vec<IpNet>,
    open_metrics: bool,
    pub(crate) log_level: String,
    pub(crate) scopes: Scopes,
    forward_auth: ForwardAuthConfig,
    tls: TlsConfig,
    #[serde(with = "LimitsConfig")]
    limits: Limits,
}

/// Whether each session process runs in its own systemd scope, so that stopping the service does not end it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scopes {
    /// If the gateway runs as a systemd service.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct ForwardAuthConfig {
    header: Option<String>,
    users: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct TlsConfig {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// [`Limits`] in the configuration file.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Limits", default = "Limits::default", deny_unknown_fields)]
struct LimitsConfig {
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
            forward_auth: ForwardAuthConfig::default(),
            tls: TlsConfig::default(),
            limits: Limits::default(),
        }
    }
}

impl GatewayConfig {
    /// Checks what the types cannot: values out of range, and values that contradict each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(url) = &self.public_url {
            let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
            if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !plain || url.fragment().is_some() {
                return Err(format!(
                    "public_url must be http://HOST or https://HOST, optionally with a path, not {url}"
                ));
            }
        }
        if !is_url_path(&self.base()) {
            return Err(format!("base_path must be empty or a plain path such as /terminals, not {:?}", self.base()));
        }
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err("--tls-cert and --tls-key (tls.cert and tls.key) must be used together".into());
        }
        match (&self.forward_auth.header, self.forward_auth.users.is_empty()) {
            (Some(header), _) if http::HeaderName::try_from(header.as_str()).is_err() => {
                return Err(format!("forward_auth.header must be the name of a header, not {header:?}"));
            }
            (Some(_), true) | (None, false) => {
                return Err("forward_auth needs both a header and the users that it may log in".into());
            }
            (Some(_), false) if self.proxies.is_empty() => {
                return Err("forward_auth works only behind a proxy that `proxies` lists, and the list is empty".into());
            }
            _ => {}
        }
        check_limits(&self.limits)
    }

    /// Parses the log level for a gateway, whichever layer it comes from.
    pub(crate) fn checked_log_filter(&self) -> Result<EnvFilter, Failure> {
        let hint = "correct --log-level, RUST_LOG, or log_level in the configuration file";
        self.log_filter().map_err(|message| Failure::new(Code::Usage, message, hint))
    }

    /// Parses the log level. A word that is no level would be the name of a module, and nothing else would be logged.
    pub(super) fn log_filter(&self) -> Result<EnvFilter, String> {
        let text = &self.log_level;
        let words = text.split(',').map(str::trim).filter(|part| !part.is_empty() && !text.contains(['[', '{']));
        let mut bare = words.filter(|part| !part.contains('='));
        let reason = match bare.find(|word| word.parse::<LevelFilter>().is_err()) {
            Some(word) => format!("{word:?} is not a level"),
            None => match EnvFilter::try_new(text) {
                Ok(filter) => return Ok(filter),
                Err(error) => error.to_string(),
            },
        };
        Err(format!(
            "log_level must be error, warn, info, debug, trace or off, or a filter such as \
             warn,bowline_gateway=debug, not {text:?}: {reason}"
        ))
    }

    /// The base path, by default that of the public URL, without a trailing slash.
    fn base(&self) -> String {
        let path = match (&self.public_url, self.base_path.as_str()) {
            (Some(url), "") => url.path(),
            (_, path) => path,
        };
        path.trim_end_matches('/').to_owned()
    }
}

fn read_listen<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    units::parse_listen(&String::deserialize(from)?).map_err(de::Error::custom)
}

fn read_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Url>, D::Error> {
    units::parse_url(&String::deserialize(from)?).map(Some).map_err(de::Error::custom)
}

/// Checks that no limit refuses everything, and that the message size suits the protocol.
fn check_limits(limits: &Limits) -> Result<(), String> {
    /// The longest text message of a viewer must fit.
    const MIN_MESSAGE: usize = bowline_proto::config::TEXT;
    /// The session process disconnects a viewer that sends more, which would reconnect and send the same message again.
    const MAX_MESSAGE: usize = bowline_proto::frame::MAX_PAYLOAD;
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
    let zero = counts.iter().find(|(_, count)| *count == 0).map(|(name, _)| name);
    if let Some(name) = zero.or(times.iter().find(|(_, time)| time.is_zero()).map(|(name, _)| name)) {
        return Err(format!("limits.{name} must not be 0, which would refuse everything"));
    }
    if !(MIN_MESSAGE..=MAX_MESSAGE).contains(&limits.message) {
        let (min, max) = (units::format_bytes_exact(MIN_MESSAGE as u64), units::format_bytes_exact(MAX_MESSAGE as u64));
        return Err(format!("limits.message must be at least {min} and at most {max}"));
    }
    Ok(())
}

impl Config {
    /// Builds the settings of the gateway. `launcher` starts its session processes.
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
                scrollback: self.scrollback,
                retention: self.retention(),
            },
            launcher,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(text: &str) -> String {
        let config: Config = toml::from_str(text).unwrap();
        config.gateway.check().unwrap_err()
    }

    #[test]
    fn r55_an_error_explains_values_that_cannot_work() {
        assert!(check_error("[gateway]\npublic_url = \"ftp://a.example\"").contains("http://HOST"));
        assert!(check_error("[gateway]\npublic_url = \"https://me:secret@a.example\"").contains("public_url"));
        assert!(check_error("[gateway]\nbase_path = \"a b\"").contains("plain path"));
        assert!(check_error("[gateway.tls]\ncert = \"a.pem\"").contains("tls.cert and tls.key"));
        assert!(check_error("[gateway.forward_auth]\nheader = \"X-User\"").contains("users"));
        assert!(check_error("[gateway.forward_auth]\nheader = \"X-User\"\nusers = [\"me\"]").contains("proxies"));
        assert!(check_error("[gateway.limits]\nsockets = 0").contains("limits.sockets"));
        assert!(check_error("[gateway.limits]\nheartbeat = \"0s\"").contains("limits.heartbeat"));
        assert!(check_error("[gateway.limits]\nmessage = \"1K\"").contains("at least 128K"));
        assert!(check_error("[gateway.limits]\nmessage = \"1048577\"").contains("at most 1M"));
        let most: Config = toml::from_str("[gateway.limits]\nmessage = \"1M\"").unwrap();
        assert_eq!(most.gateway.check(), Ok(()));
    }

    #[test]
    fn r55_a_log_level_that_would_silence_the_log_is_refused() {
        let filter = |level: &str| GatewayConfig { log_level: level.into(), ..GatewayConfig::default() }.log_filter();
        for good in ["off", "WARN", "info", "warn,bowline_gateway=debug", "bowline_gateway=trace", "[span{a=b}]=info"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["wran", "info,hyper", "a=b=c", "hyper=loud"] {
            let error = filter(bad).unwrap_err();
            assert!(error.contains("error, warn, info, debug, trace or off") && error.contains(bad), "{error}");
        }
    }

    #[test]
    fn r50_the_base_path_follows_the_public_url() {
        let base = |text: &str| toml::from_str::<Config>(text).unwrap().gateway.base();
        assert_eq!(base("[gateway]\npublic_url = \"https://a.example/term/\""), "/term");
        assert_eq!(base("[gateway]\npublic_url = \"https://a.example\""), "");
        assert_eq!(base("[gateway]\npublic_url = \"https://a.example/x\"\nbase_path = \"/y\""), "/y");
    }
}
