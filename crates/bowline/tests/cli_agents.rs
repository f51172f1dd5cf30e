//! The verbs about agents, on this machine and through a gateway: each of them, its errors and its JSON.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use support::{World, here_and_there, wait_until};

/// Checks the exit code of a failed run; returns its standard error.
#[track_caller]
fn expect_failure(output: Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The output of `bowline agent fake` in the server's directory, with these arguments; it must succeed.
#[track_caller]
fn agent(server: &World, client: &World, args: &[&str]) -> (String, String) {
    let output = client.bowline(&["agent", "fake", "--cwd", server.path().to_str().unwrap()]).args(args).output();
    let output = output.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {stderr}");
    (String::from_utf8(output.stdout).unwrap(), stderr)
}

#[test]
fn r32_a_conversation_prints_what_the_agent_writes_and_ends_with_the_run() {
    here_and_there(|server, client| {
        let prompt = "say # Title\\n\\nSome *text*.\ntool ls -l\nsay Second block.";
        let (out, err) = agent(server, client, &["--name", "dev", prompt]);
        assert_eq!(out, "# Title\n\nSome *text*.\n\nSecond block.\n", "as the agent wrote it, and nothing else");
        assert!(err.contains("[execute] ls -l") && err.contains("dev ("), "{err}");
        assert_eq!(client.info("dev", "state"), "running", "the session goes on");
        assert!(client.ok(&["ls"]).contains("fake: idle"));
    });
}

#[test]
fn r40_with_json_every_event_is_one_line_and_the_numbers_have_no_gap() {
    here_and_there(|server, client| {
        let (out, _) = agent(server, client, &["--name", "dev", "--json", "say one\ntool x\nsay two"]);
        let events: Vec<Value> = out.lines().map(parse).collect();
        let mut next = 0;
        for event in &events {
            let first = event.get("from").unwrap_or(&event["seq"]);
            assert_eq!(first, next, "{event}");
            next = event["seq"].as_u64().unwrap() + 1;
            assert!(event["at"].is_string() && event["event"]["type"].is_string(), "{event}");
        }
        assert_eq!(events[0]["event"]["type"], "started");
        let last = &events.last().unwrap()["event"];
        assert_eq!((&last["type"], &last["success"]), (&json!("complete"), &json!(true)));
        assert_eq!(client.journal("dev")[..events.len()], events, "the journal has the same");
    });
}

#[test]
fn r32_the_prompt_can_come_from_standard_input() {
    here_and_there(|server, client| {
        for args in [&["-"][..], &[]] {
            let file = client.path().join("prompt");
            std::fs::write(&file, "say from a file\n").unwrap();
            let mut command = client.bowline(&["agent", "fake", "--cwd", server.path().to_str().unwrap()]);
            let output = command.args(args).stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "from a file\n");
        }
        let empty = client.bowline(&["agent", "fake"]).stdin(Stdio::null()).output().unwrap();
        assert!(expect_failure(empty, 2).contains("the prompt is empty"));
    });
}

#[test]
fn r32_a_detached_conversation_goes_on_by_itself() {
    here_and_there(|server, client| {
        let cwd = server.path().to_str().unwrap();
        let id = client.ok(&["agent", "fake", "--cwd", cwd, "--detach", "--name", "dev", "say", "several", "words"]);
        client.wait_for_end("dev", "r0");
        let log = client.ok(&["log", "dev"]);
        assert!(log.starts_with("> say several words\n"), "{log}");
        assert!(log.contains("\n\nseveral words\n\n"), "{log}");
        assert_eq!(client.info("dev", "id"), id.trim());
        let session = parse(&client.ok(&["agent", "fake", "--cwd", cwd, "--detach", "--json"]));
        assert_eq!((&session["kind"], &session["agent"]), (&json!("agent"), &json!("fake")));
    });
}

#[test]
fn r32_a_conversation_can_be_resumed_in_a_mode_of_the_table() {
    here_and_there(|server, client| {
        agent(server, client, &["--name", "one", "say hi"]);
        let conversation = client.info("one", "conversation");
        let args = ["--mode", "plan", "--resume", conversation.as_str().unwrap(), "echo-mode"];
        assert!(agent(server, client, &args).0.starts_with("mode=plan "));
    });
}

#[test]
fn r43_what_cannot_be_started_is_explained() {
    here_and_there(|server, client| {
        let cwd = server.path().to_str().unwrap();
        let fail = |args: &[&str], code| expect_failure(client.run(&[&["agent"], args].concat()), code);
        let unknown = fail(&["nobody", "--cwd", cwd, "hi"], 5);
        assert!(unknown.contains("no agent is called \"nobody\"; there are claude, codex"), "{unknown}");
        assert!(unknown.contains("`bowline agents` lists the agents"), "{unknown}");
        let missing = fail(&["missing", "--cwd", cwd, "hi"], 5);
        assert!(missing.contains("no-such-agent") && missing.contains("`bowline agents`"), "{missing}");
        let mode = fail(&["fake", "--cwd", cwd, "--mode", "yolo", "hi"], 2);
        assert!(
            mode.contains("does not allow the mode \"yolo\" of fake") && mode.contains("`bowline agents`"),
            "{mode}"
        );
        assert!(fail(&["fake", "--cwd", cwd, "--resume=-x", "hi"], 2).contains("a conversation's id must have"));
        assert!(fail(&["fake", "--cwd", cwd, "--model", "a b", "hi"], 2).contains("a model's name must have"));
        assert!(fail(&["fake", "--cwd", "/no/such/place", "hi"], 5).contains("/no/such/place"));
        let name = ["fake", "--cwd", cwd, "--name", "dev", "--detach"];
        client.ok(&[&["agent"], &name[..]].concat());
        let taken = fail(&name, 4);
        assert!(taken.contains("attach dev` shows it; choose another --name"), "{taken}");
        client.ok(&["kill", "dev"]);
        let long = "x".repeat(100 << 10);
        let words = [long.as_str(), &long, &long];
        assert!(fail(&[&["fake", "--cwd", cwd], &words[..]].concat(), 1).contains("too long (limit 256 KiB"));
        assert_eq!(parse(&client.ok(&["ls", "--json"]))["sessions"], json!([]), "nothing is left of them");
    });
}

#[test]
fn r33_a_run_that_fails_is_an_error_in_words() {
    here_and_there(|server, client| {
        let cwd = server.path().to_str().unwrap();
        let fail = |prompt| expect_failure(client.run(&["agent", "fake", "--cwd", cwd, prompt]), 1);
        assert!(fail("exit 3").contains("the run failed: "));
        assert!(fail("stop max_tokens").contains("the run stopped: max_tokens"));
        let error = fail("error -32603 out of luck");
        assert!(error.contains("out of luck") && error.contains("(agent_error)"), "{error}");
    });
}

#[test]
fn r43_agents_are_listed_with_what_is_wrong_and_how_to_install_them() {
    here_and_there(|_, client| {
        let table = client.ok(&["agents"]);
        assert!(table.starts_with("NAME"), "{table}");
        let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(row("fake").contains("available") && row("fake").contains("default, plan"), "{table}");
        assert!(row("missing").contains("`no-such-agent` is not installed"), "{table}");
        let qwen = row("qwen");
        assert!(
            qwen.contains("available") || qwen.contains("`npm install -g @qwen-code/qwen-code` installs it"),
            "{qwen}"
        );
        let list = parse(&client.ok(&["agents", "--json"]));
        let fake = list["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "fake").unwrap();
        assert_eq!((&fake["protocol"], &fake["available"]), (&json!("acp"), &json!(true)));
    });
}

#[test]
fn r36_what_waits_is_listed_and_answered() {
    here_and_there(|server, client| {
        assert_eq!(client.ok(&["approvals"]), "");
        server.converse("dev", "ask t1 rm -r build\nsay went on");
        server.wait_for_approval("dev");
        let table = client.ok(&["approvals"]);
        let row = table.lines().nth(1).unwrap();
        assert!(row.starts_with("dev/a0  fake ") && row.contains("permission  rm -r build"), "{table}");
        assert!(client.ok(&["ls"]).contains("fake: needs you: rm -r build"));
        let list = parse(&client.ok(&["approvals", "--json"]));
        assert_eq!(list["approvals"][0]["session"], server.info("dev", "id"));
        assert_eq!(list["approvals"][0]["approval"]["options"][0]["id"], "once");

        let wrong = expect_failure(client.run(&["approve", "dev/a0", "--option", "nonsense"]), 2);
        assert!(wrong.contains("has no option \"nonsense\"") && wrong.contains("\n  always: "), "{wrong}");
        let answer = expect_failure(client.run(&["approve", "dev/a0", "--answer", "x=y"]), 2);
        assert!(answer.contains("dev/a0 is not a question"), "{answer}");
        for verb in ["approve", "deny"] {
            let prefix = expect_failure(client.run(&[verb, "de/a0"]), 3);
            assert!(prefix.contains("no session is called") && prefix.contains("dev"), "{prefix}");
        }
        let allowed = client.ok(&["approve", "a0"]);
        assert!(allowed.starts_with("allowed dev/a0: rm -r build ("), "{allowed}");
        client.wait_for_end("dev", "r0");
        assert!(client.ok(&["log", "dev"]).contains("t1: once\nwent on"));
        assert!(client.ok(&["log", "dev"]).contains("✓ allowed"));

        let late = expect_failure(client.run(&["deny", "dev/a0"]), 1);
        assert!(late.contains("dev/a0 was already answered: allowed by l"), "{late}");
        server.ok(&["send", "dev", "ask t2 echo ok\\nrm -r more"]);
        server.wait_for_approval("dev");
        let table = client.ok(&["approvals"]);
        assert!(table.lines().nth(1).unwrap().ends_with(r"  echo ok\u000arm -r more"), "each line, and once: {table}");
        server.ok(&["kill", "dev", "--keep"]);
        server.ok(&["restart", "dev"]);
        let closed = expect_failure(client.run(&["approve", "dev/a1"]), 1);
        assert!(closed.contains("dev/a1 is closed: its run was aborted, or the session ended"), "{closed}");
        let log = client.ok(&["log", "dev"]);
        assert!(log.contains("echo ok …") && !log.contains("approval a1: echo ok\n"), "{log}");
        assert!(expect_failure(client.run(&["approve", "dev/a9"]), 3).contains("dev has no approval a9"));
        assert!(expect_failure(client.run(&["approve", "a9"]), 3).contains("no session has an open approval a9"));
        assert!(expect_failure(client.run(&["approve", "nonsense"]), 2).contains("is not the id of an approval"));
        assert!(expect_failure(client.run(&["approve", "nobody/a0"]), 3).contains("no session is called"));
    });
}

#[test]
fn r36_each_kind_of_answer_reaches_the_agent() {
    here_and_there(|server, client| {
        let said = |prompt: &str, args: &[&str]| {
            server.ok(&["send", "dev", prompt]);
            server.wait_for_approval("dev");
            let id = client.ok(&["approvals"]).lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
            let args: Vec<&str> = args.iter().map(|arg| if *arg == "ID" { id.as_str() } else { arg }).collect();
            let output = client.run(&args);
            (output, id)
        };
        server.converse("dev", "say ready");
        let (denied, _) = said("ask t no", &["deny", "ID", "--reason", "not now", "--json"]);
        assert_eq!(parse(&String::from_utf8(denied.stdout).unwrap())["status"], "accepted");
        wait_until("denied", || client.ok(&["log", "dev"]).contains("t: reject"));
        let (wrong, id) = said("ask t2 rm", &["deny", "ID", "--option", "once"]);
        let wrong = expect_failure(wrong, 2);
        assert!(wrong.contains("has no option \"once\" that denies it\n  reject: Reject\n"), "{wrong}");
        let chosen = client.ok(&["deny", &id, "--option", "reject", "--reason", "not now"]);
        assert!(chosen.ends_with("rm (Reject; not now)\n"), "{chosen}");
        wait_until("rejected", || client.ok(&["log", "dev"]).contains("t2: reject"));
        let (plan, _) = said("ask-plan p # The plan", &["approve", "ID", "--option", "exit-plan-default"]);
        assert!(String::from_utf8_lossy(&plan.stdout).contains("(Yes, manually approve edits)"), "{plan:?}");
        wait_until("approved", || client.ok(&["log", "dev"]).contains("p: exit-plan-default"));
        let options = r#"[{"optionId":"x","name":"Here","kind":"allow_once"},{"optionId":"y","name":"There","kind":"allow_once"}]"#;
        let request =
            r#"request session/request_permission {"toolCall":{"toolCallId":"t","title":"deploy"},"options":"#;
        let (several, id) = said(&format!("{request}{options}}}"), &["approve", "ID"]);
        let several = expect_failure(several, 2);
        assert!(several.contains("has several options that allow it once\n  x: Here\n  y: There\n"), "{several}");
        assert!(several.contains("hint: choose one with --option ID"), "{several}");
        client.ok(&["approve", &id, "--option", "y"]);
        wait_until("chosen", || client.ok(&["log", "dev"]).contains(r#""optionId":"y""#));
        let (question, id) = said("question q Which colour?", &["approve", "ID"]);
        let question = expect_failure(question, 2);
        assert!(question.contains("1. ") && question.contains("\n     Blue"), "{question}");
        client.ok(&["approve", &id, "--answer", "1=Blue"]);
        wait_until("answered", || client.ok(&["log", "dev"]).contains(r#"{"question_0":"Blue"}"#));
    });
}

#[test]
fn r36_an_id_that_several_sessions_have_needs_the_session() {
    here_and_there(|server, client| {
        server.converse("one", "ask t1 first");
        server.converse("two", "ask t1 second");
        server.wait_for_approval("one");
        server.wait_for_approval("two");
        let several = expect_failure(client.run(&["approve", "a0"]), 2);
        assert!(several.contains("one/a0, two/a0"), "{several}");
        client.ok(&["deny", "two/a0"]);
        assert!(client.ok(&["approve", "a0"]).starts_with("allowed one/a0"), "now there is only one");
    });
}

#[test]
fn r36_of_two_clients_one_answers_and_the_other_is_told() {
    here_and_there(|server, client| {
        server.converse("dev", "say ready");
        for round in 0..3 {
            server.ok(&["send", "dev", "ask t1 push"]);
            server.wait_for_approval("dev");
            let id = format!("dev/a{round}");
            let both = [server.spawn(&["approve", &id]), client.spawn(&["deny", &id])].map(support::Running::finish);
            let winners = both.iter().filter(|(code, ..)| *code == Some(0)).count();
            assert_eq!(winners, 1, "{both:?}");
            let (code, _, err) = both.iter().find(|(code, ..)| *code != Some(0)).unwrap();
            assert!(*code == Some(1) && err.contains("was already answered: "), "{err}");
            wait_until("nothing waits", || server.info("dev", "approvals") == json!([]));
        }
    });
}

#[test]
fn r37_send_prompts_an_agent_once() {
    here_and_there(|server, client| {
        server.converse("dev", "say first");
        assert_eq!(client.ok(&["send", "dev", "say", "second"]), "");
        let accepted = parse(&client.ok(&["send", "dev", "--json", "say third"]));
        assert_eq!((&accepted["status"], &accepted["run"]), (&json!("accepted"), &json!("r2")));
        client.wait_for_end("dev", "r2");
        let prompts = server.journal("dev").iter().filter(|event| event["event"]["type"] == "prompt").count();
        assert_eq!(prompts, 3);
        for (args, text) in [
            (&["--signal", "INT"][..], "takes no --signal"),
            (&["--key", "Up"], "takes no --key"),
            (&["--enter", "hi"], "takes no --enter"),
            (&[" "], "the prompt is empty"),
        ] {
            let error = expect_failure(client.run(&[&["send", "dev"], args].concat()), 2);
            assert!(error.contains(text) && error.contains("hint: "), "{error}");
        }
        let long = client.path().join("long");
        std::fs::write(&long, "x".repeat(300 << 10)).unwrap();
        let long = client.bowline(&["send", "dev", "-"]).stdin(std::fs::File::open(long).unwrap()).output().unwrap();
        assert!(expect_failure(long, 1).contains("too long (limit 256 KiB"));
        client.ok(&["kill", "--keep", "dev"]);
        let ended = expect_failure(client.run(&["send", "dev", "say more"]), 1);
        assert!(ended.contains("dev is not running") && ended.contains("`bowline restart dev`"), "{ended}");
        client.ok(&["restart", "dev"]);
        client.ok(&["send", "dev", "say after"]);
        wait_until("it goes on", || client.ok(&["log", "dev"]).contains("after"));
    });
}

#[test]
fn r37_a_prompt_waits_for_room_in_the_queue() {
    let world = World::with_agents();
    let go = world.path().join("go");
    world.converse("dev", &format!("wait {}", go.display()));
    for _ in 0..16 {
        world.ok(&["send", "dev", "say queued"]);
    }
    let full = expect_failure(world.run(&["send", "dev", "--wait", "1s", "say too much"]), 6);
    assert!(full.contains("dev did not accept it within 1s"), "{full}");
    let waiting = world.spawn(&["send", "dev", "say at last"]);
    std::fs::write(go, "").unwrap();
    assert_eq!(waiting.finish().0, Some(0));
    world.wait_for_end("dev", "r17");
    assert!(world.ok(&["log", "dev"]).contains("\nat last\n"));
}

#[test]
fn r40_the_log_of_an_agent_session_can_be_cut_followed_and_read_in_pages() {
    here_and_there(|server, client| {
        // More than one page.
        let tools = "tool x\n".repeat(700);
        server.converse("dev", &format!("{tools}say end"));
        server.wait_for_end("dev", "r0");
        let all = client.journal("dev");
        assert!(all.len() > 2000, "{}", all.len());
        for (n, event) in all.iter().enumerate() {
            assert_eq!(event.get("from").unwrap_or(&event["seq"]), n, "{event}");
        }
        let part = client.ok(&["log", "dev", "--json", "--from", "3", "--to", "6"]);
        assert_eq!(part.lines().map(parse).collect::<Vec<_>>(), all[3..6]);
        assert_eq!(client.ok(&["log", "dev", "--json", "--to", "1"]).lines().count(), 1);
        assert_eq!(client.ok(&["log", "dev", "--json", "--to", "0"]), "");
        assert!(expect_failure(client.run(&["log", "dev", "--from", "99999"]), 1).contains("past the end"));
        assert!(
            expect_failure(client.run(&["log", "dev", "--from", "5", "--to", "4"]), 1).contains("before the first")
        );

        let last = (all.len() - 1).to_string();
        let follower = client.spawn(&["log", "dev", "--json", "--follow", "--from", &last]);
        follower.wait_for_out("complete");
        server.ok(&["send", "dev", "say more"]);
        follower.wait_for_out("\"more\"");
        server.ok(&["kill", "--keep", "dev"]);
        let (code, out, err) = follower.finish();
        assert_eq!(code, Some(0), "{err}");
        let numbers: Vec<u64> = out.lines().map(|line| parse(line)["seq"].as_u64().unwrap()).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1), "{numbers:?}");
        assert_eq!(parse(out.lines().last().unwrap())["event"]["type"], "exit");
        assert!(client.ok(&["log", "dev"]).trim_end().ends_with("the session was ended"), "also after its end");
    });
}

#[test]
fn a_terminal_has_no_journal_to_print_and_an_agent_no_screen() {
    let world = World::with_agents();
    world.start("shell", "cat");
    assert!(expect_failure(world.run(&["log", "shell", "--json"]), 2).contains("shell is a terminal"));
    world.converse("dev", "say hi");
    let screen = expect_failure(world.run(&["screen", "dev"]), 1);
    assert!(screen.contains("dev is an agent session") && screen.contains("`bowline log dev --follow`"), "{screen}");
}

#[test]
fn r52_hostile_texts_are_escaped_everywhere() {
    here_and_there(|server, client| {
        let hostile = "\\e]0;owned\\u0007\\u202e x";
        server.converse("dev", &format!("say {hostile}\ntool {hostile}\nask t1 {hostile}"));
        server.wait_for_approval("dev");
        let cwd = server.path().to_str().unwrap();
        let running =
            client.spawn(&["agent", "fake", "--cwd", cwd, &format!("say {hostile}\ntool {hostile}\ntitle {hostile}")]);
        let (code, out, err) = running.finish();
        assert_eq!(code, Some(0), "{err}");
        let mut printed = vec![out, err];
        for args in [&["ls"][..], &["approvals"], &["approvals", "--json"], &["log", "dev"], &["log", "dev", "--json"]]
        {
            printed.push(client.ok(args));
        }
        printed.push(client.ok(&["approve", "dev/a0"]));
        for text in printed {
            let is_hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(is_hostile), "{text:?}");
            assert!(text.contains("202e"), "it is shown as an escape: {text:?}");
        }
    });
}

#[test]
fn r42_a_run_is_stopped_from_a_script_and_the_conversation_goes_on() {
    here_and_there(|server, client| {
        server.converse("dev", "say hi");
        client.wait_for_end("dev", "r0");
        assert_eq!(client.ok(&["stop", "dev"]), "dev is idle\n");
        assert_eq!(client.ok(&["stop", "dev", "--json"]), "null\n");
        client.ok(&["send", "dev", "ask t1 deploy"]);
        client.wait_for_approval("dev");
        for queued in ["say queued", "say last"] {
            client.ok(&["send", "dev", queued]);
        }
        let stopped = client.ok(&["stop", "dev", "--queue"]);
        assert!(stopped.starts_with("stopping r1 of dev and what waits behind it: "), "{stopped}");
        ["r1", "r2", "r3"].into_iter().for_each(|run| client.wait_for_end("dev", run));
        let aborted = client.journal("dev").into_iter().filter(|record| record["event"]["aborted"] == true);
        assert_eq!(aborted.count(), 3);
        client.ok(&["send", "dev", "say goes on"]);
        client.wait_for_end("dev", "r4");
        client.ok(&["new", "--detach", "--name", "shell", "--", "cat"]);
        let refused = expect_failure(client.run(&["stop", "shell"]), 2);
        assert!(refused.contains("not a conversation") && refused.contains("send --key C-c"), "{refused}");
        assert!(expect_failure(client.run(&["stop", "de"]), 3).contains("dev"), "no prefixes");
    });
}
