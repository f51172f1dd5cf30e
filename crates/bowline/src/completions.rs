//! `bowline completions`: prints a shell script that completes verbs, flags and sessions.

use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::Shell;

use crate::args::{self, Args};

const BASH: &str = include_str!("completions/sessions.bash");
const ZSH: &str = include_str!("completions/sessions.zsh");
const FISH: &str = include_str!("completions/sessions.fish");

pub(crate) fn run(verb: &args::Completions) -> anyhow::Result<ExitCode> {
    println!("{}", script(verb.shell)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// The script that `clap` generates, extended to complete sessions.
fn script(shell: Shell) -> anyhow::Result<String> {
    let mut parser = Args::parser();
    parser.build();
    let mut command = visible(&parser).version(env!("CARGO_PKG_VERSION"));
    let options = options_with_values(&command);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "bowline", &mut script);
    let script = String::from_utf8(script)?;
    Ok(match shell {
        Shell::Bash => script + &BASH.replace("OPTIONS_WITH_VALUES", &options.join("|")),
        Shell::Zsh => zsh(&script),
        Shell::Fish => script + FISH,
        _ => script,
    })
}

/// Copies the command without its hidden parts, which the generators of `clap_complete` would include.
fn visible(command: &Command) -> Command {
    let generated = |id: &str| ["help", "version"].contains(&id);
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set() && !generated(arg.get_id().as_str()));
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && !generated(verb.get_name()));
    let aliases: Vec<_> = command.get_visible_aliases().map(str::to_owned).collect();
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .visible_aliases(aliases)
        // Global arguments are already copied into each verb.
        .args(args.map(|arg| arg.clone().global(false)))
        .subcommands(verbs.map(visible))
}

/// The options of all verbs that take a value.
fn options_with_values(command: &Command) -> Vec<String> {
    let takes_value = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_positional();
    let names = |arg: &Arg| {
        let short = arg.get_short().map(|short| format!("-{short}"));
        short.into_iter().chain(arg.get_long().map(|long| format!("--{long}"))).collect::<Vec<_>>()
    };
    let own = command.get_arguments().filter(takes_value).flat_map(names);
    let mut all: Vec<String> = own.chain(command.get_subcommands().flat_map(options_with_values)).collect();
    all.sort();
    all.dedup();
    all
}

/// Replaces the zsh action of each session argument with `_bowline_sessions`.
fn zsh(script: &str) -> String {
    let is_session = |line: &str| {
        let spec = line.strip_prefix('\'').map(|spec| spec.trim_start_matches(['*', ':']));
        spec.is_some_and(|spec| spec.starts_with("session -- ") || spec.starts_with("sessions -- "))
    };
    let line = |line: &str| match line.strip_suffix(":_default' \\") {
        Some(spec) if is_session(line) => format!("{spec}:_bowline_sessions' \\\n"),
        _ if line == "_bowline() {" => format!("{line}\n    local -a bowline_words=(\"${{words[@]}}\")\n"),
        // The function must be defined before the script first runs.
        _ if line.starts_with("if [ \"$funcstack[1]\"") => format!("{ZSH}\n{line}\n"),
        _ => format!("{line}\n"),
    };
    script.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zsh_completes_every_session_argument() {
        let script = script(Shell::Zsh).unwrap();
        // attach, kill, send, stop, screen, log, rename and restart.
        assert_eq!(script.matches(":_bowline_sessions' \\").count(), 8);
        assert_eq!(script.matches("bowline_words=(").count(), 1);
        assert_eq!(script.matches("_bowline_sessions() {").count(), 1);
    }

    #[test]
    fn options_with_values_do_not_include_flags() {
        let options = options_with_values(&visible(&Args::parser()));
        for option in ["--server", "--format", "--key", "-k", "--grace"] {
            assert!(options.contains(&option.to_owned()), "{option}: {options:?}");
        }
        assert!(!options.iter().any(|option| ["--json", "--keep", "--help"].contains(&option.as_str())), "{options:?}");
    }

    #[test]
    fn hidden_verbs_are_not_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell).unwrap();
            assert!(!script.contains("session-process"), "{shell}");
            assert!(script.contains("completions"), "{shell}");
        }
    }
}
