//! Sessions over HTTP: creating, finding, changing, commands, reading and ending.

use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::gateway::{World, signal, wait_until};
use super::http::{self, Response};
use super::refusals::check_problem;
use super::viewer::contains;

fn create(world: &World, body: &Value, key: Option<&str>) -> Response {
    let bearer = world.bearer();
    let mut headers = vec![("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    headers.extend(key.map(|key| ("Idempotency-Key", key)));
    http::request(world.address, "POST", "/v1/sessions", &headers, body.to_string().as_bytes()).unwrap()
}

fn count(world: &World) -> usize {
    world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"].as_array().unwrap().len()
}

fn info(world: &World, key: &str) -> Value {
    let answer = world.call("GET", &format!("/v1/sessions/{key}"), &Value::Null);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The `detached_ttl` in a session's files.
fn ttl(world: &World, key: &str) -> u64 {
    let id = info(world, key)["id"].as_str().unwrap().to_owned();
    let meta = std::fs::read(world.session_dir(&id).join("meta.json")).unwrap();
    serde_json::from_slice::<Value>(&meta).unwrap()["detached_ttl"].as_u64().unwrap()
}

#[track_caller]
fn until_state(world: &World, key: &str, state: &str) -> Value {
    wait_until(state, || Some(info(world, key)).filter(|info| info["state"] == state))
}

#[test]
fn r28_a_session_that_cannot_be_created_leaves_nothing_behind() {
    let world = World::new();
    let file = world.path().join("config.toml").display().to_string();
    for (fields, status, code) in [
        (json!({"cwd": "/no/such/place"}), 422, "bad_cwd"),
        (json!({"cwd": "relative"}), 422, "bad_cwd"),
        (json!({"cwd": file}), 422, "bad_cwd"),
        (json!({"argv": ["no-such-program"]}), 422, "no_program"),
        (json!({"argv": ["/"]}), 422, "no_program"),
        (json!({"argv": [""]}), 400, "bad_request"),
        (json!({"argv": ["a\u{0}b"]}), 400, "bad_request"),
        (json!({"argv": "sh"}), 400, "bad_request"),
        (json!({"name": 5}), 400, "bad_request"),
        (json!({"name": ""}), 400, "bad_name"),
        (json!({"name": "../up"}), 400, "bad_name"),
        (json!({"name": "-x"}), 400, "bad_name"),
        (json!({"name": "x".repeat(65)}), 400, "bad_name"),
        (json!({"size": {"cols": 0, "rows": 24}}), 400, "bad_size"),
        (json!({"size": {"cols": 80, "rows": 70_000}}), 400, "bad_size"),
        (json!({"size": "big"}), 400, "bad_size"),
        (json!({"env": {"A=B": "c"}}), 400, "bad_request"),
        (json!({"env": {"": "c"}}), 400, "bad_request"),
        (json!({"env": {"A": "\u{0}"}}), 400, "bad_request"),
        (json!({"log_size": 1}), 400, "bad_request"),
        (json!({"scrollback": 4_000_000_000_u64}), 400, "bad_request"),
        (json!({"detached_ttl": u64::MAX}), 400, "bad_request"),
        (json!({"if_exists": "maybe"}), 400, "bad_request"),
        (json!({"kind": "robot"}), 400, "bad_request"),
    ] {
        let mut body = json!({"kind": "terminal", "argv": ["cat"]});
        fields.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        check_problem(&create(&world, &body, None), status, code);
        check_problem(&create(&world, &body, Some("a key")), status, code);
    }
    for body in ["", "{", "[]", "null", "{\"kind\":\"terminal\",\"kind\":\"terminal\"", &"[".repeat(100_000)] {
        let bearer = world.bearer();
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let answer = http::request(world.address, "POST", "/v1/sessions", &headers, body.as_bytes()).unwrap();
        check_problem(&answer, 400, "bad_request");
        let form = [headers[0], ("Content-Type", "text/plain")];
        let answer = http::request(world.address, "POST", "/v1/sessions", &form, b"{\"kind\":\"terminal\"}").unwrap();
        check_problem(&answer, 400, "bad_request");
    }
    assert_eq!(count(&world), 0);
    let folders = std::fs::read_dir(world.state().join("sessions")).unwrap().flatten().count();
    assert_eq!(folders, 0, "session folders were left behind");
    // A refused request does not use up the idempotency key.
    assert_eq!(create(&world, &json!({"kind": "terminal", "argv": ["cat"]}), Some("a key")).status, 201);
}

#[test]
fn r28_a_key_creates_one_session_however_often_it_is_repeated() {
    let mut world = World::new();
    let body = json!({"kind": "terminal", "argv": ["cat"]});
    let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
        let requests: Vec<_> = (0..8).map(|_| scope.spawn(|| create(&world, &body, Some("k")))).collect();
        requests.into_iter().map(|one| one.join().unwrap().json()["id"].as_str().unwrap().to_owned()).collect()
    });
    assert_eq!((ids.len(), count(&world)), (1, 1));
    world.kill_gateway();
    world.start_gateway();
    let again = create(&world, &body, Some("k"));
    assert_eq!(again.status, 201);
    assert_eq!(Some(again.json()["id"].as_str().unwrap()), ids.first().map(String::as_str));
    let other = json!({"kind": "terminal", "argv": ["cat", "-"]});
    check_problem(&create(&world, &other, Some("k")), 409, "id_reused");
    let other_token = world.new_token("other", "write");
    let bearer = format!("Bearer {other_token}");
    let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", "k"), ("Content-Type", "application/json")];
    let theirs =
        http::request(world.address, "POST", "/v1/sessions", &headers, body.to_string().as_bytes()).unwrap().json();
    assert!(!ids.contains(theirs["id"].as_str().unwrap()), "each caller has its own keys");
    for bad in ["", &"x".repeat(300)] {
        check_problem(&create(&world, &body, Some(bad)), 400, "bad_request");
    }
    assert_eq!(count(&world), 2);
}

/// A session process that is killed while it starts leaves a folder, but does not use up the idempotency key.
#[test]
fn r28_a_key_whose_first_start_was_interrupted_creates_its_session() {
    let world = World::new();
    let body = json!({"kind": "terminal", "argv": ["cat"]});
    let id = create(&world, &body, Some("k")).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?grace=0"), &Value::Null).status, 204);
    let dir = world.session_dir(&id);
    std::fs::create_dir(&dir).unwrap();
    for file in ["log", "events.jsonl", "lock"] {
        std::fs::write(dir.join(file), "left behind").unwrap();
    }
    check_problem(&world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null), 404, "unknown_session");
    let again = create(&world, &body, Some("k"));
    assert_eq!((again.status, &again.json()["id"]), (201, &json!(id)), "{}", again.text());
    assert_eq!((&again.json()["state"], &again.json()["offset"]), (&json!("running"), &json!(0)));
}

#[test]
fn r28_a_replacement_that_cannot_start_keeps_the_old_session() {
    let world = World::new();
    let dev = json!({"kind": "terminal", "name": "dev", "argv": ["cat"]});
    let id = create(&world, &dev, None).json()["id"].clone();
    for (wrong, code) in
        [(json!({"cwd": "/no/such/place"}), "bad_cwd"), (json!({"argv": ["no-such-program"]}), "no_program")]
    {
        let mut body = json!({"kind": "terminal", "name": "dev", "if_exists": "restart", "argv": ["cat"]});
        wrong.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        check_problem(&create(&world, &body, None), 422, code);
        assert_eq!((&info(&world, "dev")["id"], &info(&world, "dev")["state"]), (&id, &json!("running")));
    }
    assert_eq!(count(&world), 1);
}

#[test]
fn r28_null_fields_count_as_missing_and_a_new_session_has_a_location() {
    let world = World::new();
    let all_null = json!({
        "kind": "terminal", "name": null, "argv": null, "cwd": null, "env": null, "size": null, "if_exists": null,
        "detached_ttl": null, "log_size": null, "scrollback": null,
    });
    let made = create(&world, &all_null, Some("once"));
    assert_eq!(made.status, 201, "{}", made.text());
    let location = format!("sessions/{}", made.json()["id"].as_str().unwrap());
    // Relative to `/v1/sessions`, the URL of the request.
    assert_eq!(made.header("location"), Some(&*location));
    assert_eq!(world.call("GET", &format!("/v1/{location}"), &Value::Null).status, 200);
    let repeated = create(&world, &json!({"kind": "terminal"}), Some("once"));
    assert_eq!((repeated.status, repeated.header("location")), (201, Some(&*location)));
}

#[test]
fn r52_input_for_a_program_that_does_not_read_is_bounded() {
    let world = World::new();
    let id = world.shell("stty raw -echo; exec sleep 1000");
    let text = "x".repeat(200_000);
    let refused = (0..100).find_map(|n| {
        let command = json!({"id": format!("c{n}"), "command": {"type": "input", "text": text}});
        let answer = world.call("POST", &format!("/v1/sessions/{id}/commands"), &command);
        (answer.status != 202).then_some(answer)
    });
    let refused = refused.expect("input is bounded");
    check_problem(&refused, 429, "too_many");
    assert_eq!(refused.header("retry-after"), Some("1"));
}

#[test]
fn r28_a_name_returns_only_the_same_command_in_the_same_directory() {
    let world = World::new();
    let create_job = |more: Value| {
        let mut body =
            json!({"kind": "terminal", "name": "job", "if_exists": "return", "argv": ["cat"], "cwd": "/tmp"});
        more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        create(&world, &body, None)
    };
    let first = create_job(json!({}));
    assert_eq!(first.status, 201, "{}", first.text());
    let same =
        create_job(json!({"env": {"A": "b"}, "size": {"cols": 99, "rows": 9}, "log_size": 1 << 20, "scrollback": 7}));
    assert_eq!((same.status, &same.json()["id"]), (200, &first.json()["id"]), "{}", same.text());
    for other in [json!({"argv": ["cat", "-u"]}), json!({"argv": null}), json!({"cwd": "/"}), json!({"cwd": null})] {
        let refused = create_job(other);
        check_problem(&refused, 409, "name_taken");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("\"cat\" in \"/tmp\""), "{detail}");
    }
    assert_eq!(count(&world), 1);
}

#[test]
fn r28_a_name_identifies_a_session() {
    let world = World::new();
    let body = |if_exists: Option<&str>| {
        let mut body = json!({"kind": "terminal", "name": "build", "argv": ["cat"]});
        if let Some(how) = if_exists {
            body["if_exists"] = json!(how);
        }
        body
    };
    let first = create(&world, &body(None), None).json()["id"].clone();
    for how in [None, Some("fail")] {
        check_problem(&create(&world, &body(how), None), 409, "name_taken");
    }
    let returned = create(&world, &body(Some("return")), None);
    assert_eq!((returned.status, &returned.json()["id"]), (200, &first));
    let restarted = create(&world, &body(Some("restart")), None);
    assert_eq!(restarted.status, 201);
    let second = restarted.json()["id"].clone();
    assert_ne!(second, first);
    assert_eq!((info(&world, "build")["id"].clone(), count(&world)), (second, 1));

    // Every request accepts the name in place of the id.
    let call = |method: &str, path: &str, body: &Value| world.call(method, &format!("/v1/sessions/{path}"), body);
    assert_eq!(call("GET", "build/screen", &Value::Null).status, 200);
    assert_eq!(call("GET", "build/log", &Value::Null).status, 200);
    let command = json!({"id": "c", "command": {"type": "input", "text": "hi\n"}});
    assert_eq!(call("POST", "build/commands", &command).status, 202);
    assert_eq!(call("PATCH", "build", &json!({"name": "other", "detached_ttl": 1000})).json()["name"], "other");
    check_problem(&call("GET", "build", &Value::Null), 404, "unknown_session");
    create(&world, &json!({"kind": "terminal", "name": "third", "argv": ["cat"]}), None);
    check_problem(&call("PATCH", "third", &json!({"name": "other"})), 409, "name_taken");
    // Either both fields change, or neither does.
    check_problem(&call("PATCH", "third", &json!({"name": "other", "detached_ttl": 5})), 409, "name_taken");
    check_problem(&call("PATCH", "third", &json!({"name": "free", "detached_ttl": u64::MAX})), 400, "bad_request");
    assert_eq!((info(&world, "third")["state"].clone(), ttl(&world, "third")), (json!("running"), 0));
    assert_eq!(call("PATCH", "third", &json!({"name": "third", "detached_ttl": 700})).status, 200);
    assert_eq!(ttl(&world, "third"), 700);
    check_problem(&call("PATCH", "third", &json!({"name": "a b"})), 400, "bad_name");
    check_problem(&call("PATCH", "third", &json!({"detached_ttl": u64::MAX})), 400, "bad_request");
    check_problem(&call("PATCH", "missing", &json!({"name": "x"})), 404, "unknown_session");
    assert_eq!(call("PATCH", "third", &json!({})).status, 200);
    assert_eq!(call("DELETE", "third?keep=true&grace=0", &Value::Null).status, 204);
    assert_eq!(info(&world, "third")["state"], "exited");
    for change in [json!({"detached_ttl": 5}), json!({"name": "free", "detached_ttl": 5})] {
        check_problem(&call("PATCH", "third", &change), 410, "session_gone");
    }
    check_problem(&call("GET", "free", &Value::Null), 404, "unknown_session");
    assert_eq!(call("DELETE", "third?grace=18446744073709551615", &Value::Null).status, 204);
    check_problem(&call("DELETE", "third", &Value::Null), 404, "unknown_session");
    check_problem(&call("DELETE", "other?keep=perhaps", &Value::Null), 400, "bad_request");
    assert_eq!(call("DELETE", "other?grace=0", &Value::Null).status, 204);
    assert_eq!(count(&world), 0);
}

#[test]
fn r21_an_ended_session_is_restarted_once() {
    let world = World::new();
    let id = world.shell("echo one run; exit 3");
    let exited = until_state(&world, &id, "exited");
    assert_eq!(exited["exit"], json!({"code": 3, "signal": null}));
    let path = format!("/v1/sessions/{id}/restart");
    let old = exited["epoch"].clone();
    let epochs: Vec<Value> = std::thread::scope(|scope| {
        let requests: Vec<_> =
            (0..4).map(|_| scope.spawn(|| world.call("POST", &path, &json!({"epoch": old})))).collect();
        requests.into_iter().map(|one| one.join().unwrap()).map(|answer| answer.json()["epoch"].clone()).collect()
    });
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0] && *epoch != old), "{epochs:?}");
    until_state(&world, &id, "exited");
    let stale = world.call("POST", &path, &json!({"epoch": old}));
    assert_eq!((stale.status, &stale.json()["epoch"], &stale.json()["state"]), (200, &epochs[0], &json!("exited")));
    check_problem(&world.call("POST", &path, &json!({"epoch": "no epoch"})), 400, "bad_request");
    let again = world.call("POST", &path, &Value::Null);
    assert_eq!(again.status, 200, "{}", again.text());
    until_state(&world, &id, "exited");
    let log = world.call("GET", &format!("/v1/sessions/{id}/log"), &Value::Null).text();
    assert_eq!(log.matches("one run").count(), 3, "{log}");
    assert_eq!(info(&world, &id)["offset"], log.len(), "offsets continue after a restart");
}

#[test]
fn r30_the_screen_and_the_log_can_be_read_in_every_state() {
    let mut world = World::new();
    let script = "printf 'caf\\303\\251 \\033[1mbold\\033[m\\r\\n'; read -r line; exit 4";
    let (running, lost) = (world.shell(script), world.shell(script));
    let (ended, down) = (world.shell(script), world.shell(script));
    let screen = |world: &World, id: &str, format: &str| {
        world.call("GET", &format!("/v1/sessions/{id}/screen?format={format}"), &Value::Null)
    };
    for id in [&running, &lost, &ended, &down] {
        wait_until("the text is on the screen", || {
            screen(&world, id, "text").text().contains("café bold").then_some(())
        });
        // A killed process leaves the saved screen.
        wait_until("the screen is saved", || {
            let saved = std::fs::read(world.session_dir(id).join("screen")).unwrap_or_default();
            contains(&saved, "bold").then_some(())
        });
    }
    signal(world.session_pid(&lost), Signal::KILL);
    world.ok(&["send", &ended, "", "--enter"]);
    world.kill_gateway();
    world.ok(&["send", &down, "", "--enter"]);
    wait_until("it ended while there was no gateway", || world.ok(&["ls", "--json"]).contains("exited").then_some(()));
    world.start_gateway();
    for (id, state, exit) in [
        (&running, "running", Value::Null),
        (&lost, "lost", Value::Null),
        (&ended, "exited", json!({"code": 4, "signal": null})),
        (&down, "exited", json!({"code": 4, "signal": null})),
    ] {
        assert_eq!(until_state(&world, id, state)["exit"], exit);
        let text = screen(&world, id, "text");
        assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(text.text().starts_with("café bold"), "{state}: {}", text.text());
        assert!(screen(&world, id, "ansi").text().contains('\u{1b}'), "{state}");
        let json = screen(&world, id, "json");
        assert_eq!(json.header("content-type"), Some("application/json"));
        assert!(json.json().to_string().contains("café"), "{state}: {}", json.text());
        check_problem(&screen(&world, id, "gif"), 400, "bad_request");
        let command = json!({"id": "c1", "command": {"type": "signal", "name": "WINCH"}});
        let commands = format!("/v1/sessions/{id}/commands");
        if state == "running" {
            check_commands(&world, &commands);
        } else {
            check_problem(&world.call("POST", &commands, &command), 410, "session_gone");
        }
    }
}

fn check_commands(world: &World, path: &str) {
    let command = |id: &str, command: Value| world.call("POST", path, &json!({"id": id, "command": command}));
    let winch = json!({"type": "signal", "name": "WINCH"});
    let first = command("c1", winch.clone());
    assert_eq!((first.status, &first.json()["status"]), (202, &json!("accepted")));
    let again = command("c1", winch.clone());
    assert_eq!((again.status, &again.json()["status"]), (200, &json!("duplicate")));
    assert_eq!(again.json()["seq"], first.json()["seq"]);
    check_problem(&command("c1", json!({"type": "input", "text": "x"})), 409, "id_reused");
    for bad in [json!({"type": "dance"}), json!({}), json!(7), json!({"type": "signal", "name": "SIGNOPE"})] {
        let answer = command("c2", bad.clone());
        assert_eq!((answer.status, answer.code()), (400, "bad_request"), "{bad}: {}", answer.text());
    }
    assert_eq!(command(&"x".repeat(64), winch.clone()).status, 202);
    for id in ["", &"x".repeat(65)] {
        check_problem(&command(id, winch.clone()), 400, "bad_request");
    }
    check_problem(&world.call("POST", path, &json!({"id": "c3"})), 400, "bad_request");
}

#[test]
fn r30_ranges_of_the_log_can_be_read_as_far_as_it_is_kept() {
    let world = World::new();
    let body = json!({"kind": "terminal", "log_size": 262_144, "argv": ["sh", "-c", "stty -opost; seq -w 1 100000; echo end"]});
    let id = create(&world, &body, None).json()["id"].as_str().unwrap().to_owned();
    let end = until_state(&world, &id, "exited")["offset"].as_u64().unwrap();
    assert_eq!(end, 700_004);
    let log = |query: &str| world.call("GET", &format!("/v1/sessions/{id}/log{query}"), &Value::Null);
    let kept = log("");
    assert_eq!(kept.status, 200);
    let start = end - kept.body.len() as u64;
    assert!(start > 0, "the log must have been trimmed");
    assert_eq!(kept.header("content-range"), Some(&*format!("bytes {start}-{}/{end}", end - 1)));
    let part = log(&format!("?from={}&to={}", start + 10, start + 20));
    assert_eq!((part.status, &part.body[..]), (206, &kept.body[10..20]));
    assert_eq!(log(&format!("?from={}", end - 4)).body, b"end\n");
    let beyond = log(&format!("?to={}", u64::MAX));
    assert_eq!(beyond.body, kept.body);
    let empty = log(&format!("?from={end}"));
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    for query in ["?from=0".to_owned(), format!("?from={}", end + 1), format!("?from={}&to={start}", start + 1)] {
        let refused = log(&query);
        check_problem(&refused, 416, "out_of_range");
        assert_eq!(refused.header("content-range"), Some(&*format!("bytes */{end}")));
        assert_eq!(refused.json()["retained"], json!({"from": start, "to": end}));
    }
    for query in ["?from=-1", "?from=x", "?to=1e3", "?from=99999999999999999999"] {
        check_problem(&log(query), 400, "bad_request");
    }
}

/// When the disk fails, the log continues in memory.
#[test]
fn r30_the_whole_log_of_a_degraded_session_can_be_read() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let world = World::new();
    let id = world.shell("stty -echo -opost; echo on disk; read go; printf 'in memory \\377'; exec cat");
    let log = |query: &str| world.call("GET", &format!("/v1/sessions/{id}/log{query}"), &Value::Null);
    wait_until("the log is on the disk", || (log("").body == b"on disk\n").then_some(()));
    // From now on no write beyond the first page of a file succeeds. The log's ring is after that.
    let page = Rlimit { current: Some(4096), maximum: Some(4096) };
    prlimit(Pid::from_raw(world.session_pid(&id).cast_signed()), Resource::Fsize, page).unwrap();
    let command = json!({"id": "c", "command": {"type": "input", "text": "\n"}});
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/commands"), &command).status, 202);
    let whole = b"on disk\nin memory \xff";
    wait_until("the log continues in memory", || (log("").body == whole).then_some(()));
    assert_eq!(info(&world, &id)["degraded"], true);
    let part = log("?from=8&to=10");
    assert_eq!((part.status, part.header("content-range")), (206, Some("bytes 8-9/19")));
    assert_eq!(part.body, b"in");
    assert_eq!(log("?from=19").status, 200);
    check_problem(&log("?from=20"), 416, "out_of_range");
    assert_eq!(world.log_of(&id), whole, "the command line reads the log in memory, too");
}

/// `log --follow` continues with the log in memory, and fails when the process has ended.
#[test]
fn r30_log_follow_continues_with_the_log_in_memory() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let world = World::new();
    let id = world.shell("stty -echo -opost; echo on disk; read go; printf 'in memory'; exec cat");
    let mut follower =
        world.bowline(&["log", &id, "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, printed) = (follower.stdout.take().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let reader = std::thread::spawn({
        let printed = printed.clone();
        move || {
            let mut buf = [0; 64];
            while let Ok(n @ 1..) = stdout.read(&mut buf) {
                printed.lock().unwrap().extend_from_slice(&buf[..n]);
            }
        }
    });
    let shows = |text: &[u8]| (*printed.lock().unwrap() == text).then_some(());
    wait_until("the output from the file", || shows(b"on disk\n"));
    let page = Rlimit { current: Some(4096), maximum: Some(4096) };
    prlimit(Pid::from_raw(world.session_pid(&id).cast_signed()), Resource::Fsize, page).unwrap();
    world.ok(&["send", &id, "--enter"]);
    wait_until("the output from memory", || shows(b"on disk\nin memory"));
    world.ok(&["kill", &id, "--grace", "0s"]);
    let output = follower.wait_with_output().unwrap();
    reader.join().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(6), "{stderr}");
    assert_eq!(*printed.lock().unwrap(), b"on disk\nin memory");
}
