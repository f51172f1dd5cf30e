//! Sessions without viewers, after a crash, with racing starters, and after a restart.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use bowline_host::saved::SavedScreen;
use serde_json::json;

use super::viewer::{Viewer, contains, hello};
use super::world::{World, is_alive, signal, wait_until};

#[test]
fn r18_fifty_sessions_run_without_viewers() {
    let world = World::new();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..50)
            .map(|n| {
                scope.spawn({
                    let world = &world;
                    move || world.shell(&format!("echo I am {n}; exec sleep 600"))
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    for (n, id) in ids.iter().enumerate() {
        world.wait_for_screen(id, &format!("I am {n}"));
    }
    let list: serde_json::Value = serde_json::from_str(&world.run(&["ls", "--json"])).unwrap();
    let running = list["sessions"].as_array().unwrap().iter().filter(|session| session["state"] == "running").count();
    assert_eq!(running, 50);
    world.run(&["kill", "--all"]);
    assert_eq!(world.run(&["ls", "--json"]), json!({"sessions": []}).to_string());
    let remaining = std::fs::read_dir(world.home().sessions()).unwrap().count();
    assert_eq!(remaining, 0, "session files were not removed");
}

#[test]
fn r31_exit_codes_and_signals_are_recorded_without_viewers() {
    let world = World::new();
    let code = world.shell("exit 42");
    let killed = world.shell("kill -TERM $$");
    assert_eq!(world.wait_for_state(&code, "exited")["exit"], json!({"code": 42, "signal": null}));
    assert_eq!(world.wait_for_state(&killed, "exited")["exit"], json!({"code": null, "signal": "SIGTERM"}));
}

/// The process that started a session may be killed right after, with its whole process group.
#[test]
fn r18_the_starter_and_its_group_may_die() {
    let world = World::new();
    let mut shell = std::process::Command::new("setsid");
    shell.args(["sh", "-c", "\"$0\" new --detach --name orphan -- sh -c 'echo alive; exec cat'; kill -9 0"]);
    shell.arg(env!("CARGO_BIN_EXE_bowline")).stdin(Stdio::null()).stdout(Stdio::null());
    for (name, value) in world.bowline().get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    assert!(!shell.status().unwrap().success(), "the shell must have killed its own process group");
    world.wait_for_screen("orphan", "alive");
    assert_eq!(world.info("orphan")["state"], "running");
}

#[test]
fn r21_a_killed_session_process_leaves_screen_and_log_and_can_be_restarted() {
    let world = World::new();
    let id = world.run(&["new", "-d", "--name", "job", "--", "sh", "-c", "echo before the end; exec cat"]);
    world.wait_for_screen(&id, "before the end");
    wait_until("the screen file", || {
        std::fs::read(world.dir(&id).screen()).ok().filter(|file| contains(file, "before the end"))
    });
    let child = children(world.pid(&id))[0];
    signal(world.pid(&id), "KILL");
    assert_eq!(world.wait_for_state(&id, "lost")["exit"], json!(null));
    wait_until("the program got SIGHUP", || (!is_alive(child)).then_some(()));
    assert!(world.screen(&id).contains("before the end"));
    assert!(world.run(&["log", &id]).contains("before the end"));
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.finish();
    assert!(contains(&viewer.snapshot, "before the end"));
    let exit = viewer.exit.expect("an exit message with an unknown status");
    assert_eq!((&exit["code"], &exit["signal"]), (&json!(null), &json!(null)));
    // The stale socket and lock do not prevent a restart.
    assert!(world.dir(&id).sock().symlink_metadata().is_ok());
    let before = world.info(&id);
    assert_eq!(world.run(&["restart", "job"]), id);
    let after = world.wait_for_state(&id, "running");
    assert_ne!(before["epoch"], after["epoch"]);
    world.wait_for_screen("job", "before the end");
    assert!(after["offset"].as_u64() >= before["offset"].as_u64());
}

/// The bytes between the last saved screen and the start of the log used to be skipped silently.
#[test]
fn r21_the_bytes_between_an_old_screen_and_the_log_are_reported_as_missed() {
    let world = World::new();
    let script = "echo first; read line; seq 100000; echo last; exec cat";
    let id = world.run(&["new", "--detach", "--log-size", "256K", "--", "sh", "-c", script]);
    let screen_file = world.dir(&id).screen();
    let old_screen =
        wait_until("the screen file", || std::fs::read(&screen_file).ok().filter(|file| contains(file, "first")));
    let old_offset = SavedScreen::decode(&old_screen).unwrap().offset;
    world.run(&["send", &id, "--enter", "go"]);
    world.wait_for_screen(&id, "last");
    signal(world.pid(&id), "KILL");
    world.wait_for_state(&id, "lost");
    // As if the process had been killed before it saved another screen.
    std::fs::write(&screen_file, &old_screen).unwrap();
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    assert_eq!(viewer.attached["missed"], json!({"from": old_offset, "to": viewer.offset}), "{}", viewer.attached);
    assert!(contains(&viewer.snapshot, "first"));
    viewer.finish();
    assert!(contains(&viewer.output, "last"));
    // A viewer that had seen some of these bytes made the thread that serves it spin forever.
    let cursor = json!({"epoch": viewer.epoch, "offset": old_offset + 1});
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 2, json!({"cursor": cursor})));
    assert_eq!(viewer.attached["missed"], json!({"from": old_offset + 1, "to": viewer.offset}), "{}", viewer.attached);
    viewer.finish();
    assert!(contains(&viewer.output, "last"));
}

/// A power cut may destroy the content of one file. The others must still be usable.
#[test]
fn r21_a_lost_session_without_its_events_has_its_screen_and_log() {
    let world = World::new();
    let id = world.run(&["new", "-d", "--name", "job", "--size", "90x30", "--", "sh", "-c", "echo a trace; exec cat"]);
    world.wait_for_screen(&id, "a trace");
    wait_until("the screen file", || {
        std::fs::read(world.dir(&id).screen()).ok().filter(|file| contains(file, "a trace"))
    });
    let pid = world.pid(&id);
    signal(pid, "KILL");
    world.wait_for_state(&id, "lost");
    std::fs::write(world.dir(&id).events(), "").unwrap();
    let lost = world.info("job");
    assert_eq!((&lost["state"], &lost["size"]), (&json!("lost"), &json!({"cols": 90, "rows": 30})));
    assert!(world.screen("job").contains("a trace"));
    assert!(world.run(&["log", "job"]).contains("a trace"));
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.finish();
    assert!(contains(&viewer.snapshot, "a trace") && viewer.exit.is_some());
    assert_eq!(world.run(&["restart", "job"]), id);
    assert_eq!(world.wait_for_state(&id, "running")["name"], "job");
}

#[test]
fn r28_only_one_of_several_racing_starters_gets_the_name() {
    let world = World::new();
    let results: Vec<_> = std::thread::scope(|scope| {
        let race: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| world.try_run(&["new", "-d", "--name", "one", "--", "sleep", "600"])))
            .collect();
        race.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|output| output.status.success()).count(), 1);
    for loser in results.iter().filter(|output| !output.status.success()) {
        assert_eq!(loser.status.code(), Some(4), "{}", String::from_utf8_lossy(&loser.stderr));
    }
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 1, "failed starts leave no files");
    let id = world.info("one")["id"].as_str().unwrap().to_owned();
    assert_eq!(world.run(&["new", "-d", "--name", "one", "--if-exists", "return", "--", "sleep", "600"]), id);
    let fresh = world.run(&["new", "-d", "--name", "one", "--if-exists", "restart", "--", "sleep", "600"]);
    assert_ne!(fresh, id);
    assert_eq!(world.info(&id), json!(null), "the old session is forgotten");
    // The name of an ended session can be used again.
    world.run(&["kill", "--keep", "one"]);
    let another = world.run(&["new", "-d", "--name", "one", "--", "sleep", "600"]);
    assert_eq!(world.info("one")["id"], json!(fresh), "the list has both sessions, the oldest first");
    assert!(world.run(&["screen", "one"]).is_empty());
    world.run(&["kill", "one"]);
    assert_eq!(world.info(&another), json!(null), "the name refers to the running session");
}

#[test]
fn r28_a_name_is_not_returned_for_another_command_or_directory() {
    let world = World::new();
    let [here, there] = ["here", "there"].map(|name| world.path().join(name));
    std::fs::create_dir(&here).unwrap();
    std::fs::create_dir(&there).unwrap();
    let new = |if_exists: &str, cwd: &Path, argv: &[&str]| {
        let flags = ["new", "-d", "--name", "job", "--if-exists", if_exists, "--cwd", cwd.to_str().unwrap(), "--"];
        world.try_run(&[&flags[..], argv].concat())
    };
    let first = new("return", &here, &["sleep", "600"]);
    assert!(first.status.success());
    assert_eq!(new("return", &here, &["sleep", "600"]).stdout, first.stdout);
    for (if_exists, cwd, argv) in [
        ("return", &here, &["sleep", "601"][..]),
        ("return", &there, &["sleep", "600"]),
        ("return", &here, &[]),
        ("fail", &here, &["sleep", "600"]),
    ] {
        let refused = new(if_exists, cwd, argv);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains("\"sleep 600\"") && stderr.contains(here.to_str().unwrap()), "{stderr}");
    }
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 1);
}

#[test]
fn r51_files_are_owner_only_and_argv_has_no_secrets() {
    let world = World::new();
    let id = world.run(&["new", "-d", "--env", "SECRET=hunter2", "--", "sh", "-c", "echo $SECRET; exec cat"]);
    world.wait_for_screen(&id, "hunter2");
    wait_until("the screen file", || world.dir(&id).screen().exists().then_some(()));
    let dir = world.dir(&id);
    let mode = |path: &std::path::Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(dir.path()), 0o700);
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let cmdline = std::fs::read(format!("/proc/{}/cmdline", world.pid(&id))).unwrap();
    assert!(!contains(&cmdline, "cat") && !contains(&cmdline, "hunter2"));
}

#[test]
fn r51_typed_text_is_in_no_file() {
    let world = World::new();
    let script = "stty -echo; echo ready; read typed; echo got ${#typed}; read end";
    let id = world.run(&["new", "-d", "--", "sh", "-c", script]);
    world.wait_for_screen(&id, "ready");
    world.run(&["send", &id, "typed-secret", "--enter"]);
    world.wait_for_screen(&id, "got 12");
    let all_files = || {
        let files = std::fs::read_dir(world.dir(&id).path()).unwrap();
        files.map(|file| file.unwrap().path()).filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    // The process is alive, so the first check also covers what it holds open; the second what it writes at its end.
    for end in [false, true] {
        if end {
            world.run(&["kill", "--keep", &id]);
        }
        let files = all_files();
        assert!(files.contains(&world.dir(&id).events()), "{files:?}");
        for file in files {
            assert!(!contains(&std::fs::read(&file).unwrap(), "typed-secret"), "{}", file.display());
        }
    }
}

#[test]
fn the_program_has_the_right_environment() {
    let world = World::new();
    let mut new = world.bowline();
    new.env("TMUX", "/tmp/outer,1,0").env("TERM", "dumb").env("KEPT", "yes");
    let id = new.args(["new", "-d", "--cwd", "/", "--", "sh", "-c"]);
    let id = id
        .arg("echo $TERM $COLORTERM $BOWLINE_SESSION; echo [$TMUX] $KEPT $PWD $(ulimit -Sn); stty size; tty; exec cat");
    let id = String::from_utf8(id.output().unwrap().stdout).unwrap().trim().to_owned();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap();
    let screen = world.wait_for_screen(&id, "/dev/pts/");
    assert!(screen.contains(&format!("xterm-256color truecolor {id}\n[] yes / {limit}\n24 80\n/dev/pts/")), "{screen}");
}

/// The session process has its own umask and signal handling. The program must inherit neither, nor the ignored signals of
/// a starter under `nohup` or in the background of a script.
#[test]
fn the_program_has_its_owners_umask_and_ignores_no_signal() {
    let world = World::new();
    let mut shell = std::process::Command::new("sh");
    let script = "umask 027; trap '' HUP INT QUIT; \"$0\" new --detach -- sh -c 'umask; grep SigIgn /proc/self/status; exec cat'";
    shell.args(["-c", script]).arg(env!("CARGO_BIN_EXE_bowline")).stdin(Stdio::null());
    for (name, value) in world.bowline().get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let id = String::from_utf8(shell.output().unwrap().stdout).unwrap().trim().to_owned();
    let screen = world.wait_for_screen(&id, "SigIgn");
    let ignored = screen.split_whitespace().last().and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap();
    assert!(screen.contains("0027") && ignored & 0b111 == 0, "HUP, INT and QUIT are the first three: {screen}");
}

/// Of several restarts at once, one starts the new epoch, and the others do not end it again.
#[test]
fn r21_racing_restarts_start_one_epoch() {
    let world = World::new();
    let id = world.shell("echo $$ >> runs; exec cat");
    for round in 2..8 {
        world.run(&["kill", "--keep", &id]);
        std::thread::scope(|scope| {
            let racers: Vec<_> = (0..4).map(|_| scope.spawn(|| world.try_run(&["restart", &id]))).collect();
            let outputs = racers.into_iter().map(|racer| racer.join().unwrap());
            assert!(outputs.filter(|output| output.status.success()).count() >= 1);
        });
        assert_eq!(world.info(&id)["state"], "running", "round {round}");
        let runs = || std::fs::read_to_string(world.path().join("runs")).unwrap().lines().count();
        wait_until("the program was started again", || (runs() >= round).then_some(()));
        assert_eq!(runs(), round, "round {round}: the program must be started once");
    }
}

#[test]
fn a_removed_socket_is_bound_again() {
    let world = World::new();
    let id = world.shell("exec cat");
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    std::fs::remove_file(world.dir(&id).sock()).unwrap();
    wait_until("the socket exists again", || world.dir(&id).sock().exists().then_some(()));
    world.wait_for_info(&id, "the viewer is still connected, and the list reaches the session again", |info| {
        info["clients"] == 1
    });
    viewer.type_text("still here\n");
    viewer.until_output("still here");
}

#[test]
fn a_state_directory_too_deep_for_a_socket_works() {
    let world = World::with_state(|temp| temp.join("d".repeat(100)).join("e".repeat(60)));
    let id = world.shell("echo deep; exec cat");
    world.wait_for_screen(&id, "deep");
    let link = std::fs::read_link(world.dir(&id).sock()).expect("a link to a shorter path");
    assert_eq!(link.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(link.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
    world.run(&["kill", &id]);
    assert!(!link.exists(), "the socket was not removed");
}

#[test]
fn r18_a_ttl_ends_a_session_without_viewers() {
    let world = World::new();
    let id = world.run(&["new", "-d", "--ttl", "5s", "--", "sleep", "600"]);
    let viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    assert_eq!(world.info(&id)["state"], "running");
    drop(viewer);
    assert_eq!(world.wait_for_state(&id, "exited")["exit"]["signal"], "SIGHUP");
}

#[test]
fn r55_prune_forgets_sessions_that_are_old_or_exceed_the_total_size() {
    let world = World::new();
    let ids: Vec<String> = (0..3).map(|n| world.shell(&format!("echo {n}"))).collect();
    let alive = world.shell("exec cat");
    for id in &ids {
        world.wait_for_state(id, "exited");
        wait_until("its process has ended", || {
            super::world::session_processes().iter().all(|(_, session)| session != id).then_some(())
        });
    }
    let log = world.dir(&ids[0]).log();
    assert!(log.metadata().unwrap().blocks() * 512 <= 16 << 10, "the log of an exited session shrinks to its content");
    world.run(&["prune"]);
    assert_eq!(world.info(&ids[0])["state"], "exited", "a recently ended session is kept");
    let pruned = world.run(&["prune", "--older", "0s", "--dry-run", "--json"]);
    let pruned: serde_json::Value = serde_json::from_str(&pruned).unwrap();
    assert_eq!(pruned["pruned"].as_array().unwrap().len(), 3);
    assert_eq!(world.info(&ids[0])["state"], "exited", "a dry run removes nothing");
    world.run(&["prune", "--total-size", "0"]);
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 1);
    assert_eq!(world.info(&alive)["state"], "running");
}

/// The process ids of a process's children.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: String = tasks.flatten().map(of).collect();
    all.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
