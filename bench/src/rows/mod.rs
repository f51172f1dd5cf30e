//! The measurements, each a part of the table.

mod attach;
mod crowd;
mod echo;
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
use crate::figure::Row;
use crate::mux::{Installed, Kept, Mux};
use crate::place::Place;
use crate::session::Bowline;

/// A part of the table.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) measure: fn(&Bench<'_>) -> Result<Vec<Row>>,
}

/// All parts, in the order in which they run.
pub(crate) const PARTS: [Part; 11] = [
    Part { name: "output", about: "speed and processor time of a large coloured text", measure: output::measure },
    Part { name: "echo", about: "from a key to its echo", measure: echo::measure },
    Part { name: "memory", about: "memory of idle sessions", measure: memory::measure },
    Part { name: "attach", about: "a cold attach to a full log", measure: attach::measure },
    Part { name: "stopped", about: "a viewer that never reads, under `yes`", measure: stopped::measure },
    Part { name: "list", about: "a list of a thousand ended sessions", measure: list::measure },
    Part { name: "web-output", about: "the same text through the gateway", measure: web::output },
    Part { name: "web-echo", about: "a key and its echo through the gateway, also beside a flood", measure: web::echo },
    Part { name: "web-memory", about: "the gateway's memory for idle viewers", measure: web::memory },
    Part { name: "reconnect", about: "a thousand viewers after the gateway was killed", measure: reconnect::measure },
    Part { name: "crowd", about: "five hundred viewers of one session", measure: crowd::measure },
];

/// For the help text.
pub(crate) fn names() -> String {
    let lines = PARTS.iter().map(|part| format!("  {:<12}{}", part.name, part.about));
    format!("Rows:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// A part's name from the command line.
pub(crate) fn parse_name(name: &str) -> Result<&'static str, String> {
    PARTS.iter().find(|part| part.name == name).map(|part| part.name).ok_or_else(|| "no such row".into())
}

/// What every measurement needs.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) place: &'a Place,
    pub(crate) bowline: Bowline,
    pub(crate) quick: bool,
    /// Nothing beside the least.
    alone: bool,
    installed: Installed,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(args: &Args, place: &'a Place) -> Result<Bench<'a>> {
        let bowline = Bowline::find(args.bowline.as_deref(), place)?;
        let installed = Installed::find(&bowline);
        Ok(Bench { place, bowline, quick: args.quick, alone: args.alone, installed })
    }

    /// More, or less in a quick run.
    fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// What is shown in a terminal window, Bowline first where it can be.
    fn muxes(&self) -> Vec<Mux> {
        if self.alone { Vec::new() } else { self.installed.all() }
    }

    fn name(&self, mux: Mux) -> &str {
        self.installed.name(mux)
    }

    fn keep(&self, mux: Mux, program: &[&str], count: usize) -> Result<Kept> {
        Kept::start(mux, self.place, &self.bowline, program, count).with_context(|| self.name(mux).to_owned())
    }

    /// Writes a file of the run.
    fn file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.place.path().join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }
}

/// A shell that prints `READY`, then for every line it gets prints a file and the mark of that round.
fn printer(file: &Path) -> String {
    let file = file.display();
    format!("stty -echo; printf READY; n=0; while read x; do cat {file}; n=$((n+1)); printf \"@END$n@\"; done")
}

/// A program that gives every key back as it is.
const ECHO: [&str; 3] = ["sh", "-c", "stty raw -echo; printf READY; exec cat"];

/// Rows for what is shown in a terminal window: Bowline's figure beside each of the others'.
fn beside_others(what: &str, shown: &[(Mux, crate::figure::Figure)], bench: &Bench<'_>) -> Vec<Row> {
    let own = shown.iter().find(|(mux, _)| *mux == Mux::Bowline).map(|(_, figure)| *figure);
    let others = shown.iter().filter(|(mux, _)| *mux != Mux::Bowline);
    others
        .map(|(mux, figure)| match own {
            Some(own) => Row::new(what, own).beside(bench.name(*mux), *figure),
            None => Row::new(format!("{what}: {}", bench.name(*mux)), *figure),
        })
        .map(|row| Row { instead: true, ..row })
        .collect()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
