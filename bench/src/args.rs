//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::attack::Attack;
use crate::rows;

/// Compares Bowline with minimal programs that do the same job, and with its alternatives (tmux, screen, dtach).
///
/// Prints each row as it is measured, then one table. Exits with 1 if a row is over its budget.
#[derive(Debug, Parser)]
#[command(name = "bowline-bench", after_help = rows::names())]
pub(crate) struct Args {
    /// Measure only this row (may be repeated)
    #[arg(long, value_name = "ROW", value_parser = rows::parse_name)]
    pub(crate) only: Vec<&'static str>,
    /// Measure less, in half a minute; too short for reliable results
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out the alternatives (tmux, screen, dtach)
    #[arg(long)]
    pub(crate) alone: bool,
    /// The bowline binary [default: the one in the directory of this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) bowline: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// The processes for which this program starts itself again.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Copies between a program's PTY and a unix socket
    #[command(hide = true)]
    Relay {
        socket: PathBuf,
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
    /// Copies between a unix socket and a TCP connection; prints its port
    #[command(hide = true)]
    Forward { socket: PathBuf },
    /// Is an ACP agent whose prompts say how many lines to write
    #[command(hide = true)]
    Agent,
    /// Attacks a gateway until standard input ends
    #[command(hide = true)]
    Attack(Attack),
}
