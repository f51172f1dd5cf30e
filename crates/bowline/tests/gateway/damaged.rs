//! Sessions whose files are damaged or missing: what is whole is served, and the rest is reported.

use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use bowline_host::lock::Lock;
use rustix::fs::{CWD, FileType, Mode};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::gateway::{PATIENCE, World, signal, wait_until};
use super::http;
use super::refusals::check_problem;
use super::viewer::{End, Viewer, contains};

/// Makes a FIFO, which would block a careless reader forever.
pub(crate) fn make_fifo(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// A session that has printed its number and exited, and whose process is gone.
#[track_caller]
fn ended(world: &World, script: &str) -> String {
    let id = world.shell(script);
    let path = format!("/v1/sessions/{id}");
    wait_until("it exits", || (world.call("GET", &path, &Value::Null).json()["state"] == "exited").then_some(()));
    let kept = world.call("DELETE", &format!("{path}?keep=true"), &Value::Null);
    assert_eq!(kept.status, 204, "{}", kept.text());
    id
}

/// Attaches until the session closes the connection. Returns the viewer and the text of the notice, if there was one.
#[track_caller]
fn attach_to_end(world: &World, id: &str) -> (Viewer, Option<String>) {
    let mut viewer = Viewer::new(world.address, &world.token, id, 1);
    viewer.dial(PATIENCE).unwrap();
    let end = loop {
        if let Err(end) = viewer.step() {
            break end;
        }
    };
    assert_eq!(end, End::Closed(1000, "the session exited".into()), "{:?}", viewer.texts);
    let notice = viewer.texts.iter().find(|text| text["type"] == "notify").map(|text| text["body"].to_string());
    (viewer, notice)
}

fn get(world: &World, id: &str, what: &str) -> (u16, String) {
    let answer = world.call("GET", &format!("/v1/sessions/{id}{what}"), &Value::Null);
    (answer.status, answer.text())
}

fn list(world: &World) -> Vec<Value> {
    world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"].as_array().unwrap().clone()
}

#[track_caller]
fn restart(world: &World, id: &str) -> Value {
    let answer = world.call("POST", &format!("/v1/sessions/{id}/restart"), &Value::Null);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// JavaScript cannot represent such an offset, so a client would have to reject the session, or the whole list.
#[test]
fn r52_a_log_header_that_claims_too_much_is_not_believed() {
    let world = World::new();
    let id = ended(&world, "echo the last screen");
    let log = fs::OpenOptions::new().write(true).open(world.session_dir(&id).join("log")).unwrap();
    log.write_all_at(&(1u64 << 60).to_be_bytes(), 24).unwrap();
    let session = list(&world).remove(0);
    assert_eq!(session["offset"], "the last screen\r\n".len(), "as recorded at the exit");
    let (viewer, notice) = attach_to_end(&world, &id);
    assert!(contains(&viewer.snapshot, "the last screen"));
    assert!(notice.unwrap().contains("the log of this session is missing or damaged"));
    assert_eq!(get(&world, &id, "/log").0, 410);
    assert_eq!(get(&world, &id, "/screen"), (200, "the last screen\n".into()));
}

#[test]
fn r52_an_ended_session_with_damaged_files_shows_what_is_whole() {
    let world = World::new();
    type Case = (&'static [&'static str], u16, u16, Option<&'static str>);
    let cases: [Case; 6] = [
        (&["log"], 200, 410, Some("this is its last screen")),
        (&["screen"], 410, 200, None),
        (&["log", "screen"], 410, 410, Some("the log and the last screen")),
        (&["events.jsonl"], 200, 200, Some("not known how its program ended")),
        (&["head"], 200, 200, None),
        (&["log", "screen", "events.jsonl", "head", "lock"], 410, 410, Some("the log and the last screen")),
    ];
    for (files, screen, log, notice) in cases {
        for damage in ["removed", "garbage", "a FIFO", "a directory"] {
            let id = ended(&world, "echo still there");
            for file in files {
                let path = world.session_dir(&id).join(file);
                if damage != "garbage" && path.exists() {
                    fs::remove_file(&path).unwrap();
                }
                match damage {
                    "garbage" => fs::write(&path, "garbage\n").unwrap(),
                    "a FIFO" => make_fifo(&path),
                    "a directory" => fs::create_dir_all(path.join("full")).unwrap(),
                    _ => {}
                }
            }
            let what = format!("{files:?}: {damage}");
            assert_eq!((get(&world, &id, "/screen").0, get(&world, &id, "/log").0), (screen, log), "{what}");
            let (viewer, seen) = attach_to_end(&world, &id);
            let shown = contains(&viewer.snapshot, "still there") || contains(&viewer.output, "still there");
            assert_eq!(shown, screen == 200 || log == 200, "{what}");
            assert_eq!(seen.is_some(), notice.is_some(), "{what}: {seen:?}");
            assert!(notice.is_none_or(|text| seen.unwrap().contains(text)), "{what}");
            // It can be started again, and then works as if nothing had happened.
            let session = restart(&world, &id);
            assert!(session["offset"].as_u64().unwrap() >= viewer.cursor.unwrap().1, "{what}: offsets continue");
            wait_until("it exits again", || get(&world, &id, "/screen").1.contains("still there").then_some(()));
            assert!(get(&world, &id, "/log").1.contains("still there"), "{what}");
            assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}"), &Value::Null).status, 204, "{what}");
        }
    }
}

/// The process knows everything that its files no longer say.
#[test]
fn r52_a_running_session_with_damaged_files_is_served_by_its_process() {
    let world = World::new();
    for file in ["events.jsonl", "meta.json", "log", "screen"] {
        for damage in ["removed", "garbage"] {
            let id = world.shell("exec cat");
            let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
            viewer.dial(PATIENCE).unwrap();
            viewer.type_in("before\n");
            viewer.until_output("before\r\nbefore");
            let shows_it = || get(&world, &id, "/screen").1.contains("before\nbefore").then_some(());
            wait_until("the screen shows it", shows_it);
            let path = world.session_dir(&id).join(file);
            match damage {
                "removed" => fs::remove_file(&path).or_else(|error| {
                    // The screen is saved only once output pauses.
                    if file == "screen" { Ok(()) } else { Err(error) }
                }),
                _ => fs::write(&path, "garbage\n"),
            }
            .unwrap();
            let what = format!("{file}: {damage}");
            let session = list(&world).into_iter().find(|session| session["id"] == *id);
            assert_eq!(session.unwrap()["state"], "running", "{what}");
            let mut second = Viewer::new(world.address, &world.token, &id, 2);
            second.dial(PATIENCE).unwrap();
            second.type_in("after\n");
            second.until_output("after\r\nafter");
            assert!(shows_it().is_some(), "{what}");
            // The process reads the log from the file that it has open, which is overwritten in one case.
            if what != "log: garbage" {
                let (status, log) = get(&world, &id, "/log");
                assert!(status == 200 && log.contains("before\r\nbefore"), "{what}: {status} {log}");
            }
            assert_eq!(restart(&world, &id)["state"], "running", "{what}: it is not started twice");
            assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?grace=0"), &Value::Null).status, 204, "{what}");
            assert!(!world.session_dir(&id).exists(), "{what}");
        }
    }
}

/// Only the file says what an ended session was: without it, the session would be in no list, and soon be removed.
#[test]
fn r52_a_running_session_puts_its_description_back() {
    let world = World::new();
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    for damage in ["removed", "garbage", "of another session", "a directory"] {
        let id = world.shell("read go; echo $go");
        let path = world.session_dir(&id).join("meta.json");
        let whole = read(&path);
        match damage {
            "garbage" => fs::write(&path, "{").unwrap(),
            "of another session" => fs::write(&path, whole.replace(&id, "k3v9x0q2m7aa")).unwrap(),
            _ => fs::remove_file(&path).unwrap(),
        }
        match damage {
            "removed" => wait_until("it is put back at once", || (read(&path) == whole).then_some(())),
            "a directory" => drop(fs::create_dir_all(path.join("full"))),
            _ => {}
        }
        let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
        viewer.dial(PATIENCE).unwrap();
        viewer.type_in("bye\n");
        viewer.until_output("bye\r\nbye");
        drop(viewer);
        wait_until("it exits", || (!Lock::is_held(&world.session_dir(&id).join("lock"))).then_some(()));
        let session = list(&world).into_iter().find(|session| session["id"] == *id);
        assert_eq!(session.unwrap()["state"], "exited", "{damage}");
        assert_eq!(read(&path), whole, "{damage}");
        assert_eq!(restart(&world, &id)["state"], "running", "{damage}");
    }
}

/// A restart would end the program that is running.
#[test]
fn r52_a_running_session_whose_start_is_lost_from_its_journal_is_not_restarted() {
    let world = World::new();
    let id = ended(&world, "test ! -e again || exec cat");
    fs::write(world.path().join("again"), "").unwrap();
    assert_eq!(restart(&world, &id)["state"], "running");
    let (pid, events) = (world.session_pid(&id), world.session_dir(&id).join("events.jsonl"));
    let text = fs::read_to_string(&events).unwrap();
    let start = text.rfind("\"started\"").unwrap();
    let mut garbage = text.into_bytes();
    garbage[start] = b'#';
    fs::write(&events, garbage).unwrap();
    let _ = fs::remove_file(world.session_dir(&id).join("head"));
    let session = list(&world).remove(0);
    assert_eq!(session["state"], "running");
    assert_eq!(restart(&world, &id)["epoch"], session["epoch"], "it is not started twice");
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
    viewer.dial(PATIENCE).unwrap();
    viewer.type_in("still there\n");
    viewer.until_output("still there\r\nstill there");
}

/// What the process reports lacks the environment and the request, so it cannot stand in for the file.
#[test]
fn r52_a_session_is_not_restarted_without_its_description() {
    let world = World::new();
    let create = || {
        let body = json!({"kind": "terminal", "argv": ["sh", "-c", "read go"], "name": "one", "if_exists": "return"});
        let headers = [("Idempotency-Key", "one"), ("Authorization", &format!("Bearer {}", world.token))];
        http::request(world.address, "POST", "/v1/sessions", &headers, body.to_string().as_bytes()).unwrap()
    };
    let id = create().json()["id"].as_str().unwrap().to_owned();
    let dir = world.session_dir(&id);
    // The process cannot put the file back.
    fs::create_dir_all(dir.join("meta.json.new/full")).unwrap();
    let whole = fs::read(dir.join("meta.json")).unwrap();
    fs::write(dir.join("meta.json"), "{").unwrap();
    check_problem(&create(), 503, "unreachable");
    let name = json!({"name": "two"});
    check_problem(&world.call("PATCH", &format!("/v1/sessions/{id}"), &name), 503, "unreachable");
    let new = json!({"kind": "terminal", "argv": ["sh", "-c", "read go"], "name": "one", "if_exists": "return"});
    check_problem(&world.call("POST", "/v1/sessions", &new), 503, "unreachable");
    // After the exit, its process serves as long as there is someone to serve.
    let _idle = UnixStream::connect(dir.join("sock")).unwrap();
    let command = json!({"id": "go", "command": {"type": "input", "text": "go\n"}});
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/commands"), &command).status, 202);
    wait_until("it exits", || get(&world, &id, "").1.contains("\"exited\"").then_some(()));
    let refused = world.call("POST", &format!("/v1/sessions/{id}/restart"), &Value::Null);
    check_problem(&refused, 503, "unreachable");
    fs::write(dir.join("meta.json"), whole).unwrap();
    fs::remove_dir_all(dir.join("meta.json.new")).unwrap();
    assert_eq!(create().json()["id"], *id);
    assert_eq!(restart(&world, &id)["state"], "running");
}

/// Without its lock, a running session must not count as lost: a second process could be started beside it.
#[test]
fn r52_a_running_session_without_its_lock_is_still_running() {
    let world = World::new();
    let id = world.shell("exec cat");
    let lock = world.session_dir(&id).join("lock");
    let pid = world.session_pid(&id);
    // A stopped process cannot put the lock back, and answers nothing.
    signal(pid, Signal::STOP);
    fs::remove_file(&lock).unwrap();
    let state = || list(&world).into_iter().find(|session| session["id"] == *id).unwrap()["state"].clone();
    assert_eq!(state(), "running");
    assert_eq!(restart(&world, &id)["state"], "running");
    world.ok(&["prune", "--older", "0s"]);
    assert_eq!(state(), "running");
    signal(pid, Signal::CONT);
    wait_until("the process takes its lock again", || Lock::is_held(&lock).then_some(()));
    // The process notices that, too, and sets the FIFO aside.
    make_fifo(&lock.with_extension("fifo"));
    fs::rename(lock.with_extension("fifo"), &lock).unwrap();
    assert_eq!(state(), "running");
    wait_until("the process takes its lock again", || Lock::is_held(&lock).then_some(()));
    let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
    viewer.dial(PATIENCE).unwrap();
    viewer.type_in("the same process\n");
    viewer.until_output("the same process\r\nthe same process");
    assert_eq!(world.session_pid(&id), pid);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?grace=0"), &Value::Null).status, 204);
    wait_until("its process has ended", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
}

/// A screen from before the exit, or of an earlier run, is not the last one.
#[test]
fn r22_a_screen_that_could_not_be_written_at_the_exit_is_not_shown() {
    let world = World::new();
    let id = ended(&world, "echo from the first run; test -e again && printf 'from the second run'");
    assert_eq!(get(&world, &id, "/screen"), (200, "from the first run\n".into()));
    // The next screen can be written neither while the program runs nor at its exit.
    fs::create_dir_all(world.session_dir(&id).join("screen.new/full")).unwrap();
    fs::write(world.path().join("again"), "").unwrap();
    restart(&world, &id);
    wait_until("it exits again", || (list(&world)[0]["state"] == "exited").then_some(()));
    let (status, body) = get(&world, &id, "/screen");
    assert_eq!(status, 410, "{body}");
    assert!(body.contains("its log may have the output"), "{body}");
    assert_eq!(world.run(&["screen", &id]).status.code(), Some(1));
    let (viewer, _) = attach_to_end(&world, &id);
    assert!(contains(&viewer.output, "from the first run\r\nfrom the second run"), "the log has all of it");
}
