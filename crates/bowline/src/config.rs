//! The configuration file: what to do when no flag and no variable says otherwise.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bowline_client::keys::Prefix;
use bowline_proto::backoff::Backoff;
use bowline_session::remove::Retention;
use bowline_session::{log, start};
use serde::{Deserialize, Deserializer, de};

use crate::failure::{Code, Failure};
use crate::units;

/// Everything that can be configured, with its default.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The key that starts a command to bowline, such as `ctrl-\`; `none` for none.
    #[serde(deserialize_with = "detach_key")]
    pub(crate) detach_key: Option<Prefix>,
    /// The program of a session without a command.
    pub(crate) shell: Option<PathBuf>,
    /// Output kept for coming back to.
    #[serde(deserialize_with = "bytes")]
    pub(crate) log_size: u64,
    /// Lines kept above the screen.
    pub(crate) scrollback: u32,
    /// Dials without success after which an attach gives up and waits for a key; `"never"` for never.
    reconnect_tries: Tries,
    /// What is kept of ended sessions.
    pub(crate) retention: Keep,
}

/// A number, or `"never"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a number, or \"never\"")]
enum Tries {
    Number(u32),
    Word(Never),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Never {
    Never,
}

/// What is kept of ended sessions.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Keep {
    /// Days after which they are forgotten.
    pub(crate) exited_days: u32,
    /// Space that they may take together.
    #[serde(deserialize_with = "bytes")]
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
        }
    }
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { exited_days: 7, total_size: Retention::default().max_bytes }
    }
}

impl Config {
    /// Reads the file, if there is one. One that `BOWLINE_CONFIG` names has to be there.
    pub(crate) fn load() -> anyhow::Result<Config> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = var("BOWLINE_CONFIG");
        let base = var("XDG_CONFIG_HOME").or_else(|| var("HOME").map(|home| home.join(".config")));
        let Some(path) = named.clone().or_else(|| base.map(|base| base.join("bowline/config.toml"))) else {
            return Ok(Config::default());
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Config::default());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read the configuration {}", path.display()));
            }
        };
        toml::from_str(&text).map_err(|error| {
            let hint = format!("correct {}, or point BOWLINE_CONFIG elsewhere", path.display());
            Failure::new(Code::Usage, format!("the configuration is wrong: {}", error.to_string().trim_end()), hint)
                .into()
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

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    units::bytes(&String::deserialize(from)?).map_err(de::Error::custom)
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
}
