//! Bowline's benchmark: what a session costs beside the least that could do the same job, in one run on one machine.
//!
//! Where it can be, a budget is a ratio to something measured a moment before or after, so that a slow machine slows
//! both. A busy one does not change both alike, so a run waits for quiet and says when there was none. In the order that
//! a run walks:
//!
//! - [`args`]: what to run;
//! - [`place`]: the directory and the processes of a run, and how they end;
//! - [`text`]: the coloured text that programs print, and how many bytes a screen of it needs;
//! - [`pty`], [`relay`]: the least: a program on a PTY, and a process that carries a PTY over a socket;
//! - [`session`], [`gateway`], [`wire`], [`viewer`]: Bowline, the ways to it, and a viewer of it;
//! - [`mux`]: what a user would pick instead;
//! - [`rows`]: the measurements;
//! - [`machine`], [`figure`], [`table`]: where they were made, what they say, and how they are shown.

mod args;
mod figure;
mod gateway;
mod machine;
mod mux;
mod place;
mod pty;
mod relay;
mod rows;
mod session;
mod table;
mod text;
mod viewer;
mod wire;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::args::{Args, Verb};
use crate::place::Place;
use crate::rows::Bench;
use crate::table::Table;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    match &args.verb {
        Some(Verb::Relay { socket, program }) => {
            relay::run(socket, program)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::Forward { socket }) => {
            relay::forward(socket)?;
            return Ok(ExitCode::SUCCESS);
        }
        None => {}
    }
    place::end_on_signals()?;
    let place = Place::new()?;
    let bench = Bench::new(&args, &place)?;
    let mut table = Table::new(&bench);
    for part in rows::PARTS {
        if args.only.is_empty() || args.only.contains(&part.name) {
            table.busy = table.busy.max(machine::wait_until_quiet());
            eprintln!("measuring {}: {}", part.name, part.about);
            let rows = (part.measure)(&bench)?;
            rows.iter().for_each(|row| eprintln!("{}", table::line(row)));
            table.rows.extend(rows);
        }
    }
    if args.json {
        println!("{:#}", table.json());
    } else {
        println!("{}\n{}", table.head(), table.text());
    }
    Ok(if table.is_within_budget() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
