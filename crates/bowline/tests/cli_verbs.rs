//! What the verbs have in common: help, JSON output, completions, prefixes, hints.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{Terminal, World, wait_until};

const VERBS: [&str; 17] = [
    "new",
    "attach",
    "ls",
    "kill",
    "send",
    "screen",
    "log",
    "rename",
    "restart",
    "prune",
    "serve",
    "service",
    "token",
    "login-link",
    "config",
    "doctor",
    "completions",
];

#[test]
fn r55_every_verb_has_help_with_examples() {
    let world = World::new();
    let help = world.ok(&["--help"]);
    assert!(help.contains("Exit codes:") && help.contains("Examples:"), "{help}");
    assert!(!help.contains("session-process"), "the help shows a hidden verb");
    for verb in VERBS {
        assert!(help.contains(&format!("  {verb} ")), "{verb} is missing:\n{help}");
        let own = world.ok(&[verb, "--help"]);
        assert!(own.contains("Usage: bowline"), "{own}");
        assert!(own.contains("Examples:"), "{verb} has no examples:\n{own}");
    }
}

#[test]
fn r55_json_is_valid_and_new_prints_only_the_id() {
    let world = World::new();
    let created: Value = serde_json::from_str(&world.ok(&["new", "-d", "--json", "--name", "j", "cat"])).unwrap();
    assert_eq!(created["name"], "j");
    assert_eq!(created["state"], "running");
    let id = world.ok(&["new", "-d", "cat"]);
    assert_eq!(id.len(), 13, "12 letters and a newline: {id:?}");
    let json = |args: &[&str]| -> Value { serde_json::from_str(&world.ok(args)).unwrap() };
    assert_eq!(json(&["ls", "--json"])["sessions"].as_array().unwrap().len(), 2);
    assert!(json(&["send", "j", "--json", "--enter", "hi"])["seq"].is_number());
    world.wait_for_screen("j", "hi\nhi");
    assert_eq!(json(&["screen", "j", "--format", "json"])["lines"][1]["text"], "hi");
    assert_eq!(json(&["kill", "--json", "--keep", "j"])["ended"][0], created["id"]);
    assert!(json(&["prune", "--json", "--dry-run", "--older", "0s"]).is_object());
    assert_eq!(json(&["restart", "--json", "j"])["id"], created["id"]);
}

/// The session ends while `new` is still pruning, which is slow here because of the many files that an earlier prune left.
#[test]
fn r28_new_prints_the_id_of_a_session_that_is_pruned_at_once() {
    let world = World::new();
    world.configure("[retention]\nexited_days = 0\n");
    let left = world.path().join("s/sessions/gone.left");
    std::fs::create_dir_all(&left).unwrap();
    (0..10_000).for_each(|n| drop(std::fs::File::create(left.join(n.to_string())).unwrap()));
    let id = world.ok(&["new", "--detach", "--", "true"]);
    assert_eq!(id.len(), 13, "12 letters and a newline: {id:?}");
    assert!(!left.exists(), "new did not prune");
}

#[test]
fn a_closed_pipe_ends_the_output_silently() {
    let world = World::new();
    world.start("w", "for i in $(seq 1 1000); do echo line $i; done; cat");
    world.wait_for_screen("w", "line 1000");
    for args in [&["ls"][..], &["ls", "--json"], &["log", "w"], &["screen", "w"], &["prune", "--dry-run"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world.bowline(args).stdout(writer).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(141), "{args:?}");
    }
}

#[test]
fn r55_completions_exist_for_every_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.ok(&["completions", shell]);
        assert!(script.contains("bowline") && !script.contains("session-process"), "{shell}");
    }
}

/// Completes a line as bash does when Tab is pressed at its end.
const COMPLETE_IN_BASH: &str = r#"
source "$1"
[[ $(complete -p bowline) =~ -F\ ([^ ]+) ]]
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<< "$2"
[[ $2 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
"${BASH_REMATCH[1]}" bowline "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
echo "${COMPREPLY[*]}"
"#;

/// Completes `line` with the script of `bowline completions`, run by the command `shell`. `None` without that shell.
fn complete(world: &World, shell: &[&str], line: &str) -> Option<String> {
    let file = world.path().join("completions");
    std::fs::write(&file, world.ok(&["completions", shell[0]])).unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_bowline")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(&file).arg(line).env_clear().envs(world.env()).env("PATH", path);
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.unwrap(),
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let words = String::from_utf8(output.stdout).unwrap();
    Some(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn r55_bash_completes_verbs_options_and_sessions() {
    let world = World::new();
    let id = world.start("build", "cat");
    world.start("web", "cat");
    let unnamed = world.ok(&["new", "-d", "cat"]).trim().to_owned();
    let complete = |line: &str| complete(&world, &["bash", "-c", COMPLETE_IN_BASH, "bash"], line).unwrap();
    assert_eq!(complete("bowline se"), "send serve service");
    assert!(!complete("bowline ").contains("session-process"));
    let mut all = ["build", "web", &unnamed];
    all.sort_unstable();
    for line in ["bowline attach ", "bowline kill web ", "bowline log --from 3 "] {
        assert_eq!(complete(line), all.join(" "), "{line}");
    }
    assert_eq!(complete("bowline restart bui"), "build");
    assert!(complete(&format!("bowline screen {}", &id[..6])).contains(&id));
    assert_eq!(complete("bowline screen --format "), "text ansi json");
    assert!(complete("bowline attach build --o").contains("--observe"));
    assert!(!complete("bowline rename build ").contains("web"), "existing names were offered as a new name");
    assert_eq!(complete("bowline --server http://127.0.0.1:1 attach "), "", "not silent although no server answers");
    assert!(!complete("bowline prune --").contains("--server"));
}

#[test]
fn r55_fish_completes_sessions_where_it_is_installed() {
    let world = World::new();
    world.start("build", "cat");
    let script = "source $argv[1]; complete -C $argv[2]";
    let complete = |line: &str| complete(&world, &["fish", "--no-config", "-c", script], line);
    let Some(words) = complete("bowline attach bu") else {
        return eprintln!("fish is not installed: its completions were not tested");
    };
    assert_eq!(words, "build");
    assert_eq!(complete("bowline --server=http://127.0.0.1:1 attach bu").unwrap(), "");
}

/// Checks the exit code of a failed run; returns its standard error.
#[track_caller]
fn expect_failure(output: Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr
}

#[test]
fn only_verbs_that_take_server_show_it_in_their_help() {
    let world = World::new();
    let local = [&["prune"][..], &["serve"], &["service"], &["service", "install"], &["config"], &["config", "show"]];
    for verb in local.into_iter().chain([&["completions"][..]]) {
        assert!(!world.ok(&[verb, &["--help"]].concat()).contains("--server <URL>"), "{verb:?}");
    }
    for verb in ["new", "attach", "ls", "kill", "send", "screen", "log", "rename", "restart", "token", "doctor"] {
        assert!(world.ok(&[verb, "--help"]).contains("--server <URL>"), "{verb}");
    }
}

#[test]
fn an_unknown_signal_is_a_usage_error() {
    let world = World::new();
    world.start("w", "trap 'echo got it' USR1; echo up; while :; do sleep 0.02; done");
    world.wait_for_screen("w", "up");
    let stderr = expect_failure(world.run(&["send", "w", "--signal", "FOO"]), 2);
    assert!(stderr.contains("HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP, TSTP, WINCH"), "{stderr}");
    world.ok(&["send", "w", "--signal", "SigUsr1"]);
    world.wait_for_screen("w", "got it");
}

/// Runs `bowline send` with `input` on its standard input.
fn send_input(world: &World, args: &[&str], input: Vec<u8>) -> std::process::Child {
    let mut child = world.bowline(&[&["send"], args].concat());
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The pipe is closed early if the verb fails.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    child
}

/// A text of at least `bytes` bytes, with characters of many lengths, so that pieces end within characters.
fn long_text(bytes: usize) -> String {
    (0..)
        .map(|n| format!("\u{1}{n} äö€😀\n"))
        .scan(0, |len, line| {
            *len += line.len();
            (*len < bytes + line.len()).then_some(line)
        })
        .collect()
}

/// Starts a session that reads `len` bytes into the file `got`, once the file `go` exists.
fn start_reader(world: &World, len: usize) -> String {
    let script =
        format!("stty raw -echo; echo up; until [ -e go ]; do sleep 0.02; done; head -c {len} > part; mv part got");
    let id = world.start("w", &script);
    world.wait_for_screen("w", "up");
    id
}

#[test]
fn a_long_text_is_typed_once_and_in_order() {
    let world = World::new();
    let text = long_text(3 << 20);
    let id = start_reader(&world, text.len());
    let child = send_input(&world, &["w", "--json", "-"], text.clone().into());
    let events = world.path().join(format!("s/sessions/{id}/events.jsonl"));
    // The session queues this much; the rest waits until the program reads.
    wait_until("four pieces are queued", || std::fs::read_to_string(&events).unwrap().matches("command").count() >= 4);
    std::fs::write(world.path().join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["status"], "accepted");
    wait_until("the program has read everything", || world.path().join("got").exists());
    assert!(
        std::fs::read(world.path().join("got")).unwrap() == text.as_bytes(),
        "bytes are missing, repeated or out of order"
    );
}

#[test]
fn send_reports_how_much_was_typed_if_the_program_does_not_read() {
    let world = World::new();
    start_reader(&world, 1);
    let child = send_input(&world, &["w", "--wait", "300ms", "-"], long_text(1 << 20).into());
    let stderr = expect_failure(child.wait_with_output().unwrap(), 1);
    let (_, rest) = stderr.split_once("only the first ").unwrap();
    let typed: usize = rest.split_once(' ').unwrap().0.parse().unwrap();
    assert!((128 << 10..512 << 10).contains(&typed), "{stderr}");
    assert!(stderr.contains("--wait"), "{stderr}");
}

#[test]
fn send_reports_the_position_of_input_that_is_not_utf_8() {
    let world = World::new();
    start_reader(&world, 1);
    let stderr =
        |input: &[u8]| expect_failure(send_input(&world, &["w", "-"], input.into()).wait_with_output().unwrap(), 1);
    assert!(stderr(b"good \xff bad").contains("not UTF-8 at byte 5; nothing was typed"));
    assert!(stderr(b"cut short \xe2\x82").contains("not UTF-8 at byte 10; nothing was typed"));
    let late = stderr(&[&[b'x'; 100_000][..], b"\xff"].concat());
    assert!(late.contains("not UTF-8 at byte 100000; only the first 65536 bytes were typed"), "{late}");
}

#[test]
fn keys_are_pressed_by_name_after_the_text() {
    let world = World::new();
    world.start("w", "stty raw -echo; echo up; cat -v");
    world.wait_for_screen("w", "up");
    world.ok(&["send", "w", "text", "--key", "Up", "-k", "c-c", "--key", "M-x", "--key", "PageDown", "--enter"]);
    world.wait_for_screen("w", "text^[[A^C^[x^[[6~^M");
    world.start("app", r"stty raw -echo; printf '\033[?1hup'; cat -v");
    world.wait_for_screen("app", "up");
    world.ok(&["send", "app", "--key", "Up", "--key", "Home", "--key", "Delete"]);
    world.wait_for_screen("app", "^[OA^[OH^[[3~");
    let stderr = expect_failure(world.run(&["send", "w", "--key", "Entre"]), 2);
    assert!(stderr.contains("Enter, Tab") && stderr.contains("F1 to F12"), "{stderr}");
}

#[test]
fn a_session_is_found_by_a_prefix_of_its_name_or_id() {
    let world = World::new();
    let one = world.start("build-one", "echo the first; cat");
    let web = world.start("web", "echo the site; cat");
    let two = world.start("build-two", "cat");
    world.start("web-old", "cat");
    world.wait_for_screen("build-o", "the first");
    world.wait_for_screen("web", "the site");
    let ambiguous = expect_failure(world.run(&["screen", "build"]), 2);
    assert!(ambiguous.contains("build-one, build-two"), "{ambiguous}");
    expect_failure(world.run(&["screen", ""]), 3);
    expect_failure(world.run(&["screen", "nothing"]), 3);

    // Ended sessions are found, too.
    let hint = expect_failure(world.run(&["kill", "--keep", "build-o"]), 3);
    assert!(hint.contains("did you mean build-one?"), "kill must not accept a prefix: {hint}");
    assert_eq!(world.ok(&["kill", "--keep", "build-one"]), format!("ended build-one ({one})\n"));
    expect_failure(world.run(&["screen", "build"]), 2);
    assert_eq!(world.ok(&["restart", "build-o"]), format!("{one}\n"));
    assert_eq!(world.ok(&["rename", "build-o", "job"]), format!("renamed build-one ({one}) to job\n"));
    assert_eq!(world.ok(&["kill", "build-two", &two]), format!("ended build-two ({two})\n"), "given twice, ended once");

    // A name means the running session if several have it.
    world.ok(&["kill", "--keep", "web"]);
    let again = world.start("web", "echo the new site; cat");
    world.ok(&["kill", "web-old"]);
    world.wait_for_screen("web", "the new site");
    let others = [one, again].map(|id| id.chars().take(7).collect::<String>());
    let short: String = web.chars().take(7).collect();
    if !others.contains(&short) {
        let renamed = world.ok(&["rename", &short, "site"]);
        assert_eq!(renamed, format!("renamed web ({web}) to site\n"), "not found by a prefix of its id");
    }
}

#[test]
fn r55_a_wrong_configuration_names_the_key_and_the_file() {
    let world = World::new();
    world.configure("detach_kex = \"ctrl-a\"");
    let output = world.run(&["config", "show"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("detach_kex") && message.contains("config.toml"), "{message}");
}

#[test]
fn r55_a_configured_detach_key_works_and_a_flag_overrides_it() {
    let world = World::new();
    world.configure("detach_key = \"ctrl-a\"");
    world.start("w", "echo here; stty raw -echo; cat");
    world.wait_for_screen("w", "here");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("here");
    terminal.press(b"\x01d");
    assert_eq!(terminal.exit_code(), 0);
    let mut terminal = Terminal::run(&world, &["attach", "w", "--detach-key", "ctrl-]"], 80, 24);
    terminal.wait_for("here");
    terminal.press(b"\x01d still here");
    terminal.wait_for("still here");
    terminal.press(b"\x1b[93;5ud");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn attach_without_a_name_attaches_to_the_newest_session() {
    let world = World::new();
    assert_eq!(world.run(&["attach"]).status.code(), Some(3));
    world.start("old", "echo the old one; cat");
    world.start("new", "echo the new one; cat");
    let mut terminal = Terminal::run(&world, &["attach"], 80, 24);
    terminal.wait_for("the new one");
}

#[test]
fn attach_without_a_name_inside_the_only_session_says_so() {
    let world = World::new();
    let id = world.start("own", "cat");
    let stderr = expect_failure(world.bowline(&["attach"]).env("BOWLINE_SESSION", &id).output().unwrap(), 3);
    assert!(stderr.contains("the only running session is own, and this terminal is in it"), "{stderr}");
}

#[test]
fn restart_with_attach_does_nothing_without_a_terminal() {
    let world = World::new();
    world.start("w", "exit 3");
    wait_until("the session has ended", || world.info("w", "state") == "exited");
    let stderr = expect_failure(world.bowline(&["restart", "-a", "w"]).stdin(Stdio::null()).output().unwrap(), 2);
    assert!(stderr.contains("are not a terminal") && stderr.contains("without --attach"), "{stderr}");
    assert_eq!(world.info("w", "state"), "exited");
    let epoch = world.info("w", "epoch");
    world.ok(&["restart", "w"]);
    assert_ne!(world.info("w", "epoch"), epoch, "the restart kept the epoch");
}

#[test]
fn r24_queries_in_a_log_do_not_reach_the_terminal() {
    let world = World::new();
    world.start("w", r"printf 'a\033[cb\033[6n'; exit 0");
    support::wait_until("the session has ended", || world.info("w", "state") == "exited");
    assert_eq!(world.ok(&["log", "w"]), "a\x1b[cb\x1b[6n", "in a pipe, the bytes must be exactly those of the program");
    let mut terminal = Terminal::run(&world, &["log", "w"], 80, 24);
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.text(), "ab\n");
    assert!(terminal.replies.is_empty());
}

#[test]
fn r55_messages_say_what_was_done_to_an_ended_session() {
    let world = World::new();
    assert_eq!(world.ok(&["prune"]), "nothing to forget\n");
    let id = world.start("w", "echo here");
    wait_until("the session has ended", || world.info("w", "state") == "exited");
    assert_eq!(world.ok(&["kill", "--keep", "w"]), format!("w ({id}) had already ended\n"));
    assert_eq!(world.ok(&["kill", "w"]), format!("forgot w ({id})\n"));
}

#[test]
fn r55_a_range_outside_the_log_is_explained() {
    let world = World::new();
    world.start("w", "printf 0123456789; exec cat");
    world.wait_for_screen("w", "0123456789");
    let explain = |args: &[&str]| expect_failure(world.run(&[&["log", "w"], args].concat()), 1);
    assert!(explain(&["--from", "99"]).contains("--from 99 is past the end of the log, which is at 10"));
    assert!(explain(&["--to", "99"]).contains("--to 99 is past the end of the log, which is at 10"));
    assert!(explain(&["--from", "5", "--to", "3"]).contains("--to 3 is before the first byte to print, 5"));
    assert_eq!(world.ok(&["log", "w", "--from", "2", "--to", "5"]), "234");
}
