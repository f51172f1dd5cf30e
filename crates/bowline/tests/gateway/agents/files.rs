//! The files below the directory of a session, for `@` in a prompt.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::gateway::World;
use super::super::refusals::check_problem;
use super::world;

/// The paths that are listed for a query, best first.
#[track_caller]
fn listed(world: &World, id: &str, query: &str) -> Vec<String> {
    let answer = world.call("GET", &format!("/v1/sessions/{id}/files?{query}"), &Value::Null);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let list = answer.json();
    assert_eq!(list["truncated"], false, "{list}");
    list["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

fn add(dir: &Path, files: &[&str]) {
    for path in files {
        let at = dir.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, "").unwrap();
    }
}

#[test]
fn the_files_of_a_session_can_be_found_by_a_few_characters() {
    let world = world();
    let project = world.path().join("project");
    add(&project, &["src/main.rs", "src/domain.rs", "docs/manual.md", "target/main.o", ".env.example", ".git/main"]);
    fs::write(project.join(".gitignore"), "/target/\n").unwrap();
    let body = json!({"kind": "terminal", "argv": ["cat"], "cwd": project});
    let terminal = world.call("POST", "/v1/sessions", &body).json()["id"].as_str().unwrap().to_owned();
    let made = world.new_agent(&json!({"cwd": project, "name": "conversation"}));
    assert_eq!(made.status, 201, "{}", made.text());
    for id in ["conversation", &terminal] {
        assert_eq!(listed(&world, id, "q=main"), ["src/main.rs", "src/domain.rs"]);
        assert_eq!(listed(&world, id, ""), ["docs", "src"], "the top of the tree");
        assert_eq!(listed(&world, id, "q=.env"), [".env.example"], "hidden files are listed on request");
        assert_eq!(listed(&world, id, "q=.git/main"), [""; 0]);
        assert_eq!(listed(&world, id, "q=target"), [""; 0], "git ignores it");
        let answer = world.call("GET", &format!("/v1/sessions/{id}/files?q=s&limit=1"), &Value::Null).json();
        assert_eq!(answer, json!({"files": [{"path": "src", "kind": "folder"}], "truncated": true}));
    }
    let reader = world.new_token("reader", "read");
    let path = format!("/v1/sessions/{terminal}/files?q=main");
    assert_eq!(world.call_as(&reader, "GET", &path, &Value::Null).status, 200);
    check_problem(&world.call_as("bwl_k3v9x0q2m7aa_x", "GET", &path, &Value::Null), 401, "not_authenticated");
    for (query, status, code) in [("limit=0", 400, "bad_request"), ("limit=x", 400, "bad_request")] {
        let refused = world.call("GET", &format!("/v1/sessions/{terminal}/files?{query}"), &Value::Null);
        check_problem(&refused, status, code);
    }
    let long = format!("/v1/sessions/{terminal}/files?q={}", "x".repeat(129));
    check_problem(&world.call("GET", &long, &Value::Null), 400, "bad_request");
    check_problem(&world.call("GET", "/v1/sessions/nobody/files", &Value::Null), 404, "unknown_session");
    // The session has ended, but not its directory.
    assert_eq!(world.call("DELETE", "/v1/sessions/conversation?keep=true", &Value::Null).status, 204);
    assert_eq!(listed(&world, "conversation", "q=manual"), ["docs/manual.md"]);
    fs::remove_dir_all(&project).unwrap();
    let gone = wait_for_gone(&world, &terminal);
    assert!(gone.contains("does not exist any more") && gone.contains("/project"), "{gone}");
}

#[test]
fn r28_a_conversation_can_be_started_in_the_home_directory_by_its_tilde() {
    let world = world();
    let started = world.new_agent(&json!({"cwd": "~"}));
    assert_eq!((started.status, &started.json()["cwd"]), (201, &json!(world.path())), "{}", started.text());
    check_problem(&world.new_agent(&json!({"cwd": "~root"})), 422, "bad_cwd");
}

/// The detail of the refusal, once the list that was kept is too old.
fn wait_for_gone(world: &World, id: &str) -> String {
    super::super::gateway::wait_until("the directory is gone", || {
        let answer = world.call("GET", &format!("/v1/sessions/{id}/files?q=new"), &Value::Null);
        (answer.status != 200).then(|| {
            check_problem(&answer, 404, "not_found");
            answer.json()["detail"].as_str().unwrap().to_owned()
        })
    })
}

/// A program on the terminal, a link in the directory and a reader's query try to show other files.
#[test]
fn r52_only_files_below_the_directory_of_the_session_are_listed() {
    let world = world();
    let (project, outside) = (world.path().join("project"), world.path().join("outside"));
    add(&project, &["inside"]);
    add(&outside, &["secret"]);
    std::os::unix::fs::symlink(&outside, project.join("link")).unwrap();
    let script = format!("printf '\\033]7;file://{}\\007'; exec cat", outside.display());
    let body = json!({"kind": "terminal", "argv": ["sh", "-c", script], "cwd": project});
    let id = world.call("POST", "/v1/sessions", &body).json()["id"].as_str().unwrap().to_owned();
    super::until("the program says that it is elsewhere", || world.describe(&id)["cwd"] == json!(outside));
    assert_eq!(listed(&world, &id, ""), ["inside", "link"]);
    for query in ["..", "../", "../outside/secret", "/", "/etc/passwd", "link/secret", "link/", "..%2f..", "%00", "~"] {
        assert_eq!(listed(&world, &id, &format!("q={query}")), [""; 0], "{query}");
    }
    assert_eq!(listed(&world, &id, "q=secret"), [""; 0]);
    assert_eq!(listed(&world, &id, "q=./inside"), ["inside"]);
}
