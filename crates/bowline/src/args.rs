//! What can be typed after `bowline`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bowline_proto::api::IfExists;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::SessionName;
use bowline_proto::size::Size;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::keys::Key;
use crate::units;

/// The end of `--help`.
const AFTER_HELP: &str = "\
Examples:
  bowline                                `bowline serve`: reach the sessions from a browser
  bowline new --name build -- make -j8   run make, watch it, detach with Ctrl-\\ then d
  bowline attach build                   come back, from any shell
  bowline send build --enter 'make test' type into it without attaching
  bowline screen build                   what it shows right now
  bowline kill build                     end it and everything it started
  bowline --server https://host ls       the sessions of another machine

Exit codes:
  0  done, or detached                   4  the name is taken
  1  failed for another reason           5  could not start (program, directory, space)
  2  wrong usage or configuration,       6  the session process or the server does not answer
     or a session that is ambiguous
  3  no such session or token
  attach and new without --detach exit with the program's own code, with 128 + N when signal N
  ended it, or with 1 when the session was lost.

Sessions:
  SESSION is a name or an id, or the beginning of one if no other session begins so; of an id,
  at least four letters. `bowline kill` takes whole names and ids only.

Files:
  $BOWLINE_STATE_DIR, or $XDG_STATE_HOME/bowline, or ~/.local/state/bowline            sessions
  $BOWLINE_RUNTIME_DIR, or $XDG_RUNTIME_DIR/bowline, or /tmp/bowline-UID               sockets with long paths
  $BOWLINE_CONFIG, or $XDG_CONFIG_HOME/bowline/config.toml, or ~/.config/bowline/...   configuration

Another machine:
  $BOWLINE_SERVER  the URL of its `bowline serve`, for the verbs that take --server
  $BOWLINE_TOKEN   opens it; `bowline token create` on that machine prints one
  $SSL_CERT_FILE   certificates to trust instead of this machine's own
Flags override the environment, which overrides the configuration file.";

/// Keeps terminals alive: start a program, detach, kill anything but its session process, and come back to exactly
/// the screen and bytes that you would have seen.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Do it on another machine, whose `bowline serve` is at this URL; needs a token in BOWLINE_TOKEN
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

/// The verbs that are about this machine alone, and refuse --server.
pub(crate) const LOCAL: [&str; 5] = ["prune", "serve", "service", "config", "completions"];

impl Args {
    /// The command line, with --server in the help of those verbs only that take it. The others know it, too, so that
    /// they can say that they do not.
    pub(crate) fn parser() -> clap::Command {
        let command = Args::command();
        let server = command.get_arguments().find(|arg| arg.get_id() == "server").cloned().map(|arg| arg.hide(true));
        let is_local = |verb: &clap::Command| LOCAL.contains(&verb.get_name());
        command.mut_subcommands(|verb| if is_local(&verb) { verb.args(server.clone()) } else { verb })
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    New(New),
    Attach(Attach),
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
    Config(crate::config::show::ConfigVerb),
    Doctor(crate::doctor::Doctor),
    Completions(Completions),
}

/// Start a program in a new session, and attach to it.
///
/// The program gets this environment, with TERM=xterm-256color, COLORTERM=truecolor and BOWLINE_SESSION, and without the
/// variables by which the terminal around it says what it is. With --server it gets the server's environment and
/// directory instead, and what --env and --cwd say.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline new                               a login shell
  bowline new --name build -- make -j8      a name to come back by
  id=$(bowline new --detach -- ./train.py)  start only; the id is all that is printed
  bowline new --name db --if-exists return --cwd ~ -- psql
                                 attach to it if it runs, start it if not")]
pub(crate) struct New {
    /// A name to find it by: letters, digits, and . _ -
    #[arg(long, short)]
    pub(crate) name: Option<SessionName>,
    /// Start only, and print the id
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Start in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The terminal's size when detached, as COLUMNSxROWS [default: this terminal's, or 80x24]
    #[arg(long, value_parser = units::size)]
    pub(crate) size: Option<Size>,
    /// Output kept for coming back to, such as 512K, 8M or 1G [default: 8M]
    #[arg(long, value_parser = units::bytes, env = "BOWLINE_LOG_SIZE")]
    pub(crate) log_size: Option<u64>,
    /// Lines kept above the screen [default: 1000]
    #[arg(long, value_name = "LINES", env = "BOWLINE_SCROLLBACK")]
    pub(crate) scrollback: Option<u32>,
    /// End the session after this long without a viewer, such as 30m or 12h [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) ttl: Option<Duration>,
    /// What to do when a running session has the name
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) if_exists: Existing,
    /// Set a variable in the program's environment
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Print the session as JSON; with --detach
    #[arg(long, requires = "detach")]
    pub(crate) json: bool,
    /// The program and its arguments [default: your login shell]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) argv: Vec<OsString>,
}

/// What to do when a running session has the name.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Existing {
    /// Refuse
    #[default]
    Fail,
    /// Take that one if its command and directory are the same, refuse otherwise
    Return,
    /// End that one and start afresh
    Restart,
}

impl From<Existing> for IfExists {
    fn from(existing: Existing) -> IfExists {
        match existing {
            Existing::Fail => IfExists::Fail,
            Existing::Return => IfExists::Return,
            Existing::Restart => IfExists::Restart,
        }
    }
}

/// Show a session in this terminal and type into it.
///
/// Ctrl-\ then d detaches, Ctrl-\ twice sends Ctrl-\, Ctrl-\ then ? shows the other keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline attach                     the newest session that runs
  bowline attach build
  bowline attach build --observe     look only: keys go nowhere, the size stays
  bowline attach build --claim-size  make the session as large as this terminal

While another viewer's window decides the size, this one shows as much of the screen as fits around the cursor.

A session that has ended shows its last screen, and attach exits as the program did. One that was lost shows its last \
screen, too; the exit code is 1, and `bowline restart` starts it again.")]
pub(crate) struct Attach {
    /// The session's name or id, or the beginning of one [default: the newest one running]
    pub(crate) session: Option<String>,
    /// Look only
    #[arg(long, short, conflicts_with = "claim_size")]
    pub(crate) observe: bool,
    /// Make the session as large as this terminal, also while another viewer decides its size
    #[arg(long, short)]
    pub(crate) claim_size: bool,
    /// The key that starts a command to bowline, such as ctrl-\ or ctrl-a; none to have none
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
    /// For shell completions: print the names and ids that begin with this word, one a line
    #[arg(long, hide = true, value_name = "WORD", conflicts_with = "json")]
    pub(crate) complete: Option<String>,
}

/// End sessions and everything that they started, and forget them.
///
/// Every process of the session gets SIGHUP and, after the grace, SIGKILL, also those that left its terminal. A tmux or
/// screen server, gpg-agent, ssh-agent and other Bowline sessions that were started in it are spared.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline kill build
  bowline kill build --keep      keep its last screen and log; `bowline restart` starts it again
  bowline kill --all")]
pub(crate) struct Kill {
    /// Names or ids, whole: what is ended by mistake is gone
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) sessions: Vec<String>,
    /// All sessions of this machine, also those that have ended
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep the files of what ended
    #[arg(long)]
    pub(crate) keep: bool,
    /// Time between SIGHUP and SIGKILL [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) grace: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Type into a session, or signal its program, without attaching.
///
/// The text is typed first, then the keys in the order given, then Enter with --enter.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline send build 'make test' --enter     words are joined by spaces
  git diff | bowline send notes -            the text comes from standard input
  bowline send menu --key Down --key Enter   keys by name
  bowline send build --signal INT            a signal instead of keys

The text must be UTF-8 and can be of any length. It is typed in pieces of 64 KiB, each once and in order. A session holds \
256 KiB that its program has not read; send then waits for room, and fails after --wait. An error says how much was typed. \
With --json, the result of the last piece is printed.

Keys: Enter, Tab, BTab (Shift-Tab), Escape, Space, Backspace, Delete, Insert, Home, End, PageUp, PageDown, Up, Down, Left, \
Right, F1 to F12. C-x is Ctrl-x, M-x is Alt-x, and a single character is itself. Each sends what xterm sends; M-x is Escape \
and x. Arrows, Home and End depend on the mode that the program has set when send starts: Up is ESC [ A, or ESC O A in \
application cursor mode. To press keys before a text, send twice.")]
pub(crate) struct Send {
    /// The session's name or id, or the beginning of one
    pub(crate) session: String,
    /// Press a key after the text, such as Enter, Up or C-c; repeatable
    #[arg(long = "key", short, value_name = "KEY", value_parser = Key::parse)]
    pub(crate) keys: Vec<Key>,
    /// Press Enter last
    #[arg(long)]
    pub(crate) enter: bool,
    /// Send a signal to the foreground program instead: HUP, INT, QUIT, KILL, TERM, USR1, USR2, STOP, TSTP, CONT, WINCH
    #[arg(long, short, value_name = "SIGNAL", value_parser = units::signal, conflicts_with_all = ["text", "keys", "enter"])]
    pub(crate) signal: Option<String>,
    /// How long to wait for a program that does not read
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1m")]
    pub(crate) wait: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The text; - for standard input; after -- also what begins with a dash
    #[arg(required_unless_present_any = ["signal", "keys", "enter"])]
    pub(crate) text: Vec<String>,
}

/// Print what a session shows, or showed last.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline screen build
  bowline screen build --scrollback 200 | grep error
  bowline screen build --format json | jq .cursor")]
pub(crate) struct Screen {
    /// The session's name or id, or the beginning of one
    pub(crate) session: String,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// With this many lines above the screen
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub(crate) scrollback: u32,
}

/// How to print a screen.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// Plain text
    #[default]
    Text,
    /// Text with its colours
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

/// Print the bytes that a session's program has written, as far as they are kept.
///
/// In a terminal, what would make it answer is left out; elsewhere the bytes are exactly those of the program.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline log build | less -R
  bowline log build --follow
  bowline log build --from 1048576 --to 2097152 > part")]
pub(crate) struct Log {
    /// The session's name or id, or the beginning of one
    pub(crate) session: String,
    /// From this offset [default: the oldest byte kept]
    #[arg(long, value_name = "OFFSET")]
    pub(crate) from: Option<u64>,
    /// Up to this offset [default: the end]
    #[arg(long, value_name = "OFFSET", conflicts_with = "follow")]
    pub(crate) to: Option<u64>,
    /// Go on with what comes, until the session ends
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Give a session another name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline rename build build-old
  bowline rename k3v9x0q2m7aa build   a session without a name has its id")]
pub(crate) struct Rename {
    /// The session's name or id, or the beginning of one
    pub(crate) session: String,
    /// The new name
    pub(crate) name: SessionName,
}

/// Start an ended or lost session again: the same command in the same place, under the same id.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline restart build
  bowline restart build --attach   and go there")]
pub(crate) struct Restart {
    /// The session's name or id, or the beginning of one
    pub(crate) session: String,
    /// Attach to it
    #[arg(long, short)]
    pub(crate) attach: bool,
    /// Print the session as JSON
    #[arg(long, conflicts_with = "attach")]
    pub(crate) json: bool,
}

/// Forget ended sessions that are old or take too much space.
///
/// This also happens whenever a session is started, and every hour where `bowline serve` runs. Lost sessions stay until you look at them or kill them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline prune                  by the configured limits
  bowline prune --older 0s       every terminal that has ended
  bowline prune --dry-run        only say what would go")]
pub(crate) struct Prune {
    /// Those that ended longer ago than this, such as 12h or 7d [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) older: Option<Duration>,
    /// The oldest, while all together take more than this [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) total_size: Option<u64>,
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a script with which your shell completes verbs and flags; in bash, zsh and fish also sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline completions bash > ~/.local/share/bash-completion/completions/bowline
  bowline completions zsh  > ~/.zfunc/_bowline    (with `fpath+=~/.zfunc` before compinit in ~/.zshrc)
  bowline completions fish > ~/.config/fish/completions/bowline.fish

Sessions are those of this machine, or of --server or BOWLINE_SERVER.")]
pub(crate) struct Completions {
    /// The shell to print it for
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// What each short flag stands for, in this command and those below it.
    fn shorts(command: &clap::Command, found: &mut BTreeMap<char, Vec<String>>) {
        for arg in command.get_arguments() {
            let long = arg.get_long().unwrap_or_default().to_owned();
            arg.get_short().into_iter().for_each(|short| found.entry(short).or_default().push(long.clone()));
        }
        command.get_subcommands().for_each(|verb| shorts(verb, found));
    }

    #[test]
    fn a_short_flag_means_the_same_everywhere() {
        let mut found = BTreeMap::new();
        shorts(&Args::parser(), &mut found);
        assert!(found.contains_key(&'d'), "{found:?}");
        for (short, mut longs) in found {
            longs.dedup();
            assert_eq!(longs.len(), 1, "-{short} is {longs:?}");
        }
    }
}
