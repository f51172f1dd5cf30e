//! Bowline's benchmark: compares Bowline with minimal programs that do the same job, in one run on one machine.
//!
//! Where possible, a budget is a ratio to a baseline that is measured just before or after, so that a slow machine slows
//! both. A busy machine does not slow both equally, so a run waits for the machine to be idle, and warns if it never was.
//!
//! - [`args`]: the command line;
//! - [`cleanup`]: the temporary directory and the processes of a run, which end with it;
//! - [`text`]: the coloured text that programs print, and how many bytes a screen of it needs;
//! - [`pty`], [`relay`]: the baselines: a program on a PTY, and a process that copies between a PTY and a socket;
//! - [`session`], [`gateway`], [`wire`], [`viewer`]: Bowline's processes, and a viewer of a session;
//! - [`agent`], [`transcript`]: an agent with little overhead, and long conversations with it;
//! - [`http`], [`watcher`]: clients of a gateway: one request after the other, and event streams;
//! - [`mux`]: the alternatives, such as tmux;
//! - [`attack`]: hostile clients of a gateway;
//! - [`rows`]: the measurements;
//! - [`machine`], [`figure`], [`table`]: the machine, the results, and how they are printed.

mod agent;
mod args;
mod attack;
mod cleanup;
mod figure;
mod gateway;
mod http;
mod machine;
mod mux;
mod pty;
mod relay;
mod rows;
mod session;
mod table;
mod text;
mod transcript;
mod viewer;
mod watcher;
mod wire;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::args::{Args, Verb};
use crate::cleanup::TempDir;
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
        Some(Verb::Agent) => {
            agent::run()?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::Attack(attack)) => {
            attack::run(attack)?;
            return Ok(ExitCode::SUCCESS);
        }
        None => {}
    }
    cleanup::end_on_signals()?;
    let dir = TempDir::new()?;
    let bench = Bench::new(&args, &dir)?;
    let mut table = Table::new(&bench);
    for part in rows::PARTS {
        if args.only.is_empty() || args.only.contains(&part.name) {
            table.busy = table.busy.max(machine::wait_until_idle());
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
