//! The measurements. Each one adds rows to the table.

mod agent_files;
mod agent_flood;
mod agent_latency;
mod agent_memory;
mod agent_prompt;
mod attach;
mod crowd;
mod echo;
mod hostile;
mod list;
mod memory;
mod output;
mod reconnect;
mod stopped;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::cleanup::TempDir;
use crate::figure::Row;
use crate::mux::{InstalledMuxes, Mux, MuxSessions};
use crate::session::Bowline;

/// One measurement, with one or more rows of the table.
pub(crate) struct Part {
    /// As in `--only NAME`.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) measure: fn(&Bench<'_>) -> Result<Vec<Row>>,
}

/// All measurements, in the order in which they run.
pub(crate) const PARTS: [Part; 18] = [
    Part {
        name: "output",
        about: "speed and processor time of printing a large coloured text",
        measure: output::measure,
    },
    Part { name: "echo", about: "time from a key to its echo", measure: echo::measure },
    Part { name: "memory", about: "memory of idle sessions", measure: memory::measure },
    Part { name: "attach", about: "time and bytes of an attach to a full log", measure: attach::measure },
    Part { name: "stopped", about: "viewers that never read, while `yes` prints", measure: stopped::measure },
    Part { name: "list", about: "time to list a thousand ended sessions", measure: list::measure },
    Part { name: "web-output", about: "the same text through the gateway", measure: web::output },
    Part { name: "web-echo", about: "echo through the gateway, also while another session floods", measure: web::echo },
    Part { name: "web-memory", about: "memory of the gateway for idle viewers", measure: web::memory },
    Part {
        name: "reconnect",
        about: "a thousand viewers reconnecting after the gateway was killed",
        measure: reconnect::measure,
    },
    Part { name: "crowd", about: "five hundred viewers of one session", measure: crowd::measure },
    Part {
        name: "hostile",
        about: "what the owner notices of hostile strangers, readers and writers",
        measure: hostile::measure,
    },
    Part {
        name: "agent-latency",
        about: "time from a line of an agent to a client of the event stream",
        measure: agent_latency::measure,
    },
    Part { name: "agent-flood", about: "5,000 events a second to 20 watchers", measure: agent_flood::measure },
    Part { name: "agent-prompt", about: "time to accept a prompt", measure: agent_prompt::measure },
    Part {
        name: "agent-list",
        about: "time to list 200 conversations of 20 MB each",
        measure: agent_files::measure_list,
    },
    Part {
        name: "agent-page",
        about: "time to read the last page of a conversation of 100 MB",
        measure: agent_files::measure_page,
    },
    Part { name: "agent-memory", about: "memory of idle agent sessions", measure: agent_memory::measure },
];

/// The list of measurements for `--help`.
pub(crate) fn names() -> String {
    let lines = PARTS.iter().map(|part| format!("  {:<15}{}", part.name, part.about));
    format!("Rows:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Parses the value of `--only`.
pub(crate) fn parse_name(name: &str) -> Result<&'static str, String> {
    PARTS
        .iter()
        .find(|part| part.name == name)
        .map(|part| part.name)
        .ok_or_else(|| "no such row; see --help for the list".into())
}

/// The settings and tools of all measurements.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) dir: &'a TempDir,
    pub(crate) bowline: Bowline,
    pub(crate) quick: bool,
    /// Without the alternatives.
    alone: bool,
    installed: InstalledMuxes,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(args: &Args, dir: &'a TempDir) -> Result<Bench<'a>> {
        let bowline = Bowline::find(args.bowline.as_deref(), dir)?;
        let installed = InstalledMuxes::find(&bowline);
        Ok(Bench { dir, bowline, quick: args.quick, alone: args.alone, installed })
    }

    /// One of two settings, depending on `--quick`.
    fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The multiplexers to compare, Bowline first; none with `--alone`.
    fn muxes(&self) -> Vec<Mux> {
        if self.alone { Vec::new() } else { self.installed.all() }
    }

    fn name(&self, mux: Mux) -> &str {
        self.installed.name(mux)
    }

    fn start_mux(&self, mux: Mux, program: &[&str], count: usize) -> Result<MuxSessions> {
        MuxSessions::start(mux, self.dir, &self.bowline, program, count).with_context(|| self.name(mux).to_owned())
    }

    /// Writes a file to the temporary directory.
    fn file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }
}

/// A shell script that prints `READY`, then for each line of input prints a file and the mark of that round.
fn printer_script(file: &Path) -> String {
    let file = file.display();
    format!("stty -echo; printf READY; n=0; while read x; do cat {file}; n=$((n+1)); printf \"@END$n@\"; done")
}

/// A program that echoes every key unchanged.
const ECHO: [&str; 3] = ["sh", "-c", "stty raw -echo; printf READY; exec cat"];

/// A row for each alternative: Bowline's figure against the alternative's.
fn against_others(what: &str, figures: &[(Mux, crate::figure::Figure)], bench: &Bench<'_>) -> Vec<Row> {
    let own = figures.iter().find(|(mux, _)| *mux == Mux::Bowline).map(|(_, figure)| *figure);
    let others = figures.iter().filter(|(mux, _)| *mux != Mux::Bowline);
    others
        .map(|(mux, figure)| match own {
            Some(own) => Row::new(what, own).against(bench.name(*mux), *figure),
            None => Row::new(format!("{what}: {}", bench.name(*mux)), *figure),
        })
        .map(|row| Row { is_alternative: true, ..row })
        .collect()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
