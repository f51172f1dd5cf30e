//! Folders, to choose where a session starts, and the home directory in paths.

use std::fs;

use serde_json::{Value, json};

use super::gateway::World;
use super::refusals::check_problem;

fn names(list: &Value) -> Vec<&str> {
    list["folders"].as_array().unwrap().iter().map(|folder| folder["name"].as_str().unwrap()).collect()
}

#[test]
fn folders_are_listed_below_the_home_directory() {
    let world = World::new();
    let home = world.path().canonicalize().unwrap();
    fs::create_dir_all(home.join("src/bowline/.git")).unwrap();
    fs::create_dir_all(home.join("src/.hidden")).unwrap();
    let list = |query: &str| world.call("GET", &format!("/v1/folders?{query}"), &Value::Null);
    let top = list("").json();
    assert_eq!((&top["path"], &top["parent"], &top["roots"]), (&json!(home), &Value::Null, &json!([home])));
    assert!(names(&top).contains(&"src"), "{top}");
    assert_eq!(list("path=~").json(), top);
    let expected = json!({
        "path": home.join("src"), "parent": home, "roots": [home], "folders": [{"name": "bowline", "git": true}],
        "truncated": false,
    });
    assert_eq!(list("path=~/src").json(), expected);
    assert_eq!(list(&format!("path={}/src/", home.display())).json(), expected);
    assert_eq!(names(&list("path=~/src&hidden=true").json()), [".hidden", "bowline"]);
    for (query, status, code) in [
        ("path=/", 403, "not_allowed"),
        ("path=/etc/no-such-folder", 403, "not_allowed"),
        ("path=~/..", 403, "not_allowed"),
        ("path=~/src/../../..", 403, "not_allowed"),
        ("path=~/nothing", 404, "not_found"),
        ("path=~/config.toml", 404, "not_found"),
        ("path=src", 400, "bad_request"),
        ("path=", 400, "bad_request"),
        ("path=~root", 400, "bad_request"),
        ("path=%2f%00", 400, "bad_request"),
        ("path=%ff", 400, "bad_request"),
        ("hidden=maybe", 400, "bad_request"),
    ] {
        check_problem(&list(query), status, code);
    }
    let refused = list("path=/etc").json()["detail"].as_str().unwrap().to_owned();
    assert!(refused.contains(home.to_str().unwrap()) && refused.contains("`gateway.roots`"), "{refused}");
    let reader = world.new_token("reader", "read");
    check_problem(&world.call_as(&reader, "GET", "/v1/folders", &Value::Null), 403, "not_allowed");
}

#[test]
fn r55_the_roots_are_those_of_the_configuration() {
    let world = World::with(&[], "[gateway]\nroots = [\"/no/such/root\", \"~/src\", \"/usr\"]");
    let home = world.path().canonicalize().unwrap();
    fs::create_dir(home.join("src")).unwrap();
    let list = |query: &str| world.call("GET", &format!("/v1/folders?{query}"), &Value::Null);
    let top = list("").json();
    assert_eq!((&top["path"], &top["roots"]), (&json!(home.join("src")), &json!([home.join("src"), "/usr"])));
    assert_eq!(list("path=/usr/bin").json()["parent"], "/usr");
    check_problem(&list("path=~"), 403, "not_allowed");
    // It is no limit on sessions: a program can change its directory anyway.
    let body = json!({"kind": "terminal", "argv": ["cat"], "cwd": "/"});
    assert_eq!(world.call("POST", "/v1/sessions", &body).status, 201);
}

#[test]
fn r28_a_session_can_be_started_in_the_home_directory_by_its_tilde() {
    let world = World::new();
    let home = world.path();
    fs::create_dir(home.join("src")).unwrap();
    let start =
        |cwd: &str| world.call("POST", "/v1/sessions", &json!({"kind": "terminal", "argv": ["cat"], "cwd": cwd}));
    for (cwd, expected) in [("~", home.to_owned()), ("~/", home.to_owned()), ("~/src", home.join("src"))] {
        let started = start(cwd);
        assert_eq!((started.status, &started.json()["cwd"]), (201, &json!(expected)), "{cwd}");
    }
    for (cwd, why) in [("~root", "another user"), ("~/nothing", "nothing"), ("src/~", "not an absolute path")] {
        let refused = start(cwd);
        check_problem(&refused, 422, "bad_cwd");
        assert!(refused.text().contains(why), "{}", refused.text());
    }
}
