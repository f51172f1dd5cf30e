//! `bowline attach` in a real terminal: what the user sees, and what it leaves behind.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_proto::config::OUTBOX;
use support::{Proxy, Terminal, World, wait_until};

const DETACH: &[u8] = b"\x1cd";

#[test]
fn r22_attach_shows_screen_and_scrollback_and_detach_keeps_the_session_running() {
    let world = World::new();
    world.start("w", "for i in $(seq 1 50); do echo line $i; done; cat");
    world.wait_for_screen("w", "line 50");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("line 50");
    terminal.press(b"typed here\r");
    terminal.wait_for("typed here\ntyped here");
    assert!(terminal.is_raw());
    let history = terminal.history();
    for i in 1..=50 {
        assert_eq!(history.lines().filter(|line| *line == format!("line {i}")).count(), 1, "line {i}:\n{history}");
    }
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.text().contains("[detached from w; `bowline attach w` attaches again]"));
    assert!(!terminal.is_raw());
    assert_eq!(world.info("w", "state"), "running");
}

#[test]
fn r22_previous_terminal_content_moves_to_the_scrollback() {
    let world = World::new();
    world.start("w", "echo session; cat");
    world.wait_for_screen("w", "session");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.screen.advance(b"before 1\r\nbefore 2\r\n");
    terminal.wait_for("session");
    assert!(!terminal.text().contains("before"));
    assert!(terminal.history().starts_with("before 1\nbefore 2\n"), "{}", terminal.history());
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
    assert!(!String::from_utf8_lossy(&terminal.raw).contains("\x1bc"), "attach reset the terminal");
    assert!(!String::from_utf8_lossy(&terminal.raw).contains("\x1b[3J"), "attach cleared the scrollback");
}

/// A script that sets every mode that a program may leave behind.
const MODES: &str = r"printf '\033[?1049h\033[?1003h\033[?1006h\033[?2004h\033[?1004h\033[?1h\033=\033[?25l\033[?7l\033[4h\033[5 q\033]11;#112233\007\033(0\033[3;9r\033[?6h\033]2;mine\007ready'; cat";

#[test]
fn r24_detaching_restores_every_mode() {
    let world = World::new();
    world.start("w", MODES);
    wait_until("title", || world.info("w", "title") == "mine");
    let mut terminal = Terminal::attach(&world, "w");
    let fresh = terminal.screen.dump();
    terminal
        .wait_until("title and mouse mode", |terminal| terminal.screen.title() == "mine" && terminal.has_mode(1003));
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
    for (mode, on) in
        [(1003, false), (1006, false), (2004, false), (1004, false), (1, false), (25, true), (7, true), (6, false)]
    {
        assert_eq!(terminal.has_mode(mode), on, "mode {mode}");
    }
    assert_eq!(terminal.screen.title(), "");
    // Everything except the text and the cursor is as on a new terminal.
    let state = |dump: &str| dump.lines().filter(|line| is_state(line)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(state(&terminal.screen.dump()), state(&fresh));
}

/// Whether a line of a dump is about something other than text or the cursor.
fn is_state(line: &str) -> bool {
    ["mode", "region", "tab", "colour", "title", "charset"].iter().any(|word| line.starts_with(word))
}

#[test]
fn r24_no_query_reaches_the_terminal_live_or_replayed() {
    let world = World::new();
    let queries = r"printf '\033[c\033[>c\033[=c\033[6n\033[5n\033[?6n\033[?2026$p\033[>q\033]10;?\007\033]11;?\033\\\033]4;1;?\007\033[18t\033[14t\033P$qm\033\\\033P+q544e\033\\\033[?u\033Z\005done'";
    world.start("w", &format!("stty -echo raw; {queries}; read x; {queries}; echo again; cat"));
    world.wait_for_screen("w", "done");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("done");
    terminal.press(b"\n");
    terminal.wait_for("again");
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(String::from_utf8_lossy(&terminal.replies), "");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("again");
    assert_eq!(String::from_utf8_lossy(&terminal.replies), "");
}

#[test]
fn r31_attach_exits_with_the_exit_code_of_the_program() {
    let world = World::new();
    let mut terminal = Terminal::run(&world, &["new", "--name", "seven", "--", "sh", "-c", "echo bye; exit 7"], 80, 24);
    assert_eq!(terminal.exit_code(), 7);
    assert!(terminal.text().ends_with("bye\n[seven exited with status 7]\n"), "{}", terminal.text());
    let mut terminal = Terminal::run(&world, &["new", "--", "sh", "-c", "kill -9 $$"], 80, 24);
    assert_eq!(terminal.exit_code(), 137);
    assert!(terminal.text().contains("was ended by SIGKILL"), "{}", terminal.text());
    // An attach to the ended session exits with the same code.
    let mut terminal = Terminal::attach(&world, "seven");
    assert_eq!(terminal.exit_code(), 7);
    assert!(terminal.text().contains("bye"), "{}", terminal.text());
}

#[test]
fn r55_errors_come_with_hints() {
    let world = World::new();
    let output = world.run(&["attach", "unknown"]);
    assert_eq!(output.status.code(), Some(3));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("bowline: ") && message.contains("\nhint: "), "{message}");

    let id = world.start("w", "cat");
    let output = world.run(&["attach", "w"]);
    assert_eq!(output.status.code(), Some(2), "no terminal");
    let output = world.bowline(&["attach", "w"]).env("BOWLINE_SESSION", &id).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("this terminal is already in w"));
}

#[test]
fn r23_the_session_follows_the_window_of_its_only_viewer() {
    let world = World::new();
    world.start("w", "trap 'stty size' WINCH; echo up; while :; do sleep 0.02; done");
    world.wait_for_screen("w", "up");
    let mut terminal = Terminal::run(&world, &["attach", "w"], 100, 30);
    terminal.wait_for("30 100");
    terminal.resize(60, 20);
    terminal.wait_for("20 60");
    wait_until("ls shows the new size", || world.info("w", "size")["cols"] == 60);
}

#[test]
fn r23_a_second_viewer_sees_a_part_of_the_screen_and_can_claim_the_size() {
    let world = World::new();
    let script = "printf '\\033[30;95Hcorner\\033[3;1Hhere '; cat";
    world.ok(&["new", "--detach", "--name", "w", "--size", "100x30", "--", "sh", "-c", script]);
    world.wait_for_screen("w", "corner");
    let mut first = Terminal::run(&world, &["attach", "w"], 100, 30);
    first.wait_for("here");
    wait_until("the first viewer owns the size", || world.info("w", "size")["cols"] == 100);
    let mut second = Terminal::run(&world, &["attach", "w"], 90, 25);
    second.wait_for("size 100x30 set by another viewer");
    second.wait_for("Ctrl-\\ s to resize");
    second.wait_until("the upper left part is visible", |second| second.rows()[2].starts_with("here"));
    assert!(!second.text().contains("corner"));

    // A larger window shows the whole screen.
    let mut third = Terminal::run(&world, &["attach", "--observe", "w"], 120, 40);
    third.wait_until("the whole screen is visible", |third| {
        third.rows()[29].trim() == "corner" && third.rows()[39].starts_with("[bowline")
    });
    third.press(b"\x1cd");
    assert_eq!(third.exit_code(), 0);

    second.press(b"both see this\r");
    second.wait_for("both see this");
    first.wait_for("both see this");
    second.press(b"\x1cs");
    wait_until("the second viewer owns the size", || world.info("w", "size")["cols"] == 90);
    second.wait_gone("set by another viewer");
    first.wait_for("size 90x25 set by another viewer");
    second.press(b"after the claim\r");
    second.wait_for("after the claim");
    first.wait_for("after the claim");
}

#[test]
fn r23_an_observer_with_another_size_sees_the_last_output_and_the_exit_code() {
    let world = World::new();
    let script = "echo begun; read x; echo the result; exit 4";
    world.ok(&["new", "--detach", "--name", "w", "--size", "100x30", "--", "sh", "-c", script]);
    world.wait_for_screen("w", "begun");
    let mut observer = Terminal::run(&world, &["attach", "--observe", "w"], 70, 20);
    observer.wait_for("size 100x30 set by another viewer");
    observer.wait_for("begun");
    world.ok(&["send", "w", "--enter", "go"]);
    let expected = ["begun", "go", "the result", "[w exited with status 4]"];
    assert_eq!(observer.exit_code(), 4);
    assert_eq!(visible_lines(&mut observer), expected);

    // An attach after the end shows the same.
    wait_until("the session has ended", || world.info("w", "state") == "exited");
    for (cols, rows) in [(70, 20), (120, 40)] {
        let mut observer = Terminal::run(&world, &["attach", "--observe", "w"], cols, rows);
        assert_eq!(observer.exit_code(), 4);
        assert_eq!(visible_lines(&mut observer), expected);
    }
}

/// The visible lines that are not blank.
fn visible_lines(terminal: &mut Terminal) -> Vec<String> {
    terminal.text().lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn r26_an_observer_sees_the_screen_and_cannot_type() {
    let world = World::new();
    world.start("w", "echo here; cat");
    world.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&world, &["attach", "--observe", "w"], 80, 24);
    terminal.wait_for("here");
    terminal.press(b"nothing");
    terminal.wait_for("read-only");
    assert!(!world.screen("w").contains("nothing"));
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn r6_a_lost_connection_is_shown_in_one_line_that_leaves_no_trace() {
    let world = World::new();
    let id = world.start("w", "for i in $(seq 1 40); do echo line $i; done; printf 'bottom row'; cat");
    world.wait_for_screen("w", "bottom row");
    let proxy = Proxy::for_session(&world, &id);
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("bottom row");
    terminal.wait_until("scrollback arrived", |terminal| terminal.history().contains("line 1\n"));
    let before = terminal.history();
    assert_eq!(terminal.rows()[23], "bottom row");

    terminal.slow_down(1, Duration::ZERO); // so that no attempt is missed
    proxy.cut();
    terminal.wait_until("the notice is visible", |terminal| {
        terminal.rows()[23].starts_with("[bowline: connection lost, retrying in 1s (attempt 1)]")
    });
    assert_eq!(
        terminal.rows()[..23],
        before
            .lines()
            .rev()
            .skip(1)
            .take(23)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .map(str::to_owned)
            .collect::<Vec<_>>()[..]
    );
    terminal.wait_until("the next attempt is announced", |terminal| terminal.rows()[23].contains("(attempt 2)"));
    assert_eq!(terminal.history().matches("[bowline").count(), 1);

    proxy.restore();
    terminal.wait_until("the screen is restored", |terminal| terminal.history() == before);
    terminal.press(b" and on");
    terminal.wait_for("bottom row and on");
}

#[test]
fn a_paste_larger_than_the_outbox_waits_in_the_terminal() {
    const PASTE: usize = OUTBOX + (2 << 20);
    let world = World::new();
    let fifo = world.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!("stty raw -echo; echo ready; read x < fifo; head -c {PASTE} | wc -c; cat");
    world.start("w", &script);
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("ready");
    let pressed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for part in vec![b'x'; PASTE].chunks(4096) {
                terminal.press(part);
                pressed.fetch_add(part.len(), Ordering::Relaxed);
            }
        });
        wait_until("the outbox is full", || pressed.load(Ordering::Relaxed) >= OUTBOX);
        std::fs::write(&fifo, "go\n").unwrap();
    });
    terminal.wait_for(&PASTE.to_string());
}

#[test]
fn detach_reports_how_many_typed_bytes_were_not_confirmed() {
    let world = World::new();
    world.start("w", "stty raw -echo; echo ready; exec sleep 1000");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("ready");
    terminal.press(&vec![b'x'; 1 << 20]);
    terminal.press(DETACH);
    terminal.wait_for("w did not confirm the last");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn r9_a_reconnect_shows_exactly_what_was_missed() {
    let world = World::new();
    let fifo = world.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = "echo first; read x < fifo; for i in $(seq 0 99); do echo got word $i; done; touch printed; cat";
    let id = world.start("w", script);
    world.wait_for_screen("w", "first");
    let proxy = Proxy::for_session(&world, &id);
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("first");
    proxy.cut();
    terminal.wait_for("connection lost");
    terminal.press(b"typed offline\r");
    std::fs::write(&fifo, "go\n").unwrap();
    wait_until("everything is printed", || world.path().join("printed").exists());
    proxy.restore();
    terminal.wait_for("typed offline\ntyped offline");
    let history = terminal.history();
    for i in 0..100 {
        assert_eq!(history.lines().filter(|line| *line == format!("got word {i}")).count(), 1, "{i}:\n{history}");
    }
    assert_eq!(history.matches("typed offline").count(), 2, "as echo and as output");
    assert!(!history.contains("[bowline"), "{history}");
}

#[test]
fn r25_ctrl_c_takes_effect_soon_on_a_terminal_that_reads_100_kb_a_second() {
    let world = World::new();
    let flood = "while :; do echo the quick brown fox jumps over the lazy dog; done";
    world.start("w", &format!("trap 'echo INTERRUPTED; exec cat' INT; echo here; read x; {flood}"));
    world.wait_for_screen("w", "here");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("here");
    terminal.slow_down(1000, Duration::from_millis(10));
    terminal.press(b"\r");
    terminal.wait_until("200 kB arrived", |terminal| terminal.raw.len() > 200_000);
    let before = terminal.raw.len();
    terminal.press(b"\x03");
    terminal.wait_for("INTERRUPTED");
    let received = terminal.raw.len() - before;
    assert!(received < 400_000, "{received} bytes arrived before the reaction");
    assert!(terminal.history().contains("[bowline: output was skipped"), "no notice about skipped output");
}

#[test]
fn a_terminal_that_stalls_at_the_end_still_gets_all_output() {
    let world = World::new();
    let script = r"printf '\033[?1003hhere'; read x; seq 1 30000; echo the end; exit 5";
    world.start("w", script);
    world.wait_for_screen("w", "here");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_until("mouse mode", |terminal| terminal.has_mode(1003));
    terminal.press(b"\r");
    wait_until("everything is printed", || world.screen("w").contains("the end"));
    // Long enough to be a stall, but within the time that an attach allows for its last output.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(terminal.exit_code(), 5);
    assert!(visible_lines(&mut terminal).ends_with(&["the end".to_owned(), "[w exited with status 5]".to_owned()]));
    assert!(!terminal.has_mode(1003));
}

/// Returns a terminal attached to `cat` that has lost its connection and given up reconnecting.
fn attach_and_give_up() -> (World, Proxy, Terminal) {
    let world = World::new();
    world.configure("reconnect_tries = 1");
    let id = world.start("w", "echo here; cat");
    world.wait_for_screen("w", "here");
    let proxy = Proxy::for_session(&world, &id);
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("press Enter to retry");
    (world, proxy, terminal)
}

#[test]
fn r7_after_giving_up_enter_reconnects() {
    let (_world, proxy, mut terminal) = attach_and_give_up();
    proxy.restore();
    terminal.reconnect_with_enter();
}

#[test]
fn r16_keys_typed_after_giving_up_are_sent_on_reconnect() {
    let (_world, proxy, mut terminal) = attach_and_give_up();
    terminal.press(b"typed ");
    terminal.press(b"offline");
    proxy.restore();
    terminal.press(b"\r");
    terminal.wait_gone("[bowline");
    terminal.wait_for("typed offline");
}

#[test]
fn r3_killing_a_session_ends_its_viewers_at_once() {
    let world = World::new();
    Terminal::attach_to_cat(&world, &world).assert_ended_by_kill(&world);
}

#[test]
fn r21_a_lost_session_is_reported_with_a_hint_to_restart_it() {
    let world = World::new();
    let mut terminal = Terminal::attach_to_cat(&world, &world);
    let id = world.info("w", "id").as_str().unwrap().to_owned();
    rustix::process::kill_process(world.process_of(&id), rustix::process::Signal::KILL).unwrap();
    assert_eq!(terminal.exit_code(), 1);
    let text = terminal.text();
    assert!(text.contains("w was lost") && text.contains("hint: `bowline restart w`"), "{text}");
}

/// A crash may destroy any file of a lost session except the screen. An attach used to retry the connection forever.
#[test]
fn r21_a_lost_session_shows_its_last_screen_even_without_its_other_files() {
    let world = World::new();
    for missing in [None, Some("events.jsonl"), Some("log")] {
        let id = world.start("w", "printf '\\033[31mthe last words\\033[m'; cat");
        world.wait_for_screen("w", "the last words");
        let files = world.path().join("s/sessions").join(&id);
        let written = |dir: &std::path::Path| {
            let screen = std::fs::read(dir.join("screen")).unwrap_or_default();
            screen.windows(14).any(|part| part == b"the last words")
        };
        wait_until("the screen is saved", || written(&files));
        rustix::process::kill_process(world.process_of(&id), rustix::process::Signal::KILL).unwrap();
        wait_until("the session is lost", || world.info(&id, "state") == "lost");
        missing.iter().for_each(|file| std::fs::remove_file(files.join(file)).unwrap());
        let mut terminal = Terminal::attach(&world, &id);
        assert_eq!(terminal.exit_code(), 1, "{missing:?}: {}", terminal.text());
        let text = terminal.text();
        assert!(text.starts_with("the last words\nbowline: w was lost"), "{missing:?}: {text}");
        assert!(text.contains("hint: `bowline restart w`"), "{missing:?}: {text}");
        world.ok(&["kill", &id]);
    }
}

#[test]
fn a_signal_ends_attach_and_restores_the_terminal() {
    let world = World::new();
    world.start("w", MODES);
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_until("mouse mode", |terminal| terminal.has_mode(1003));
    rustix::process::kill_process(terminal.pid(), rustix::process::Signal::TERM).unwrap();
    assert_eq!(terminal.exit_code(), 128 + 15);
    assert!(!terminal.is_raw());
    assert!(!terminal.has_mode(1003));
    assert_eq!(world.info("w", "state"), "running");
}

#[test]
fn the_list_of_keys_disappears_without_a_trace() {
    let world = World::new();
    world.start("w", "for i in $(seq 1 40); do echo line $i; done; cat");
    world.wait_for_screen("w", "line 40");
    let mut terminal = Terminal::attach(&world, "w");
    terminal.wait_for("line 40");
    let before = terminal.rows();
    terminal.press(b"\x1c?");
    terminal.wait_for("d detach,");
    terminal.press(b"\x1cr");
    terminal.wait_until("the screen is restored", |terminal| terminal.rows() == before);
    terminal.press(b"\x1c\x1c");
    wait_until("the detach key itself ended cat", || world.info("w", "state") == "exited");
}

/// A detaching viewer used to keep the size for a minute, because it did not notify the session.
#[test]
fn r23_detaching_frees_the_size_at_once() {
    let world = World::new();
    world.start("w", "echo here; cat");
    let mut owner = Terminal::run(&world, &["attach", "w"], 100, 30);
    owner.wait_for("here");
    let mut other = Terminal::run(&world, &["attach", "w"], 60, 10);
    other.wait_for("size 100x30 set by");
    owner.press(DETACH);
    assert_eq!(owner.exit_code(), 0);
    wait_until("the other viewer owns the size", || world.info("w", "size")["cols"] == 60);
}
