//! `bowline screen`: what a session shows, or showed last.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use bowline_proto::control::{Reply, Request, ScreenFormat};
use bowline_session::archive;
use bowline_session::control::{Control, ControlError};
use bowline_session::home::Home;
use bowline_session::registry::{self, Entry};
use serde_json::Value;

use crate::args;

/// How long a session under a flood may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) fn run(verb: &args::Screen) -> anyhow::Result<ExitCode> {
    let entry = registry::find(&Home::from_env()?, &verb.session)?;
    let format = ScreenFormat::from(verb.format);
    let screen = match live(&entry, format, verb.scrollback) {
        // Its process is gone, or goes right now: the files have its last screen.
        Err(ControlError::Unreachable(_)) => {
            if verb.scrollback > 0 {
                eprintln!("bowline: of an ended session only the visible screen is kept; `bowline log` has its output");
            }
            saved(&entry, format)?
        }
        other => other?,
    };
    let mut text = match screen {
        Value::String(text) => text,
        json => serde_json::to_string(&json)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn live(entry: &Entry, format: ScreenFormat, scrollback: u32) -> Result<Value, ControlError> {
    match Control::connect(&entry.dir)?.request(&Request::Screen { format, scrollback }, DEADLINE)? {
        Reply::Screen { screen } => Ok(screen),
        _ => Err(ControlError::Unexpected),
    }
}

/// From the files. They have the visible screen only; what scrolled off is in the log.
fn saved(entry: &Entry, format: ScreenFormat) -> Result<Value, archive::ArchiveError> {
    let saved = archive::read_screen(&entry.dir)?;
    Ok(match format {
        ScreenFormat::Text => saved.text.into(),
        ScreenFormat::Ansi => saved.ansi.into(),
        ScreenFormat::Json => saved.json,
    })
}
