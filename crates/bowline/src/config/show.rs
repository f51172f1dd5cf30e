//! `bowline config`: prints the configuration, and where each value comes from.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};
use toml::Table;

use super::agents::AgentValue;
use super::keys::KEYS;
use super::layers::{Loaded, Source, file, get};
use crate::failure::{Code, Failure};
use crate::serve::Flags;
use crate::table;

/// Show the configuration, and where each value comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline config show                          print every value and where it comes from
  bowline config show --listen 0.0.0.0:80      the same, as `bowline serve` with this flag sees it
  ${EDITOR:-vi} \"$(bowline config path)\"       edit the configuration file

Flags override environment variables, which override the configuration file, which overrides the defaults.")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print every value and where it comes from
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Print the path of the configuration file, even if there is none yet
    Path,
}

pub(crate) fn run(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Path => {
            let (path, _) = file().ok_or_else(|| {
                let hint = "set HOME, or set BOWLINE_CONFIG to a file";
                Failure::new(Code::Usage, "cannot locate the configuration file", hint)
            })?;
            println!("{}", path.display());
        }
        Action::Show { json, flags } => show(&Loaded::new(&flags.to_layer()?)?, json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(loaded: &Loaded, as_json: bool) -> anyhow::Result<()> {
    let values = Table::try_from(&loaded.config)?;
    let agents = loaded.config.agent_values()?;
    if as_json {
        let keys = KEYS.iter().map(|key| {
            let from = match loaded.source(key) {
                Source::Environment(_) => "environment".to_owned(),
                source => source.to_string(),
            };
            let value = get(&values, key.path).map_or(Ok(Value::Null), serde_json::to_value)?;
            let entry = json!({ "value": value, "from": from, "variable": key.variable(), "flag": key.flag, "about": key.about });
            Ok((key.path.to_owned(), entry))
        });
        let agents = agents.into_iter().map(|AgentValue { path, value, from, about }| {
            let value = serde_json::to_value(value)?;
            let none = Value::Null;
            Ok((
                path,
                json!({ "value": value, "from": from.to_string(), "variable": none, "flag": none, "about": about }),
            ))
        });
        let keys = keys.chain(agents).collect::<Result<serde_json::Map<_, _>, serde_json::Error>>()?;
        println!("{}", json!({ "file": file().map(|(path, _)| path), "keys": keys }));
        return Ok(());
    }
    let rows = KEYS.iter().map(|key| {
        let value = get(&values, key.path).map_or_else(|| "-".into(), ToString::to_string);
        [key.path.into(), value, loaded.source(key).to_string()]
    });
    let agents = agents.into_iter().map(|agent| [agent.path, agent.value.to_string(), agent.from.to_string()]);
    table::print(["KEY", "VALUE", "FROM"], &rows.chain(agents).collect::<Vec<_>>());
    Ok(())
}
