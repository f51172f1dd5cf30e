//! Ending a session ends everything it started, and nothing else.

use serde_json::json;

use super::lifecycle::children;
use super::viewer::{Viewer, hello};
use super::world::{World, is_alive, wait_until};

/// The process ids that a session's program printed as `pid=N`.
fn printed_pids(world: &World, id: &str, count: usize) -> Vec<i32> {
    wait_until("the printed process ids", || {
        let screen = world.screen(id);
        let pids: Vec<i32> = screen
            .split("pid=")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
            .collect();
        (pids.len() >= count).then_some(pids)
    })
}

/// A child that ignores SIGHUP, one in another session, and a daemon that forked twice.
#[test]
fn r31_kill_reaches_processes_that_left_the_terminal() {
    let world = World::new();
    let id = world.shell(
        "(trap '' HUP; echo pid=$(exec sh -c 'echo $PPID'); sleep 600) & \
         setsid sh -c 'echo pid=$$; exec sleep 600' & \
         (setsid sh -c 'trap \"\" HUP; (echo pid=$(exec sh -c \"echo \\$PPID\"); exec sleep 600 >/dev/null 2>&1 </dev/null) &' &) ; \
         sleep 600",
    );
    let pids = printed_pids(&world, &id, 3);
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    let process = world.pid(&id);
    world.run(&["kill", &id, "--grace", "0s"]);
    for pid in pids.into_iter().chain([process]) {
        assert!(!is_alive(pid), "process {pid} is still running");
    }
    assert!(!world.dir(&id).path().exists());
}

/// A program has the grace to clean up; a second kill with a shorter grace cuts it short.
#[test]
fn r31_the_grace_is_for_cleaning_up() {
    let world = World::new();
    let id = world.shell("trap 'echo cleaned up > done; exit 7' HUP; echo ready; while :; do sleep 0.05; done");
    world.wait_for_screen(&id, "ready");
    world.run(&["kill", "--keep", &id]);
    assert_eq!(world.info(&id)["exit"], json!({"code": 7, "signal": null}));
    assert_eq!(std::fs::read_to_string(world.path().join("done")).unwrap(), "cleaned up\n");

    let id = world.shell("trap '' HUP; echo deaf; while :; do sleep 0.05; done");
    world.wait_for_screen(&id, "deaf");
    std::thread::scope(|scope| {
        let patient = scope.spawn(|| world.try_run(&["kill", "--keep", "--grace", "5m", &id]));
        world.run(&["kill", "--keep", "--grace", "0s", &id]);
        assert!(patient.join().unwrap().status.success());
    });
    assert_eq!(world.info(&id)["exit"], json!({"code": null, "signal": "SIGKILL"}));
}

/// Background processes of a program that exits are left alone, even if they hold the terminal.
#[test]
fn r31_an_exit_kills_no_other_process() {
    let world = World::new();
    let id = world.shell("setsid sh -c 'echo pid=$$; exec sleep 600' & sleep 0.2; exit 3");
    let pid = printed_pids(&world, &id, 1)[0];
    assert_eq!(world.wait_for_state(&id, "exited")["exit"]["code"], 3);
    wait_until("the session process ended", || {
        super::world::session_processes().iter().all(|(_, session)| *session != id).then_some(())
    });
    assert!(is_alive(pid));
    super::world::signal(pid, "KILL");
}

/// Programs with certain names are spared, but not if they are what the session runs.
#[test]
fn r31_the_sessions_own_program_is_never_spared() {
    let world = World::new();
    let screen = world.path().join("screen");
    // Copied by another process, because children of other tests could inherit the file open for writing.
    assert!(std::process::Command::new("cp").arg("/bin/sleep").arg(&screen).status().unwrap().success());
    let id = world.run(&["new", "-d", "--", screen.to_str().unwrap(), "600"]);
    world.run(&["kill", "--keep", &id]);
    assert_eq!(world.info(&id)["exit"]["signal"], "SIGHUP");
}

/// A program closes its terminal, and opens it again to print.
#[test]
fn r31_output_on_a_reopened_terminal_is_logged() {
    let world = World::new();
    for round in 0..5 {
        let id = world.shell("exec <&- >&- 2>&-; sleep 0.05; echo last words > /dev/tty");
        world.wait_for_state(&id, "exited");
        assert!(world.run(&["log", &id]).contains("last words"), "round {round}");
    }
}

#[test]
fn r31_a_session_started_inside_is_spared() {
    let world = World::new();
    let inner = format!("{} new --detach --name inner -- sleep 600", env!("CARGO_BIN_EXE_bowline"));
    let outer = world.shell(&format!("{inner}; exec cat"));
    wait_until("the inner session runs", || (world.info("inner")["state"] == "running").then_some(()));
    world.run(&["kill", &outer]);
    assert_eq!(world.info("inner")["state"], "running");
}

#[test]
fn r31_a_session_leaves_no_zombies_and_no_descriptors() {
    let world = World::new();
    let id = world.shell("while read line; do (sleep 0.01 &) ; echo $line; done");
    let pid = world.pid(&id);
    let fds = || std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let before = fds();
    for round in 1..=40u64 {
        let mut viewer =
            Viewer::attach(&world, &id, &hello(round, 1, json!({"size": {"cols": 80 + round, "rows": 24}})));
        viewer.type_text(&format!("round {round}\n"));
        viewer.until_output(&format!("round {round}\r\nround {round}\r\n"));
    }
    wait_until("descriptors are closed", || (fds() == before).then_some(()));
    wait_until("orphans are reaped", || (children(pid).len() == 1).then_some(()));
    assert_eq!(world.info(&id)["clients"], 0);
}

/// SIGTERM to the session process, as in a shutdown, ends it cleanly with a recorded status.
#[test]
fn r21_a_shutdown_is_a_clean_end() {
    let world = World::new();
    let id = world.shell("exec sleep 600");
    super::world::signal(world.pid(&id), "TERM");
    assert_eq!(world.wait_for_state(&id, "exited")["exit"]["signal"], "SIGHUP");
}

/// Viewers get the last output before a session ends, but one that does not read it cannot prevent the end.
#[test]
fn r31_a_viewer_that_does_not_read_does_not_hold_up_a_kill() {
    let world = World::new();
    let id = world.shell("printf READY; read x; exec yes");
    world.wait_for_screen(&id, "READY");
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.type_text("\n");
    viewer.until("the flood", |viewer| viewer.offset > 1 << 20);
    let stopped = viewer.offset;
    // Far more than its socket can hold.
    world.wait_for_info(&id, "the viewer is behind", |info| info["offset"].as_u64().unwrap() > stopped + (4 << 20));
    world.run(&["kill", &id]);
    assert_eq!(world.info(&id), json!(null));
}
