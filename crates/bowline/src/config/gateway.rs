//! The section `[gateway]` of the configuration: the settings of `bowline serve`.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_gateway::is_url_path;
use bowline_gateway::settings::{ForwardAuth, HOME_ROOT, Limits, ProxySecret, SessionDefaults, Settings, TlsFiles};
use bowline_host::launch::Launcher;
use bowline_proto::api::Secret;
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
    roots: Vec<PathBuf>,
    open_metrics: bool,
    pub(crate) log_level: String,
    pub(crate) scopes: Scopes,
    forward_auth: ForwardAuthConfig,
    tls: TlsConfig,
    #[serde(with = "LimitsConfig")]
    pub(crate) limits: Limits,
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
    secret_header: Option<String>,
    secret_file: Option<PathBuf>,
}

/// The shortest secret of a proxy: 128 bits in hexadecimal.
const MIN_SECRET: usize = 32;
/// The longest secret of a proxy. Longer headers do not fit in every proxy's buffers.
const MAX_SECRET: u64 = 1024;

impl ForwardAuthConfig {
    fn settings(&self) -> Result<Option<ForwardAuth>, Failure> {
        let Some(header) = self.header.clone() else { return Ok(None) };
        let secret = match (&self.secret_header, &self.secret_file) {
            (Some(header), Some(file)) => Some(read_secret(header, file).map_err(|why| {
                let hint = "put 32 to 1024 letters and digits into it, such as the output of `openssl rand -hex 32`";
                let message = format!("cannot use forward_auth.secret_file {}: {why}", file.display());
                Failure::new(Code::Usage, message, hint)
            })?),
            _ => None,
        };
        Ok(Some(ForwardAuth { header, users: self.users.clone(), secret }))
    }
}

/// Reads the proxy's secret. An error contains none of it.
fn read_secret(header: &str, file: &Path) -> Result<ProxySecret, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(MAX_SECRET + 2).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    let secret = text.trim_end();
    if !(MIN_SECRET..=MAX_SECRET as usize).contains(&secret.len()) {
        return Err(format!("it must have at least {MIN_SECRET} and at most {MAX_SECRET} characters"));
    }
    if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it must be one line of ASCII characters without spaces".into());
    }
    let header = header.parse().map_err(|_| "secret_header is not the name of a header")?;
    Ok(ProxySecret { header, secret: Secret::new(secret.to_owned()) })
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
    request_rate: u32,
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
            roots: vec![PathBuf::from(HOME_ROOT)],
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
        if let Some(root) = self.roots.iter().find(|root| !root.is_absolute() && !root.starts_with("~")) {
            return Err(format!("roots must be absolute paths, or start with ~, and {} does neither", root.display()));
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
        match (&self.forward_auth.secret_header, &self.forward_auth.secret_file) {
            (Some(header), _) if http::HeaderName::try_from(header.as_str()).is_err() => {
                return Err(format!("forward_auth.secret_header must be the name of a header, not {header:?}"));
            }
            (Some(_), None) | (None, Some(_)) => {
                return Err("forward_auth.secret_header and forward_auth.secret_file must be used together".into());
            }
            (Some(_), Some(_)) if self.forward_auth.header.is_none() => {
                return Err("forward_auth.secret_header works only together with forward_auth.header".into());
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
        ("request_rate", limits.request_rate as usize),
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
    /// Builds the settings of the gateway. `launcher` starts its session processes. Fails if the proxy's secret
    /// cannot be read, or if an agent's entry is invalid.
    pub(crate) fn settings(&self, launcher: Launcher) -> Result<Settings, Failure> {
        let gateway = &self.gateway;
        let tls = gateway.tls.clone();
        Ok(Settings {
            listen: gateway.listen,
            public_url: gateway.public_url.clone(),
            base_path: gateway.base(),
            hosts: gateway.hosts.clone(),
            proxies: gateway.proxies.clone(),
            roots: gateway.roots.clone(),
            forward_auth: gateway.forward_auth.settings()?,
            tls: tls.cert.zip(tls.key).map(|(cert, key)| TlsFiles { cert, key }),
            open_metrics: gateway.open_metrics,
            limits: gateway.limits.clone(),
            sessions: SessionDefaults {
                shell: self.shell.clone(),
                log_size: self.log_size,
                scrollback: self.scrollback,
                retention: self.retention(),
            },
            agents: self.agent_table().map_err(|error| {
                Failure::new(Code::Usage, error.to_string(), "correct it in the configuration file")
            })?,
            launcher,
        })
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
        assert!(check_error("[gateway]\nroots = [\"~\", \"src\"]").contains("and src does neither"));
        assert!(check_error("[gateway]\nroots = [\"~other\"]").contains("and ~other does neither"));
        assert!(check_error("[gateway.tls]\ncert = \"a.pem\"").contains("tls.cert and tls.key"));
        assert!(check_error("[gateway.forward_auth]\nheader = \"X-User\"").contains("users"));
        assert!(check_error("[gateway.forward_auth]\nheader = \"X-User\"\nusers = [\"me\"]").contains("proxies"));
        assert!(check_error("[gateway.forward_auth]\nsecret_header = \"X-Secret\"").contains("used together"));
        assert!(check_error("[gateway.forward_auth]\nsecret_header = \"a b\"").contains("name of a header"));
        let secret = "[gateway.forward_auth]\nsecret_header = \"X-Secret\"\nsecret_file = \"s\"";
        assert!(check_error(secret).contains("together with forward_auth.header"));
        assert!(check_error("[gateway.limits]\nsockets = 0").contains("limits.sockets"));
        assert!(check_error("[gateway.limits]\nheartbeat = \"0s\"").contains("limits.heartbeat"));
        assert!(check_error("[gateway.limits]\nmessage = \"1K\"").contains("at least 128K"));
        assert!(check_error("[gateway.limits]\nmessage = \"1048577\"").contains("at most 1M"));
        let most: Config = toml::from_str("[gateway.limits]\nmessage = \"1M\"").unwrap();
        assert_eq!(most.gateway.check(), Ok(()));
    }

    #[test]
    fn r55_a_proxys_secret_must_be_one_long_line_and_an_error_does_not_contain_it() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("secret");
        let good = "0123456789abcdef0123456789abcdef";
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read_secret("x-secret", &file)
        };
        assert_eq!(read(&format!("{good}\n")).unwrap().secret.reveal(), good);
        assert!(read(&"x".repeat(1024)).is_ok());
        for bad in ["", "\n", "tooshort", &good.replace('8', " "), &good.replace('8', "\n"), &"x".repeat(1025)] {
            let error = read(bad).unwrap_err();
            assert!(
                error.starts_with("it must") && !error.contains("abcdef") && !error.contains("tooshort"),
                "{error}"
            );
        }
        assert!(
            read_secret("x-secret", temp.path()).is_err() && read_secret("x-secret", Path::new("missing")).is_err()
        );
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
