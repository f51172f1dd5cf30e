//! `bowline service`: the gateway as a systemd user service that starts with the machine.
//!
//! Neither its stop nor its restart ends a session: systemd signals the gateway alone (`KillMode=process`), and session
//! processes have scopes of their own.

pub(crate) mod systemd;
mod unit;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bowline_host::home::Home;
use bowline_host::launch::Launcher;
use clap::Subcommand;

use crate::config::gateway::Scopes;
use crate::config::{self, Loaded};
use crate::failure::{Code, Failure};

/// Start the gateway with the machine, as a systemd user service.
///
/// Neither restarting nor stopping the service ends a session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline service install            write the unit, start it now and with the machine
  bowline service install --print    only show the unit
  bowline service status
  journalctl --user -u bowline       what it logged
  bowline login-link                 let a browser in

What it serves is set in the configuration file (`bowline config path`). The service uses the directories and the variables \
(BOWLINE_LISTEN, ...) that are set where it is installed.")]
pub(crate) struct Service {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write the unit, start it now and with the machine
    Install {
        /// Only print the unit
        #[arg(long)]
        print: bool,
    },
    /// Stop it and remove the unit; sessions go on
    Uninstall,
    /// Say whether it is there, runs, and starts with the machine
    Status,
}

pub(crate) fn run(verb: &Service) -> anyhow::Result<ExitCode> {
    match verb.what {
        What::Install { print } => install(print),
        What::Uninstall => uninstall(),
        What::Status => status(),
    }
}

/// How the gateway runs session processes.
pub(crate) fn launcher(scopes: Scopes) -> Launcher {
    let in_scopes = match scopes {
        Scopes::Always => true,
        Scopes::Never => false,
        Scopes::Auto => systemd::is_service(),
    };
    if in_scopes { Launcher::in_scopes() } else { Launcher::this_program() }
}

/// Where the unit is, or would be.
pub(crate) fn unit_path() -> anyhow::Result<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = var("XDG_CONFIG_HOME").or_else(|| var("HOME").map(|home| home.join(".config")));
    Ok(base.context("neither XDG_CONFIG_HOME nor HOME is set")?.join("systemd/user").join(unit::NAME))
}

fn install(print: bool) -> anyhow::Result<ExitCode> {
    // A service that cannot start is better noticed now.
    let loaded = Loaded::new(&[])?;
    let (config, _) = config::file().context("neither BOWLINE_CONFIG, XDG_CONFIG_HOME nor HOME is set")?;
    let program = std::env::current_exe().context("cannot find the bowline binary")?;
    let text = unit::text(&program, &unit::environment(&Home::from_env()?, &config, &loaded)?)?;
    if print {
        println!("{}", text.trim_end());
        if !config.exists() {
            eprintln!("The unit names {}, which has to be there; it may be empty.", config.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !config.exists() {
        // The unit names it, and a file that is named has to be there.
        let text = "# What the gateway serves, and more: `bowline config show` lists every key.\n";
        write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        println!("wrote {}, which sets nothing yet", config.display());
    }
    let kept = loaded.variables().collect::<Vec<_>>().join(", ");
    if !kept.is_empty() {
        println!("the service keeps what is set here by {kept}; that goes before the configuration file");
    }
    let path = unit_path()?;
    write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    if !systemd::runs() {
        let hint = "start `bowline serve` by another way at boot, such as `@reboot` in your crontab; \
                    `bowline service uninstall` removes the unit";
        return Err(Failure::new(Code::Other, "systemd does not run here, so nothing starts the unit", hint).into());
    }
    let was_active = systemd::is_active();
    systemd::systemctl(&["daemon-reload"])?;
    systemd::systemctl(&["enable", "--now", unit::NAME])?;
    if was_active {
        // A gateway that ran before is the old one.
        systemd::systemctl(&["restart", unit::NAME])?;
    }
    println!("started {}, now and with the machine", unit::NAME);
    keep_lingering();
    println!("`bowline login-link` lets a browser in");
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, text)
}

/// Without lingering, systemd ends everything of a user's, sessions too, when they log out.
fn keep_lingering() {
    match systemd::lingers() {
        Some(true) => println!("lingering is on: it goes on when you log out"),
        _ if systemd::enable_linger() => println!("turned lingering on: it goes on when you log out"),
        _ => eprintln!(
            "Warning: lingering is off, so that everything ends when you log out. Turn it on: \
             sudo loginctl enable-linger {}",
            systemd::user()
        ),
    }
}

fn uninstall() -> anyhow::Result<ExitCode> {
    let path = unit_path()?;
    if !path.exists() {
        let message = format!("there is no {}", path.display());
        return Err(Failure::new(Code::Other, message, "`bowline service install` makes one").into());
    }
    let runs = systemd::runs();
    if runs {
        systemd::systemctl(&["disable", "--now", unit::NAME])?;
    }
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    if runs {
        systemd::systemctl(&["daemon-reload"])?;
    }
    println!("removed {}; sessions go on", path.display());
    Ok(ExitCode::SUCCESS)
}

fn status() -> anyhow::Result<ExitCode> {
    let path = unit_path()?;
    if !path.exists() {
        println!("not installed; `bowline service install` does that");
        return Ok(ExitCode::FAILURE);
    }
    println!("unit     {}", path.display());
    if !systemd::runs() {
        println!("systemd  does not run here, so nothing starts it");
        return Ok(ExitCode::FAILURE);
    }
    let active = systemd::is_active();
    println!("runs     {}", if active { "yes" } else { "no; `journalctl --user -u bowline` says why" });
    println!("at boot  {}", if systemd::is_enabled() { "yes" } else { "no; `systemctl --user enable bowline`" });
    println!(
        "lingers  {}",
        match systemd::lingers() {
            Some(true) => "yes".into(),
            _ => format!("no, so it ends when you log out; `sudo loginctl enable-linger {}`", systemd::user()),
        }
    );
    Ok(if active { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
