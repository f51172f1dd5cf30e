//! `bowline agent` and `bowline attach` to an agent session in a real terminal: what the user sees, and what keys do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::PathBuf;

use serde_json::Value;
use support::{Gateway, Proxy, Terminal, World, wait_until};

const ENTER: &[u8] = b"\r";
const CTRL_C: &[u8] = b"\x03";
const CTRL_D: &[u8] = b"\x04";

/// What the status row shows while nothing is to be done.
const IDLE: &str = "Enter sends";
/// What it shows once a form takes keys.
const READY: &str = "Enter confirms";

impl Terminal {
    /// Types a prompt of one or more lines, and sends it.
    fn prompt(&mut self, text: &str) {
        let pasted = format!("\x1b[200~{text}\x1b[201~");
        self.press(pasted.as_bytes());
        self.press(ENTER);
    }

    /// Leaves with Ctrl-D, and checks that the terminal is as it was before.
    #[track_caller]
    fn leave(&mut self) {
        self.press(CTRL_D);
        assert_eq!(self.exit_code(), 0);
        assert!(!self.is_raw() && !self.has_mode(2004) && self.has_mode(25));
    }
}

/// A file that does not exist yet; the fake agent waits for it.
fn signal_file(world: &World, name: &str) -> PathBuf {
    world.path().join(name)
}

/// A prompt that the fake agent answers with this text. The first letter is escaped, so that the prompt does not look like
/// the answer.
fn say(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    format!("say \\u{:04x}{rest}", u32::from(first.as_bytes()[0]))
}

/// The texts of all prompts in a journal.
fn prompts(world: &World, name: &str) -> Vec<String> {
    let is_prompt = |record: &&Value| record["event"]["type"] == "prompt";
    let text = |record: &Value| record["event"]["text"].as_str().unwrap().to_owned();
    world.journal(name).iter().filter(is_prompt).map(text).collect()
}

#[test]
fn r32_a_conversation_is_typed_shown_and_gone_on_with() {
    let world = World::with_agents();
    let mut terminal = Terminal::run(&world, &["agent", "fake", "--name", "dev"], 80, 24);
    terminal.wait_for(IDLE);
    terminal.prompt("say # Title\\n\\nSome **bold** text.\ntool make test");
    terminal.wait_for("Some bold text.");
    terminal.wait_for("✓ make test");
    world.wait_for_end("dev", "r0");
    terminal.leave();
    assert!(terminal.text().contains("[detached from dev; `bowline attach dev` attaches again]"));
    assert_eq!(world.info("dev", "state"), "running");

    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for("Some bold text.");
    terminal.wait_for(IDLE);
    terminal.prompt(&say("And more."));
    terminal.wait_for("And more.");
    world.wait_for_end("dev", "r1");
    terminal.leave();
    let history = terminal.history();
    for line in ["Title", "Some bold text.", "✓ make test", "And more."] {
        assert_eq!(history.lines().filter(|shown| shown.trim() == line).count(), 1, "{line}:\n{history}");
    }
    assert_eq!(prompts(&world, "dev").len(), 2);
}

#[test]
fn r32_the_first_prompt_can_be_an_argument() {
    let world = World::with_agents();
    let mut terminal = Terminal::run(&world, &["agent", "fake", "--name", "dev", "say hello"], 80, 24);
    terminal.wait_for("> say hello");
    wait_until("it is answered", || world.ok(&["log", "dev"]).contains("\nhello\n"));
    terminal.wait_for(IDLE);
    terminal.leave();
}

#[test]
fn r34_approvals_are_answered_inline_and_elsewhere() {
    let world = World::with_agents();
    world.converse("dev", "ask t1 rm -r build\nask t2 rm -r dist\nquestion q Which colour?");
    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for("│ rm -r build");
    terminal.wait_for("1. Allow once");
    terminal.wait_for(READY);
    terminal.press(b"1");
    terminal.wait_for("❯ 1. Allow once");
    terminal.press(ENTER);
    terminal.wait_for("✓ allowed: rm -r build");

    terminal.wait_for("│ rm -r dist");
    world.ok(&["deny", "dev/a1"]);
    terminal.wait_for("✗ denied: rm -r dist");

    terminal.wait_for("2. Blue");
    terminal.wait_for(READY);
    terminal.press(b"2\r");
    terminal.wait_for("2 of 2: Other");
    terminal.press(b"8080\r");
    world.wait_for_end("dev", "r0");
    terminal.wait_for(IDLE);
    terminal.leave();
    let log = world.ok(&["log", "dev"]);
    assert!(log.contains("t1: once") && log.contains("t2: reject") && log.contains("8080"), "{log}");
    let resolved = |record: &&Value| record["event"]["type"] == "approval_resolved";
    assert_eq!(world.journal("dev").iter().filter(resolved).count(), 3);
}

#[test]
fn r34_keys_of_a_prompt_never_answer_an_approval() {
    let world = World::with_agents();
    let go = signal_file(&world, "go");
    world.converse("dev", &format!("wait {}\nask t1 rm -r build", go.display()));
    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for("Ctrl-C stops");
    terminal.press(b"say use option ");
    terminal.wait_for("> say use option");
    std::fs::write(go, "").unwrap();
    terminal.wait_for("│ rm -r build");
    terminal.press(b"1\r");
    terminal.wait_for("1. Allow once");
    assert_eq!(world.info("dev", "approvals").as_array().unwrap().len(), 1, "it still waits");
    wait_until("the prompt is queued", || prompts(&world, "dev").contains(&"say use option 1".to_owned()));
    terminal.wait_for(READY);
    terminal.press(b"3\r");
    world.wait_for_end("dev", "r1");
    terminal.wait_for(IDLE);
    terminal.leave();
}

#[test]
fn r33_ctrl_c_stops_the_run_and_twice_leaves() {
    let world = World::with_agents();
    let never = signal_file(&world, "never");
    let mut terminal = Terminal::run(&world, &["agent", "fake", "--name", "dev"], 80, 24);
    terminal.wait_for(IDLE);
    terminal.prompt(&format!("say working\nwait {}", never.display()));
    terminal.wait_for("Ctrl-C stops");
    terminal.press(CTRL_C);
    terminal.wait_for("■ stopped");
    let aborted = |record: &Value| record["event"]["type"] == "complete" && record["event"]["aborted"] == true;
    assert!(world.journal("dev").iter().any(aborted));
    // In one write: if the first one was pressed a moment ago, the next one leaves, and the terminal is closed.
    terminal.press(&[CTRL_C, CTRL_C].concat());
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(world.info("dev", "state"), "running");
}

#[test]
fn r41_a_prompt_that_is_typed_while_the_gateway_is_dead_is_run_once() {
    let server = World::with_agents();
    let mut gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    let go = signal_file(&server, "go");
    server.converse("dev", &format!("tool before\nwait {}\ntool after", go.display()));
    let mut terminal = Terminal::attach(&laptop, "dev");
    terminal.wait_for("✓ before");
    gateway.kill();
    terminal.wait_for("connection lost");
    terminal.prompt(&say("typed while offline"));
    terminal.wait_for("yped while offline (not delivered yet");
    std::fs::write(go, "").unwrap();
    gateway.restart();
    terminal.wait_for("✓ after");
    terminal.wait_for("typed while offline");
    server.wait_for_end("dev", "r1");
    terminal.wait_for(IDLE);
    terminal.leave();
    assert_eq!(prompts(&server, "dev").iter().filter(|text| text.contains("offline")).count(), 1);
    let history = terminal.history();
    for line in ["✓ before", "✓ after", "typed while offline"] {
        assert_eq!(history.lines().filter(|shown| shown.trim() == line).count(), 1, "{line}:\n{history}");
    }
}

#[test]
fn r40_a_view_over_a_line_that_is_cut_again_and_again_shows_everything_once() {
    let server = World::with_agents();
    let gateway = Gateway::start(&server);
    let proxy = Proxy::for_port(gateway.port());
    let laptop = World::remote(&format!("http://127.0.0.1:{}", proxy.port()), &gateway.token("laptop", "write"));
    let steps: Vec<PathBuf> = (0..4).map(|step| signal_file(&server, &format!("step{step}"))).collect();
    let script = steps.iter().enumerate();
    let script: String = script.map(|(n, file)| format!("wait {}\ntool part {n}\n", file.display())).collect();
    server.converse("dev", &script);
    let mut terminal = Terminal::attach(&laptop, "dev");
    terminal.wait_for("Ctrl-C stops");
    for (n, step) in steps.iter().enumerate() {
        proxy.cut();
        std::fs::write(step, "").unwrap();
        proxy.restore();
        terminal.wait_for(&format!("✓ part {n}"));
    }
    server.wait_for_end("dev", "r0");
    terminal.wait_for(IDLE);
    terminal.leave();
    let history = terminal.history();
    for n in 0..steps.len() {
        let line = format!("✓ part {n}");
        assert_eq!(history.lines().filter(|shown| shown.trim() == line).count(), 1, "{line}:\n{history}");
    }
}

#[test]
fn r36_a_session_that_is_killed_ends_the_view_and_is_repaired() {
    let world = World::with_agents();
    let never = signal_file(&world, "never");
    let id = world.converse("dev", &format!("{}\nwait {}", say("working"), never.display()));
    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for("working");
    rustix::process::kill_process(world.process_of(&id), rustix::process::Signal::KILL).unwrap();
    assert_eq!(terminal.exit_code(), 1);
    let text = terminal.text();
    assert!(text.contains("dev was lost") && text.contains("`bowline restart dev`"), "{text}");
    let interrupted = |record: &Value| record["event"]["type"] == "complete" && record["event"]["interrupted"] == true;
    assert_eq!(world.journal("dev").iter().filter(|record| interrupted(record)).count(), 1);

    let mut terminal = Terminal::attach(&world, "dev");
    assert_eq!(terminal.exit_code(), 1, "an ended conversation is shown, and that it has ended");
    assert!(terminal.history().contains("working"));
}

/// The test reads nothing while the agent writes more than the terminal's buffer holds.
#[test]
fn r37_a_terminal_that_stalls_does_not_keep_a_prompt_from_being_sent() {
    let world = World::with_agents();
    let go = signal_file(&world, "go");
    let lines: String = (0..10_000).map(|line| format!("line {line}\\n\\n")).collect();
    world.converse("dev", &format!("wait {}\nsay {lines}", go.display()));
    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for("Ctrl-C stops");
    std::fs::write(go, "").unwrap();
    world.wait_for_end("dev", "r0");
    terminal.prompt(&say("still here"));
    wait_until("the prompt is sent", || prompts(&world, "dev").len() == 2);
    terminal.wait_for("still here");
    terminal.wait_for(IDLE);
    terminal.leave();
    let history = terminal.history();
    let shown = history.lines().filter(|line| line.starts_with("line ")).count();
    assert!(shown > 100 && history.contains("line 9999"), "{shown}");
}

#[test]
fn an_observer_sees_everything_and_sends_nothing() {
    let world = World::with_agents();
    world.converse("dev", "ask t1 rm -r build");
    let mut terminal = Terminal::run(&world, &["attach", "--observe", "dev"], 80, 24);
    terminal.wait_for("│ rm -r build");
    terminal.press(b"1\r");
    terminal.wait_until_keys_read();
    terminal.press(CTRL_C);
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(world.info("dev", "approvals").as_array().unwrap().len(), 1);
}

#[test]
fn r35_with_a_read_token_the_user_only_watches() {
    let server = World::with_agents();
    let gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "read"));
    server.converse("dev", "ask t1 rm -r build");
    let mut terminal = Terminal::attach(&laptop, "dev");
    terminal.wait_for("│ rm -r build");
    terminal.wait_for("this token only allows reading");
    assert!(!terminal.text().contains("1. Allow once"), "{}", terminal.text());
    terminal.press(CTRL_C);
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(server.info("dev", "approvals").as_array().unwrap().len(), 1);
}

#[test]
fn r33_ctrl_c_stops_a_prompt_that_is_still_on_its_way() {
    let server = World::with_agents();
    let mut gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    server.converse("dev", "say hello");
    let mut terminal = Terminal::attach(&laptop, "dev");
    terminal.wait_for(IDLE);
    gateway.kill();
    let never = signal_file(&server, "never");
    terminal.prompt(&format!("say working\nwait {}", never.display()));
    terminal.wait_for("(not delivered yet");
    terminal.press(CTRL_C);
    terminal.wait_for("(will be stopped)");
    gateway.restart();
    server.wait_for_end("dev", "r1");
    terminal.wait_for("■ stopped");
    terminal.wait_for(IDLE);
    terminal.leave();
}

#[test]
fn r52_hostile_text_does_not_reach_the_terminal() {
    let world = World::with_agents();
    let hostile = r"\e[2J\e]0;owned\u0007\u009b31m\u202e";
    world
        .converse("dev", &format!("say {hostile}said\ntool {hostile}tool\nask t1 {hostile}ask\nstderr {hostile}error"));
    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for("1. Allow once");
    terminal.wait_for(READY);
    terminal.press(b"1\r");
    world.wait_for_end("dev", "r0");
    terminal.wait_for(IDLE);
    terminal.leave();
    let raw = String::from_utf8_lossy(&terminal.raw);
    for bad in ["\x1b[2J", "\x1b]0;", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!raw.contains(bad), "{bad:?} in {raw:?}");
    }
    assert!(terminal.history().contains(r"\u001b[2J"), "it is shown escaped");
}

#[test]
fn a_small_window_shows_the_prompt_and_what_is_typed() {
    let world = World::with_agents();
    let mut terminal = Terminal::run(&world, &["agent", "fake", "--name", "dev"], 30, 5);
    terminal.wait_for("Enter sends");
    terminal.press(b"say a text that is wider than the window of this terminal");
    terminal.wait_for("nal");
    terminal.resize(60, 10);
    terminal.wait_for("> say a text that is wider than the window");
    terminal.press(ENTER);
    world.wait_for_end("dev", "r0");
    terminal.wait_for(IDLE);
    terminal.leave();
}

#[test]
fn a_paste_whose_end_was_lost_is_shown_with_a_hint() {
    let world = World::with_agents();
    world.converse("dev", "say hello");
    let mut terminal = Terminal::attach(&world, "dev");
    terminal.wait_for(IDLE);
    terminal.press(b"\x1b[200~say pasted");
    terminal.wait_for("the end of the paste is missing");
    terminal.wait_for("> say pasted");
    terminal.wait_gone("the end of the paste is missing");
    terminal.press(ENTER);
    wait_until("it is sent", || prompts(&world, "dev").contains(&"say pasted".to_owned()));
    world.wait_for_end("dev", "r1");
    terminal.wait_for(IDLE);
    terminal.leave();
}

#[test]
fn what_was_typed_or_answered_in_vain_is_reported_at_the_end() {
    let server = World::with_agents();
    let mut gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    server.converse("dev", "ask t1 rm -r build");
    let mut terminal = Terminal::attach(&laptop, "dev");
    terminal.wait_for("1. Allow once");
    terminal.wait_for(READY);
    gateway.kill();
    terminal.press(b"1\r");
    terminal.wait_for("the answer (not delivered yet");
    terminal.press(CTRL_D);
    assert_eq!(terminal.exit_code(), 1);
    assert!(terminal.text().contains("1 command was not delivered"), "{}", terminal.text());
    gateway.restart();

    let mut terminal = Terminal::attach(&laptop, "dev");
    terminal.wait_for(READY);
    terminal.press(b"\x1b");
    terminal.wait_for("an approval waits");
    gateway.kill();
    terminal.prompt("say a prompt\nof two lines");
    terminal.wait_for("(not delivered yet");
    terminal.press(CTRL_D);
    assert_eq!(terminal.exit_code(), 1);
    assert!(terminal.text().contains("not delivered: say a prompt"), "{}", terminal.text());
    assert!(terminal.text().contains("               of two lines"), "{}", terminal.text());

    let mut terminal = Terminal::attach(&server, "dev");
    terminal.wait_for(READY);
    terminal.press(b"3\r");
    server.wait_for_end("dev", "r0");
    terminal.wait_for(IDLE);
    terminal.press(b"a long draft");
    terminal.wait_for("> a long draft");
    server.ok(&["kill", "--keep", "dev"]);
    terminal.exit_code();
    assert!(terminal.text().contains("not sent: a long draft"), "{}", terminal.text());
}

#[test]
fn without_a_terminal_attach_says_what_prints_the_conversation() {
    let world = World::with_agents();
    world.converse("dev", "say hello");
    let output = world.run(&["attach", "dev"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("`bowline log dev --follow`"), "{error}");
}
