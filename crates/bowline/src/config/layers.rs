//! Combines the layers of the configuration. Flags override the environment, which overrides the file, which overrides
//! the defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::{Table, Value};

use super::Config;
use super::keys::{self, KEYS, Key};
use crate::failure::{Code, Failure};

/// The layer that a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File,
    /// The name of the variable.
    Environment(String),
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File => f.write_str("file"),
            Source::Environment(name) => f.write_str(name),
            Source::Flag => f.write_str("flag"),
        }
    }
}

/// A value set by a flag.
pub(crate) struct Flag {
    key: &'static Key,
    value: Value,
    /// The `NAME=VALUE` of `--limit`.
    limit: Option<String>,
}

impl Flag {
    pub(crate) fn new(path: &str, value: Value) -> anyhow::Result<Flag> {
        let key = keys::find(path).with_context(|| format!("unknown configuration key {path}"))?;
        Ok(Flag { key, value, limit: None })
    }

    /// Parses the `NAME=VALUE` of `--limit`.
    pub(crate) fn limit(text: &str) -> anyhow::Result<Flag> {
        let fail = |reason: String| {
            let names = KEYS.iter().filter_map(Key::limit).collect::<Vec<_>>().join(", ");
            Failure::new(Code::Usage, format!("--limit {text}: {reason}"), format!("the limits are {names}"))
        };
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let key = keys::find(&format!("gateway.limits.{name}"))
            .ok_or_else(|| fail(format!("there is no limit called {name}")))?;
        if value.is_empty() {
            return Err(fail("the value is missing; use NAME=VALUE".into()).into());
        }
        let defaults = Table::try_from(Config::default())?;
        Ok(Flag { key, value: parse_value(get(&defaults, key.path), value), limit: Some(text.to_owned()) })
    }
}

impl Flag {
    /// The start of an error about the value.
    fn blame(&self) -> String {
        match &self.limit {
            Some(text) => format!("--limit {text}"),
            None => format!("{} is invalid", self.key.flag.unwrap_or(self.key.path)),
        }
    }
}

/// The configuration, and the source of each value.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    sources: BTreeMap<&'static str, Source>,
}

impl Loaded {
    /// Loads the file and the environment, and applies `flags`.
    pub(crate) fn new(flags: &[Flag]) -> anyhow::Result<Loaded> {
        Loaded::layer(read()?, flags, |name| std::env::var(name).ok())
    }

    fn layer(
        file: Option<(PathBuf, String)>,
        flags: &[Flag],
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Loaded> {
        let (mut table, mut sources) = (Table::new(), BTreeMap::new());
        if let Some((path, text)) = &file {
            // Parse the text itself first, because only then does an error have a line number.
            toml::from_str::<Config>(text).map_err(|error| invalid_file(path, &error))?;
            table = text.parse().map_err(|error| invalid_file(path, &error))?;
            let found = KEYS.iter().filter(|key| get(&table, key.path).is_some());
            sources.extend(found.map(|key| (key.path, Source::File)));
            let config: Config = read_table(&table)?;
            config.gateway.check().map_err(|error| invalid_file(path, &error))?;
            config.gateway.log_filter().map_err(|error| invalid_file(path, &error))?;
            config.agent_table().map_err(|error| invalid_file(path, &error))?;
        }
        let defaults = Table::try_from(Config::default())?;
        for key in KEYS {
            let name = key.variable();
            let Some(text) = variable(&name).filter(|text| !text.is_empty()) else { continue };
            let value = parse_value(get(&defaults, key.path), &text);
            set(&mut table, key.path, value.clone());
            read_table(&table)
                .map_err(|error| invalid_value(&format!("{name} is invalid"), &explain(&value, &error)))?;
            sources.insert(key.path, Source::Environment(name));
        }
        for flag in flags {
            set(&mut table, flag.key.path, flag.value.clone());
            read_table(&table).map_err(|error| invalid_value(&flag.blame(), &explain(&flag.value, &error)))?;
            sources.insert(flag.key.path, Source::Flag);
        }
        let config: Config = read_table(&table)?;
        let contradiction = |message: String| {
            Failure::new(Code::Usage, message, "`bowline config show` prints every value and where it comes from")
        };
        config.gateway.check().map_err(contradiction)?;
        // RUST_LOG may be meant for another program, so only `serve` refuses it.
        if sources.get("gateway.log_level") == Some(&Source::Flag) {
            config.gateway.checked_log_filter()?;
        }
        Ok(Loaded { config, sources })
    }

    pub(crate) fn source(&self, key: &Key) -> &Source {
        self.sources.get(key.path).unwrap_or(&Source::Default)
    }

    /// The environment variables that set a value.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.sources.values().filter_map(|source| match source {
            Source::Environment(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The path of the configuration file, and whether it must exist because `BOWLINE_CONFIG` names it.
pub(crate) fn file() -> Option<(PathBuf, bool)> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = var("BOWLINE_CONFIG") {
        return Some((path, true));
    }
    let base = var("XDG_CONFIG_HOME").or_else(|| var("HOME").map(|home| home.join(".config")))?;
    Some((base.join("bowline/config.toml"), false))
}

/// Reads the configuration file, if there is one.
fn read() -> anyhow::Result<Option<(PathBuf, String)>> {
    let Some((path, must_exist)) = file() else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
        Err(error) => {
            let hint = match (must_exist, error.kind()) {
                (true, io::ErrorKind::NotFound) => "BOWLINE_CONFIG names this file; create it, or unset BOWLINE_CONFIG",
                (true, _) => {
                    "BOWLINE_CONFIG names this file; make it a file that you can read, or unset BOWLINE_CONFIG"
                }
                (false, _) => "make it a file that you can read, or set BOWLINE_CONFIG to another file",
            };
            let message = format!("cannot read the configuration file {}: {error}", path.display());
            Err(Failure::new(Code::Usage, message, hint).into())
        }
    }
}

fn read_table(table: &Table) -> Result<Config, toml::de::Error> {
    table.clone().try_into()
}

fn invalid_file(path: &Path, error: &dyn fmt::Display) -> Failure {
    let hint = format!("correct {}, or set BOWLINE_CONFIG to another file", path.display());
    Failure::new(Code::Usage, format!("the configuration file has an error: {}", error.to_string().trim_end()), hint)
}

fn invalid_value(blame: &str, reason: &str) -> Failure {
    Failure::new(Code::Usage, format!("{blame}: {reason}"), "docs/CONFIG.md describes the values of each key")
}

/// Says in plain words what is wrong with a value.
fn explain(value: &Value, error: &toml::de::Error) -> String {
    let message = error.message();
    match value {
        Value::String(text) if message.starts_with("invalid type: string") => match message.ends_with("a boolean") {
            true => format!("{text:?} is neither true nor false"),
            false => format!("{text:?} is not a whole number"),
        },
        Value::Integer(number) if message.starts_with("invalid value: integer") => format!("{number} is out of range"),
        _ => message.to_owned(),
    }
}

/// Returns the value at a dotted path.
pub(super) fn get<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => table.get(path),
        Some((head, rest)) => get(table.get(head)?.as_table()?, rest),
    }
}

fn set(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.into(), value)),
        Some((head, rest)) => {
            let inner = table.entry(head).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Converts text to the type of the default value. Items of a list are separated by commas. Text that does not convert
/// stays text, so that reading the table fails with a message about the type.
fn parse_value(default: Option<&Value>, text: &str) -> Value {
    let text = text.trim();
    let as_text = || Value::String(text.to_owned());
    match default {
        Some(Value::Integer(_)) => text.parse().map_or_else(|_| as_text(), Value::Integer),
        Some(Value::Boolean(_)) => match text {
            "true" | "1" | "yes" => Value::Boolean(true),
            "false" | "0" | "no" => Value::Boolean(false),
            _ => as_text(),
        },
        Some(Value::Array(_)) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Value::Array(parts.map(|part| Value::String(part.into())).collect())
        }
        _ => as_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> anyhow::Result<Loaded> {
        let flag = |(path, text): &(&'static str, &str)| Flag::new(path, (*text).into()).unwrap();
        let variable = |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        Loaded::layer(Some(("c.toml".into(), file.into())), &flags.iter().map(flag).collect::<Vec<_>>(), variable)
    }

    fn source(loaded: &Loaded, path: &str) -> String {
        loaded.source(keys::find(path).unwrap()).to_string()
    }

    #[test]
    fn r55_flags_override_variables_which_override_the_file_and_the_defaults() {
        let file = "[gateway]\nlisten = \"127.0.0.1:1\"\nhosts = [\"file\"]\n[gateway.limits]\ndrain = \"1s\"";
        let environment =
            [("BOWLINE_LISTEN", "127.0.0.1:2"), ("BOWLINE_HOSTS", "a, b"), ("BOWLINE_LIMITS_SOCKETS", "9")];
        let config = loaded(file, &environment, &[("gateway.listen", "127.0.0.1:3")]).unwrap();
        let settings = config.config.settings(bowline_host::launch::Launcher::this_program()).unwrap();
        assert_eq!((settings.listen.port(), settings.limits.sockets), (3, 9));
        assert_eq!(settings.hosts, ["a", "b"]);
        assert_eq!(source(&config, "gateway.listen"), "flag");
        assert_eq!(source(&config, "gateway.hosts"), "BOWLINE_HOSTS");
        assert_eq!(source(&config, "gateway.limits.drain"), "file");
        assert_eq!(source(&config, "gateway.limits.body"), "default");
    }

    #[test]
    fn r55_an_error_names_the_line_the_variable_or_the_flag() {
        let message = |result: anyhow::Result<Loaded>| Failure::from(result.unwrap_err()).to_string();
        assert!(message(loaded("\n[gateway]\nlisen = 1", &[], &[])).contains("line 3"));
        assert!(message(loaded("[gateway.limits]\nsockets = 0", &[], &[])).contains("c.toml"));
        assert!(message(loaded("", &[("BOWLINE_LISTEN", "here")], &[])).contains("BOWLINE_LISTEN is invalid"));
        assert!(message(loaded("", &[], &[("gateway.listen", "here")])).contains("serve --listen is invalid"));
        assert!(message(loaded("", &[], &[("gateway.tls.cert", "a")])).contains("tls.cert and tls.key"));
        let scrollback = message(loaded("", &[("BOWLINE_SCROLLBACK", "x")], &[]));
        assert!(scrollback.contains("BOWLINE_SCROLLBACK is invalid: \"x\" is not a whole number"), "{scrollback}");
        let metrics = message(loaded("", &[("BOWLINE_OPEN_METRICS", "x")], &[]));
        assert!(metrics.contains("\"x\" is neither true nor false"), "{metrics}");
        let tries = message(loaded("", &[("BOWLINE_RECONNECT_TRIES", "x")], &[]));
        assert!(tries.contains("never"), "{tries}");
        assert!(message(loaded("[gateway]\nlog_level = \"wran\"", &[], &[])).contains("\"wran\" is not a level"));
        assert!(message(loaded("", &[], &[("gateway.log_level", "wran")])).contains("\"wran\" is not a level"));
        assert!(loaded("", &[("RUST_LOG", "other_program")], &[]).is_ok());
    }

    #[test]
    fn r55_an_error_about_an_agent_names_its_key_and_the_file() {
        let message = |file: &str| Failure::from(loaded(file, &[], &[]).unwrap_err()).to_string();
        for (file, expected) in [
            ("[agents.mine]\nprotocol = \"acp\"", "agents.mine.command is missing"),
            ("[agents.mine]\ncommand = [\"a\"]", "agents.mine.protocol is missing"),
            ("[agents.gemini]\ncommand = [\"./a\"]", "agents.gemini.command must begin with an absolute path"),
            ("[agents.\"a b\"]", "agents.\"a b\" is not a valid name"),
            ("[agents.gemini]\nprotocol = \"smoke\"", "line 2"),
            ("[agents.gemini]\ncomand = [\"a\"]", "unknown field `comand`"),
        ] {
            let message = message(file);
            assert!(message.contains(expected) && message.contains("c.toml"), "{message}");
        }
    }

    #[test]
    fn r55_variables_leave_agents_alone_and_the_gateway_gets_them() {
        let file = "[agents.mine]\nprotocol = \"acp\"\ncommand = [\"a\"]";
        let loaded = loaded(file, &[("BOWLINE_AGENTS", "x"), ("BOWLINE_SCROLLBACK", "9")], &[]).unwrap();
        let settings = loaded.config.settings(bowline_host::launch::Launcher::this_program()).unwrap();
        assert_eq!(settings.agents.get("mine").unwrap().command, ["a"]);
        assert!(settings.agents.get("gemini").is_some());
    }

    #[test]
    fn r55_an_error_about_a_limit_names_the_limit_and_the_expected_form() {
        let message = |text: &str| {
            let loaded = Flag::limit(text).and_then(|flag| Loaded::layer(None, &[flag], |_| None));
            Failure::from(loaded.unwrap_err()).to_string()
        };
        for (text, expected) in [
            ("streams=x", "--limit streams=x: \"x\" is not a whole number"),
            ("attach_rate=-1", "--limit attach_rate=-1: -1 is out of range"),
            ("drain=soon", "--limit drain=soon: \"soon\" is not a duration: use a number and ms"),
            ("foo=1", "--limit foo=1: there is no limit called foo\n"),
            ("streams", "--limit streams: the value is missing; use NAME=VALUE\n"),
        ] {
            assert!(message(text).contains(expected), "{}", message(text));
        }
    }

    #[test]
    fn the_table_of_keys_is_complete() {
        fn leaves(table: &Table, at: &str, found: &mut Vec<String>) {
            for (name, value) in table {
                match value {
                    Value::Table(inner) => leaves(inner, &format!("{at}{name}."), found),
                    _ => found.push(format!("{at}{name}")),
                }
            }
        }
        let mut found = Vec::new();
        leaves(&Table::try_from(Config::default()).unwrap(), "", &mut found);
        let missing: Vec<_> = found.iter().filter(|path| keys::find(path).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // Conversely, the file accepts every key of the table; only the value is wrong here.
        for key in KEYS {
            let mut table = Table::new();
            set(&mut table, key.path, Value::Datetime("1979-05-27".parse().unwrap()));
            let error = read_table(&table).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.contains("unknown field"), "{}: {error}", key.path);
        }
    }
}
