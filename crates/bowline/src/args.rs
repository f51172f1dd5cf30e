//! The command line: verbs, flags and their help.

mod agents;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bowline_proto::api::IfExists;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::SessionName;
use bowline_proto::size::Size;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use self::agents::{Agent, Agents, Approvals, Approve, Deny, Stop};
use crate::keys::Key;
use crate::units;

/// Printed at the end of `bowline --help`.
const AFTER_HELP: &str = "\
Examples:
  bowline                                 serve the sessions to browsers, like `bowline serve`
  bowline new --name build -- make -j8    run make and watch it; Ctrl-\\ then d detaches
  bowline attach build                    attach to it again, from any shell
  bowline send build --enter 'make test'  type into it without attaching
  bowline screen build                    print what it shows now
  bowline agent claude 'Fix the tests'    start a conversation with a coding agent
  bowline approvals                       list what agents wait for
  bowline kill build                      end it and everything it started
  bowline --server https://host ls        list the sessions of another machine

Exit codes:
  0  success, or detached                 4  the name is already in use
  1  any other failure                    5  could not start (program, directory, disk space,
  2  wrong usage or configuration,           or an address that is already in use)
     or an ambiguous session name         6  the session process or the server does not answer
  3  no such session or token
  `attach`, and `new` without --detach, exit with the exit code of the program, with 128 + N if
  signal N ended it, or with 1 if the session was lost. `agent` without --detach exits with 0 if the
  agent reported a normal end of the run, and with 1 otherwise.

Sessions:
  SESSION is a name or an id, or a unique prefix of one; of an id, at least four characters.
  `bowline kill`, `stop`, `approve` and `deny` take full names and ids only.

Files:
  sessions       $BOWLINE_STATE_DIR, or $XDG_STATE_HOME/bowline, or ~/.local/state/bowline
  sockets        with the sessions; if that path is too long, in $BOWLINE_RUNTIME_DIR,
                 or $XDG_RUNTIME_DIR/bowline, or /tmp/bowline-UID
  configuration  $BOWLINE_CONFIG, or $XDG_CONFIG_HOME/bowline/config.toml,
                 or ~/.config/bowline/config.toml

Environment, for working on another machine:
  $BOWLINE_SERVER  URL of its `bowline serve`, for the commands that take --server
  $BOWLINE_TOKEN   token for it; `bowline token create` on that machine prints one
  $SSL_CERT_FILE   certificates to trust instead of this machine's own
Flags override the environment, which overrides the configuration file.";

/// Keep terminals running, and reach them from any shell, browser or phone.
///
/// Each session has its own process. Close the terminal, lose the connection or restart the gateway: the program keeps
/// running, and attaching again shows exactly the screen and output that you would have seen.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Use the gateway at this URL instead of this machine; needs a token in BOWLINE_TOKEN
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "BOWLINE_SERVER",
        hide_env_values = true,
        display_order = 900
    )]
    pub(crate) server: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// The verbs that work on this machine only, and refuse --server.
pub(crate) const LOCAL_VERBS: [&str; 5] = ["prune", "serve", "service", "config", "completions"];

impl Args {
    /// Builds the parser. The local verbs accept --server, so that they can refuse it with a hint, but their help does not
    /// show it.
    pub(crate) fn parser() -> clap::Command {
        let command = Args::command();
        let server = command.get_arguments().find(|arg| arg.get_id() == "server").cloned().map(|arg| arg.hide(true));
        let is_local = |verb: &clap::Command| LOCAL_VERBS.contains(&verb.get_name());
        command.mut_subcommands(|verb| if is_local(&verb) { verb.args(server.clone()) } else { verb })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    New(New),
    Attach(Attach),
    Agent(Agent),
    Agents(Agents),
    Approvals(Approvals),
    Approve(Approve),
    Deny(Deny),
    Stop(Stop),
    Ls(Ls),
    Kill(Kill),
    Send(Send),
    Screen(Screen),
    Log(Log),
    Rename(Rename),
    Restart(Restart),
    Prune(Prune),
    Serve(crate::serve::Serve),
    Service(crate::service::Service),
    Token(crate::token::Token),
    LoginLink(crate::login_link::LoginLink),
    Config(crate::config::show::ConfigArgs),
    Doctor(crate::doctor::Doctor),
    Completions(Completions),
}

/// Start a program in a new session and attach to it.
///
/// The program inherits the environment, with TERM=xterm-256color, COLORTERM=truecolor and BOWLINE_SESSION set, and
/// without the variables that identify the terminal you are in. With --server, it gets the environment and the home
/// directory of the server instead; --env and --cwd change them. There, --cwd '~/DIR' (in quotes) is below that home
/// directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline new                               start a login shell
  bowline new --name build -- make -j8      run make in a session called build
  id=$(bowline new --detach -- ./train.py)  do not attach; print only the id
  bowline new --name db --if-exists return --cwd ~ -- psql
                                            attach if it is running, start it if not")]
pub(crate) struct New {
    /// Name of the session: letters, digits, and . _ -
    #[arg(long, short)]
    pub(crate) name: Option<SessionName>,
    /// Do not attach; print the id
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Start in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Size of the terminal until a viewer attaches, as COLUMNSxROWS [default: that of this terminal, or 80x24]
    #[arg(long, value_parser = units::parse_size)]
    pub(crate) size: Option<Size>,
    /// How much output to keep, such as 512K, 8M or 1G [default: 8M]
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes, env = "BOWLINE_LOG_SIZE")]
    pub(crate) log_size: Option<u64>,
    /// How many lines to keep above the screen [default: 1000]
    #[arg(long, value_name = "LINES", value_parser = units::parse_number::<u32>, env = "BOWLINE_SCROLLBACK")]
    pub(crate) scrollback: Option<u32>,
    /// End the session after this long without a viewer, such as 30m or 12h; 0s for never [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) ttl: Option<Duration>,
    /// What to do if a running session already has the name
    #[arg(long, value_name = "ACTION", value_enum, default_value_t)]
    pub(crate) if_exists: IfExistsArg,
    /// Set an environment variable for the program; repeatable
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Print the session as JSON; needs --detach
    #[arg(long, requires = "detach")]
    pub(crate) json: bool,
    /// Program and arguments [default: your login shell]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) argv: Vec<OsString>,
}

/// [`IfExists`], as a flag.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum IfExistsArg {
    /// Fail
    #[default]
    Fail,
    /// Use that session if it has the same command and directory; otherwise fail
    Return,
    /// End that session and start a new one
    Restart,
}

impl From<IfExistsArg> for IfExists {
    fn from(arg: IfExistsArg) -> IfExists {
        match arg {
            IfExistsArg::Fail => IfExists::Fail,
            IfExistsArg::Return => IfExists::Return,
            IfExistsArg::Restart => IfExists::Restart,
        }
    }
}

/// Show a session in this terminal and type into it.
///
/// Ctrl-\ then d detaches, Ctrl-\ twice sends Ctrl-\, Ctrl-\ then ? shows the other keys.
///
/// Of an agent session, the conversation is shown. Enter sends a prompt, Ctrl-C stops the run, Ctrl-D leaves.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline attach                     attach to the newest running session
  bowline attach build
  bowline attach build --observe     watch only: do not type, do not change the size
  bowline attach build --claim-size  resize the session to this terminal

While another viewer decides the size, this terminal shows the part of the screen around the cursor that fits.

For a session that has ended, attach prints the last screen and exits with the exit code of the program. For a lost session, \
it prints the last screen and exits with 1; `bowline restart` starts the session again.")]
pub(crate) struct Attach {
    /// Name or id of the session, or a unique prefix of one [default: the newest running session]
    pub(crate) session: Option<String>,
    /// Watch only: do not type, do not change the size
    #[arg(long, short, conflicts_with = "claim_size")]
    pub(crate) observe: bool,
    /// Resize the session to this terminal, even if another viewer decides the size
    #[arg(long, short)]
    pub(crate) claim_size: bool,
    /// Prefix key for Bowline's own keys, such as ctrl-\ or ctrl-a; `none` disables it
    #[arg(long, value_name = "KEY", env = "BOWLINE_DETACH_KEY")]
    pub(crate) detach_key: Option<String>,
}

/// List sessions.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "list",
    after_help = "\
Examples:
  bowline ls
  bowline ls --json | jq -r '.sessions[] | select(.state == \"running\") | .name'"
)]
pub(crate) struct Ls {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// For shell completions: print the names and ids that start with this word, one per line
    #[arg(long, hide = true, value_name = "WORD", conflicts_with = "json")]
    pub(crate) complete: Option<String>,
}

/// End sessions and everything they started, and forget them (remove their files).
///
/// Every process of the session gets SIGHUP and, after the grace period, SIGKILL, even if it has left the terminal. A
/// tmux or screen server, gpg-agent, ssh-agent and other Bowline sessions started from it are spared.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline kill build
  bowline kill build --keep      keep its screen and log; `bowline restart` starts it again
  bowline kill --all")]
pub(crate) struct Kill {
    /// Names or ids of the sessions; a prefix is not enough
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) sessions: Vec<String>,
    /// All sessions of this machine, including ended ones
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep the files of the sessions
    #[arg(long)]
    pub(crate) keep: bool,
    /// Grace period between SIGHUP and SIGKILL [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) grace: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Type into a session, signal its program, or prompt its agent, without attaching.
///
/// Types the text first, then the keys in the order given, then Enter with --enter. To an agent session, the text is a
/// prompt, which waits behind those that came before.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline send build 'make test' --enter     several words are joined by spaces
  git diff | bowline send notes -            read the text from standard input
  bowline send menu --key Down --key Enter   press keys by name
  bowline send build --signal INT            send a signal instead
  bowline send dev 'Now run the tests'       prompt the agent of an agent session

The text must be UTF-8 and can have any length. It is typed in pieces of 64 KiB, each once and in order. A session queues \
up to 256 KiB that its program has not read; when the queue is full, send waits for room, and fails after --wait. The error \
says how much was typed. --json prints the result of the last piece.

Keys: Enter, Tab, BTab (Shift-Tab), Escape, Space, Backspace, Delete, Insert, Home, End, PageUp, PageDown, Up, Down, Left, \
Right, F1 to F12. C-x is Ctrl-x, M-x is Alt-x, and a single character stands for itself. Keys send what xterm sends; M-x \
sends Escape and x. Arrows, Home and End depend on the cursor mode of the program when send starts: Up sends ESC [ A, or \
ESC O A in application mode. To press keys before a text, run send twice.")]
pub(crate) struct Send {
    /// Name or id of the session, or a unique prefix of one
    pub(crate) session: String,
    /// Press a key after the text, such as Enter, Up or C-c; repeatable
    #[arg(long = "key", short, value_name = "KEY", value_parser = Key::parse)]
    pub(crate) keys: Vec<Key>,
    /// Press Enter at the end
    #[arg(long)]
    pub(crate) enter: bool,
    /// Send a signal to the foreground program instead: HUP, INT, QUIT, KILL, TERM, USR1, USR2, STOP, TSTP, CONT, WINCH
    #[arg(long, short, value_name = "SIGNAL", value_parser = units::parse_signal, conflicts_with_all = ["text", "keys", "enter"])]
    pub(crate) signal: Option<String>,
    /// How long to wait for a program that does not read its input, or an agent with too many prompts
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "1m")]
    pub(crate) wait: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Text to type, or - for standard input; put -- before text that starts with a dash
    #[arg(required_unless_present_any = ["signal", "keys", "enter"])]
    pub(crate) text: Vec<String>,
}

/// Print the screen of a session, or the last screen of an ended one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline screen build
  bowline screen build --scrollback 200 | grep error
  bowline screen build --format json | jq .cursor")]
pub(crate) struct Screen {
    /// Name or id of the session, or a unique prefix of one
    pub(crate) session: String,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Also print this many lines from above the screen
    #[arg(long, value_name = "LINES", value_parser = units::parse_number::<u32>, default_value_t = 0)]
    pub(crate) scrollback: u32,
}

/// [`ScreenFormat`], as a flag.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// Plain text
    #[default]
    Text,
    /// Text with colours and attributes, as escape sequences
    Ansi,
    /// Cells, cursor and modes
    Json,
}

impl From<Format> for ScreenFormat {
    fn from(format: Format) -> ScreenFormat {
        match format {
            Format::Text => ScreenFormat::Text,
            Format::Ansi => ScreenFormat::Ansi,
            Format::Json => ScreenFormat::Json,
        }
    }
}

/// Print the output of a session, as far back as it is kept, or the conversation of an agent session.
///
/// In a terminal, queries that the terminal would answer are left out. In a pipe or a file, the bytes are exactly those
/// that the program wrote.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline log build | less -R
  bowline log build --follow
  bowline log build --from 1048576 --to 2097152 > part
  bowline log dev --json --from 100       the events of an agent session, from number 100 on

The conversation of an agent session is printed as text: prompts after `>`, what the agent wrote, and a line for each \
tool, approval and end of a run. With --json, each line is an event of its journal.")]
pub(crate) struct Log {
    /// Name or id of the session, or a unique prefix of one
    pub(crate) session: String,
    /// Start at this byte offset, or event of an agent session [default: the oldest one kept]
    #[arg(long, value_name = "OFFSET", value_parser = units::parse_number::<u64>)]
    pub(crate) from: Option<u64>,
    /// Stop before this byte offset or event [default: the end]
    #[arg(long, value_name = "OFFSET", value_parser = units::parse_number::<u64>, conflicts_with = "follow")]
    pub(crate) to: Option<u64>,
    /// Keep printing new output until the session ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the events of an agent session as JSON, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Rename a session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline rename build build-old
  bowline rename k3v9x0q2m7aa build   name a session that has none")]
pub(crate) struct Rename {
    /// Name or id of the session, or a unique prefix of one
    pub(crate) session: String,
    /// New name: letters, digits, and . _ -
    pub(crate) name: SessionName,
}

/// Start an ended or lost session again, with the same command, directory and id.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline restart build
  bowline restart build --attach   and attach to it")]
pub(crate) struct Restart {
    /// Name or id of the session, or a unique prefix of one
    pub(crate) session: String,
    /// Attach to it
    #[arg(long, short)]
    pub(crate) attach: bool,
    /// Print the session as JSON
    #[arg(long, conflicts_with = "attach")]
    pub(crate) json: bool,
}

/// Forget ended sessions that are old or take too much space (remove their files).
///
/// This also happens whenever a session starts, and every hour while `bowline serve` runs. Lost terminals are kept until
/// you kill or restart them. Conversations with agents are kept unless `retention.conversations` is configured.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline prune                  forget sessions past the configured limits
  bowline prune --older 0s       forget every exited terminal
  bowline prune --older 90d --conversations
                                 also conversations that had no event for 90 days and do not run
  bowline prune --dry-run        only print what would be forgotten")]
pub(crate) struct Prune {
    /// Forget terminals that exited longer ago than this, such as 12h or 7d [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) older: Option<Duration>,
    /// With --older, also forget conversations whose last event is older and that do not run
    #[arg(long, requires = "older")]
    pub(crate) conversations: bool,
    /// Forget the oldest while exited terminals take more than this in total [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    pub(crate) total_size: Option<u64>,
    /// Only print what would be forgotten
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a shell completion script; bash, zsh and fish also complete sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline completions bash > ~/.local/share/bash-completion/completions/bowline
  bowline completions zsh  > ~/.zfunc/_bowline
  bowline completions fish > ~/.config/fish/completions/bowline.fish

For zsh, put `fpath+=~/.zfunc` before compinit in ~/.zshrc.

The script completes the sessions of this machine, or of the one that --server or BOWLINE_SERVER names.")]
pub(crate) struct Completions {
    /// Shell to print the script for
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Collects the long names of each short flag of `command` and its subcommands.
    fn collect_short_flags(command: &clap::Command, found: &mut BTreeMap<char, Vec<String>>) {
        for arg in command.get_arguments() {
            let long = arg.get_long().unwrap_or_default().to_owned();
            arg.get_short().into_iter().for_each(|short| found.entry(short).or_default().push(long.clone()));
        }
        command.get_subcommands().for_each(|verb| collect_short_flags(verb, found));
    }

    #[test]
    fn a_short_flag_means_the_same_everywhere() {
        let mut found = BTreeMap::new();
        collect_short_flags(&Args::parser(), &mut found);
        assert!(found.contains_key(&'d'), "{found:?}");
        for (short, mut longs) in found {
            longs.dedup();
            assert_eq!(longs.len(), 1, "-{short} is {longs:?}");
        }
    }
}
