//! The configuration and its defaults. `layers` combines defaults, file, environment and flags; `keys` documents every
//! key; `agents` has the programs of agent sessions; `gateway` has the settings of `bowline serve`; `show` is the verb
//! `bowline config`.

mod agents;
pub(crate) mod gateway;
mod keys;
mod layers;
pub(crate) mod show;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bowline_client::keys::DetachKey;
use bowline_host::agents::{AgentConfig, DEFAULT_TRANSCRIPT_SIZE};
use bowline_host::remove::Retention;
use bowline_host::{log, spec};
use bowline_proto::backoff::Backoff;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub(crate) use self::gateway::GatewayConfig;
pub(crate) use self::layers::{Flag, Loaded, file};
use crate::units;

/// Everything that can be configured, with its default.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The prefix key for Bowline's own keys. `None` if there is no such key.
    #[serde(deserialize_with = "read_detach_key", serialize_with = "write_detach_key")]
    pub(crate) detach_key: Option<DetachKey>,
    /// The program of a session without a command. `None` for the login shell.
    pub(crate) shell: Option<PathBuf>,
    /// Bytes of output that a session keeps.
    #[serde(with = "units::size_text")]
    pub(crate) log_size: u64,
    /// Lines that a session keeps above its screen.
    pub(crate) scrollback: u32,
    /// Bytes of a conversation's transcript, past which it accepts no more prompts.
    #[serde(with = "units::size_text")]
    transcript_size: u64,
    /// How long an approval waits until it is denied. `None` for forever.
    #[serde(with = "units::time_or_never")]
    approval_deadline: Option<Duration>,
    /// Failed connection attempts after which an attach gives up and waits for a key.
    reconnect_tries: Tries,
    pub(crate) retention: RetentionConfig,
    pub(crate) gateway: GatewayConfig,
    /// Agents by name. They change the built-in ones, or add others.
    agents: BTreeMap<String, AgentConfig>,
}

/// A number, or `"never"` to never give up.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "a number, or \"never\"")]
enum Tries {
    Limited(u32),
    Unlimited(Never),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Never {
    Never,
}

/// When ended sessions are forgotten.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RetentionConfig {
    /// Days after which an exited terminal is forgotten.
    pub(crate) exited_days: u32,
    /// Bytes on disk of all exited terminals, past which the oldest are forgotten.
    #[serde(with = "units::size_text")]
    pub(crate) total_size: u64,
    /// How long a conversation that does not run is kept after its last event. `None` for ever.
    #[serde(with = "units::time_or_never")]
    conversations: Option<Duration>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            detach_key: Some(DetachKey::default()),
            shell: None,
            log_size: log::DEFAULT_SIZE,
            scrollback: spec::DEFAULT_SCROLLBACK,
            transcript_size: DEFAULT_TRANSCRIPT_SIZE,
            approval_deadline: None,
            reconnect_tries: Backoff::NATIVE.tries.map_or(Tries::Unlimited(Never::Never), Tries::Limited),
            retention: RetentionConfig::default(),
            gateway: GatewayConfig::default(),
            agents: BTreeMap::new(),
        }
    }
}

impl Default for RetentionConfig {
    fn default() -> RetentionConfig {
        RetentionConfig { exited_days: 7, total_size: Retention::default().max_bytes, conversations: None }
    }
}

impl Config {
    /// Loads the configuration for a verb that depends on it. An invalid configuration is an error.
    pub(crate) fn load() -> anyhow::Result<Config> {
        Ok(Loaded::new(&[])?.config)
    }

    /// Loads the configuration for a verb that can work without it. An invalid configuration is only a warning.
    pub(crate) fn load_or_default() -> Config {
        Config::load().unwrap_or_else(|error| {
            eprintln!("{}\nContinuing with the default configuration.", crate::failure::Failure::from(error));
            Config::default()
        })
    }

    /// When an attach reconnects, and when it gives up.
    pub(crate) fn backoff(&self) -> Backoff {
        let tries = match self.reconnect_tries {
            Tries::Limited(tries) => Some(tries),
            Tries::Unlimited(Never::Never) => None,
        };
        Backoff { tries, ..Backoff::NATIVE }
    }

    pub(crate) fn retention(&self) -> Retention {
        let RetentionConfig { exited_days, total_size, conversations } = self.retention;
        let max_age = Duration::from_secs(u64::from(exited_days) * 24 * 3600);
        Retention { max_age, max_bytes: total_size, conversation_age: conversations }
    }
}

/// Parses a detach key, such as `ctrl-a`, or `none`.
pub(crate) fn parse_detach_key(text: &str) -> Result<Option<DetachKey>, String> {
    if text == "none" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|bad: bowline_client::keys::InvalidDetachKey| bad.to_string())
}

fn read_detach_key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DetachKey>, D::Error> {
    parse_detach_key(&String::deserialize(from)?).map_err(de::Error::custom)
}

fn write_detach_key<S: Serializer>(key: &Option<DetachKey>, to: S) -> Result<S::Ok, S::Error> {
    key.map_or_else(|| "none".to_owned(), |key| key.to_string().to_lowercase()).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r55_an_error_names_the_unknown_key_and_the_known_ones() {
        let error = toml::from_str::<Config>("log_sise = \"1M\"").unwrap_err().to_string();
        assert!(error.contains("log_sise") && error.contains("log_size"), "{error}");
        let config: Config =
            toml::from_str("log_size = \"1M\"\ndetach_key = \"none\"\n[retention]\nexited_days = 1").unwrap();
        assert_eq!((config.log_size, config.detach_key), (1 << 20, None));
        assert_eq!(config.retention().max_age, Duration::from_secs(86_400));
        assert!(toml::from_str::<Config>("detach_key = \"d\"").is_err());
        let kept = |text: &str| toml::from_str::<Config>(text).map(|config| config.retention().conversation_age);
        assert_eq!(kept("").unwrap(), None, "conversations are kept");
        assert_eq!(kept("[retention]\nconversations = \"90d\"").unwrap(), Some(Duration::from_secs(90 * 86_400)));
        assert!(kept("[retention]\nconversations = \"often\"").unwrap_err().to_string().contains("or \"never\""));
        for (bad, why) in [
            ("transcript_size = \"1K\"", "transcript_size must be 1 MiB to 4 GiB"),
            ("approval_deadline = \"0s\"", "approval_deadline must be one second to ten years"),
            ("approval_deadline = \"4000d\"", "approval_deadline must be one second to ten years"),
        ] {
            let error = toml::from_str::<Config>(bad).unwrap().agent_table().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let tries = |text| toml::from_str::<Config>(text).map(|config| config.backoff().tries);
        assert_eq!(tries("reconnect_tries = 2").unwrap(), Some(2));
        assert_eq!(tries("reconnect_tries = \"never\"").unwrap(), None);
        assert!(tries("reconnect_tries = \"often\"").is_err());
    }

    #[test]
    fn r55_the_printed_configuration_can_be_parsed() {
        let written = toml::to_string(&Config::default()).unwrap();
        let read: Config = toml::from_str(&written).unwrap();
        assert_eq!(toml::to_string(&read).unwrap(), written);
    }
}
