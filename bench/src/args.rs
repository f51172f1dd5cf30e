//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::rows;

/// Measures Bowline beside the least that could do the same job, and beside what a user would pick instead.
///
/// Prints each row as it is measured, then one table. Exits with 1 when a row is over its budget.
#[derive(Debug, Parser)]
#[command(name = "bowline-bench", after_help = rows::names())]
pub(crate) struct Args {
    /// Only these rows (more than once for several)
    #[arg(long, value_name = "ROW", value_parser = rows::parse_name)]
    pub(crate) only: Vec<&'static str>,
    /// Less of everything: a look in half a minute, too short for a verdict
    #[arg(long)]
    pub(crate) quick: bool,
    /// JSON in place of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out what a user would pick instead
    #[arg(long)]
    pub(crate) alone: bool,
    /// The bowline binary; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    pub(crate) bowline: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// What this program also is.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Carries a program's PTY over a unix socket, and does nothing else
    #[command(hide = true)]
    Relay {
        /// Where to listen.
        socket: PathBuf,
        /// What to run.
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
    /// Carries a unix socket over TCP, and does nothing else; prints its port
    #[command(hide = true)]
    Forward {
        /// Where to connect.
        socket: PathBuf,
    },
}
