//! `bowline completions`: a script that completes verbs and flags, and in fish session names.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{self, Args};

pub(crate) fn run(verb: &args::Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(verb.shell, &mut Args::command(), "bowline", &mut script);
    std::io::stdout().write_all(&script)?;
    if verb.shell == Shell::Fish {
        // Fish adds rules up, so session names can simply be added.
        let verbs = "attach kill send screen log rename restart";
        println!(
            "complete -c bowline -n '__fish_seen_subcommand_from {verbs}' -f -a \
             \"(bowline ls 2>/dev/null | awk 'NR > 1 {{ print (\\$1 == \\\"-\\\") ? \\$2 : \\$1 }}')\""
        );
    }
    Ok(ExitCode::SUCCESS)
}
