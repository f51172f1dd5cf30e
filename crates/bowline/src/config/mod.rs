//! The configuration: what can be set, with its default. `layers` says where each value comes from, `keys` names them all,
//! `gateway` is the part of `bowline serve`, `show` the verb.

pub(crate) mod gateway;
mod keys;
mod layers;
pub(crate) mod show;

use std::path::PathBuf;
use std::time::Duration;

use bowline_client::keys::Prefix;
use bowline_host::remove::Retention;
use bowline_host::{log, start};
use bowline_proto::backoff::Backoff;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub(crate) use self::gateway::GatewayConfig;
pub(crate) use self::layers::{Flag, Loaded, file};
use crate::units;

/// Everything that can be configured, with its default.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The key that starts a command to bowline, such as `ctrl-\`; `none` for none.
    #[serde(deserialize_with = "detach_key", serialize_with = "write_detach_key")]
    pub(crate) detach_key: Option<Prefix>,
    /// The program of a session without a command.
    pub(crate) shell: Option<PathBuf>,
    /// Output kept for coming back to.
    #[serde(with = "units::size_text")]
    pub(crate) log_size: u64,
    /// Lines kept above the screen.
    pub(crate) scrollback: u32,
    /// Dials without success after which an attach gives up and waits for a key; `"never"` for never.
    reconnect_tries: Tries,
    /// What is kept of ended sessions.
    pub(crate) retention: Keep,
    /// How `bowline serve` runs.
    pub(crate) gateway: GatewayConfig,
}

/// A number, or `"never"`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "a number, or \"never\"")]
enum Tries {
    Number(u32),
    Word(Never),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Never {
    Never,
}

/// What is kept of ended sessions.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Keep {
    /// Days after which they are forgotten.
    pub(crate) exited_days: u32,
    /// Space that they may take together.
    #[serde(with = "units::size_text")]
    pub(crate) total_size: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            detach_key: Some(Prefix::default()),
            shell: None,
            log_size: log::DEFAULT_SIZE,
            scrollback: start::DEFAULT_HISTORY,
            reconnect_tries: Backoff::NATIVE.tries.map_or(Tries::Word(Never::Never), Tries::Number),
            retention: Keep::default(),
            gateway: GatewayConfig::default(),
        }
    }
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { exited_days: 7, total_size: Retention::default().max_bytes }
    }
}

impl Config {
    /// The configuration, for a verb that acts by it: a mistake is an error.
    pub(crate) fn load() -> anyhow::Result<Config> {
        Ok(Loaded::new(&[])?.config)
    }

    /// The configuration, for a verb that can do without: a mistake is a warning.
    pub(crate) fn load_or_default() -> Config {
        Config::load().unwrap_or_else(|error| {
            eprintln!("{}\nGoing on with the defaults.", crate::failure::Failure::from(error));
            Config::default()
        })
    }

    /// When an attach dials again, and when it gives up.
    pub(crate) fn backoff(&self) -> Backoff {
        let tries = match self.reconnect_tries {
            Tries::Number(tries) => Some(tries),
            Tries::Word(Never::Never) => None,
        };
        Backoff { tries, ..Backoff::NATIVE }
    }

    /// The limits for ended sessions.
    pub(crate) fn retention(&self) -> Retention {
        let max_age = Duration::from_secs(u64::from(self.retention.exited_days) * 24 * 3600);
        Retention { max_age, max_bytes: self.retention.total_size }
    }
}

/// A detach key as it is written: `none` for none.
pub(crate) fn parse_detach_key(text: &str) -> Result<Option<Prefix>, String> {
    if text == "none" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|bad: bowline_client::keys::BadPrefix| bad.to_string())
}

fn detach_key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Prefix>, D::Error> {
    parse_detach_key(&String::deserialize(from)?).map_err(de::Error::custom)
}

fn write_detach_key<S: Serializer>(key: &Option<Prefix>, to: S) -> Result<S::Ok, S::Error> {
    key.map_or_else(|| "none".to_owned(), |key| key.to_string().to_lowercase()).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r55_a_wrong_key_is_named() {
        let error = toml::from_str::<Config>("log_sise = \"1M\"").unwrap_err().to_string();
        assert!(error.contains("log_sise") && error.contains("log_size"), "{error}");
        let config: Config =
            toml::from_str("log_size = \"1M\"\ndetach_key = \"none\"\n[retention]\nexited_days = 1").unwrap();
        assert_eq!((config.log_size, config.detach_key), (1 << 20, None));
        assert_eq!(config.retention().max_age, Duration::from_secs(86_400));
        assert!(toml::from_str::<Config>("detach_key = \"d\"").is_err());
        let tries = |text| toml::from_str::<Config>(text).map(|config| config.backoff().tries);
        assert_eq!(tries("reconnect_tries = 2").unwrap(), Some(2));
        assert_eq!(tries("reconnect_tries = \"never\"").unwrap(), None);
        assert!(tries("reconnect_tries = \"often\"").is_err());
    }

    #[test]
    fn r55_what_is_shown_can_be_read_again() {
        let written = toml::to_string(&Config::default()).unwrap();
        let read: Config = toml::from_str(&written).unwrap();
        assert_eq!(toml::to_string(&read).unwrap(), written);
    }
}
