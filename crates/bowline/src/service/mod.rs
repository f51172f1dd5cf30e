//! `bowline service`: runs the gateway as a systemd user service that starts at boot.
//!
//! Stopping or restarting the service does not end sessions: systemd signals only the gateway (`KillMode=process`), and
//! each session process runs in its own scope.

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

/// Run the gateway as a systemd user service that starts at boot.
///
/// Stopping or restarting the service does not end sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline service install            write the unit; start it now and at boot
  bowline service install --print    only print the unit
  bowline service status
  journalctl --user -u bowline       show its log
  bowline login-link                 log in a browser

The service reads the configuration file (`bowline config path`). The unit keeps the directories and the environment \
variables (BOWLINE_LISTEN, ...) that are set when you install it.")]
pub(crate) struct Service {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write the unit; start it now and at boot
    Install {
        /// Only print the unit
        #[arg(long)]
        print: bool,
    },
    /// Stop the service and remove the unit; sessions keep running
    Uninstall,
    /// Show whether the service is installed, running, and enabled at boot
    Status,
}

pub(crate) fn run(verb: &Service) -> anyhow::Result<ExitCode> {
    match verb.action {
        Action::Install { print } => install(print),
        Action::Uninstall => uninstall(),
        Action::Status => status(),
    }
}

/// Selects how the gateway starts session processes.
pub(crate) fn launcher(scopes: Scopes) -> Launcher {
    let in_scopes = match scopes {
        Scopes::Always => true,
        Scopes::Never => false,
        Scopes::Auto => systemd::is_service(),
    };
    if in_scopes { Launcher::in_scopes() } else { Launcher::this_program() }
}

/// The path of the unit, which may not exist.
pub(crate) fn unit_path() -> anyhow::Result<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = var("XDG_CONFIG_HOME").or_else(|| var("HOME").map(|home| home.join(".config")));
    Ok(base.context("neither XDG_CONFIG_HOME nor HOME is set")?.join("systemd/user").join(unit::NAME))
}

fn install(print: bool) -> anyhow::Result<ExitCode> {
    // Fail now if the configuration would keep the service from starting.
    let loaded = Loaded::new(&[])?;
    loaded.config.gateway.checked_log_filter()?;
    let (config, _) = config::file().context("neither BOWLINE_CONFIG, XDG_CONFIG_HOME nor HOME is set")?;
    let program = std::env::current_exe().context("cannot find the bowline binary")?;
    let text = unit::text(&program, &unit::environment(&Home::from_env()?, &config, &loaded)?)?;
    if print {
        println!("{}", text.trim_end());
        if !config.exists() {
            eprintln!("The unit needs the configuration file {}; create it, even if empty.", config.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !config.exists() {
        // The unit sets BOWLINE_CONFIG, and a file named there must exist.
        let text = "# Bowline's configuration: `bowline config show` lists every key.\n";
        write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        println!("wrote {}, an empty configuration file", config.display());
    }
    let variables = loaded.variables().collect::<Vec<_>>().join(", ");
    if !variables.is_empty() {
        println!("the unit keeps the values of {variables}, which override the configuration file");
    }
    let path = unit_path()?;
    write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    if !systemd::runs() {
        let hint = "start `bowline serve` at boot in another way, such as `@reboot` in your crontab; \
                    `bowline service uninstall` removes the unit";
        return Err(Failure::new(Code::Other, "systemd is not running, so nothing starts the unit", hint).into());
    }
    let was_active = systemd::is_active();
    systemd::systemctl(&["daemon-reload"])?;
    systemd::systemctl(&["enable", "--now", unit::NAME])?;
    if was_active {
        // The running gateway is the old version.
        systemd::systemctl(&["restart", unit::NAME])?;
    }
    println!("started {}; it also starts at boot", unit::NAME);
    ensure_lingering();
    println!("`bowline login-link` prints a link to log in a browser");
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, text)
}

/// Turns on lingering. Without it, systemd ends all processes of the user at logout, including sessions.
fn ensure_lingering() {
    match systemd::lingers() {
        Some(true) => println!("lingering is on: the service keeps running when you log out"),
        _ if systemd::enable_linger() => println!("turned on lingering: the service keeps running when you log out"),
        _ => eprintln!(
            "Warning: lingering is off, so the service and all sessions end when you log out. To turn it on, run: \
             sudo loginctl enable-linger {}",
            systemd::user()
        ),
    }
}

fn uninstall() -> anyhow::Result<ExitCode> {
    let path = unit_path()?;
    if !path.exists() {
        let message = format!("the service is not installed: {} does not exist", path.display());
        return Err(Failure::new(Code::Other, message, "`bowline service install` installs it").into());
    }
    let systemd_runs = systemd::runs();
    if systemd_runs {
        systemd::systemctl(&["disable", "--now", unit::NAME])?;
    }
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    if systemd_runs {
        systemd::systemctl(&["daemon-reload"])?;
    }
    println!("removed {}; sessions keep running", path.display());
    Ok(ExitCode::SUCCESS)
}

fn status() -> anyhow::Result<ExitCode> {
    let path = unit_path()?;
    if !path.exists() {
        println!("not installed; `bowline service install` installs it");
        return Ok(ExitCode::FAILURE);
    }
    println!("unit     {}", path.display());
    if !systemd::runs() {
        println!("systemd  not running, so nothing starts the unit");
        return Ok(ExitCode::FAILURE);
    }
    let active = systemd::is_active();
    println!("running  {}", if active { "yes" } else { "no; `journalctl --user -u bowline` shows why" });
    println!("at boot  {}", if systemd::is_enabled() { "yes" } else { "no; run `systemctl --user enable bowline`" });
    println!(
        "lingers  {}",
        match systemd::lingers() {
            Some(true) => "yes".into(),
            _ => format!("no, so it ends when you log out; run `sudo loginctl enable-linger {}`", systemd::user()),
        }
    );
    Ok(if active { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
