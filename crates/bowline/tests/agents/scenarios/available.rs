//! What the list of agents says about a real program.

use serde_json::{Value, json};

use super::{Bench, until, with_each};
use crate::gateway::World;
use crate::programs::Program;
use crate::selection::{path_of, version_of};

#[test]
fn r32_an_installed_program_is_listed_with_its_version_and_whether_the_user_has_logged_in() {
    with_each(|bench| {
        // A program that is slow on a busy machine is tried again.
        let version = version_of(bench.program);
        until("the version is known", || row(&bench.world, bench.program)["version"] == version.as_str());
        let listed = row(&bench.world, bench.program);
        assert_eq!((&listed["available"], &listed["problem"]), (&json!(true), &Value::Null), "{listed}");
        assert!(listed["install"].is_string() || bench.program.command.is_some(), "{listed}");
        check_without_login(bench, &version);
    });
}

/// The same program, in a home directory without any settings and without the variables of the test.
fn check_without_login(bench: &Bench, version: &str) {
    let name = bench.program.name;
    let world = World::with(&[], &format!("[agents.{name}]\nenv = {{ PATH = {:?} }}\n", path_of(bench.program)));
    until("the version is known", || row(&world, bench.program)["version"] == version);
    let problem = row(&world, bench.program)["problem"].clone();
    match name {
        // It has models that need no login.
        "opencode" => assert_eq!(problem, Value::Null),
        _ => assert!(
            problem.as_str().is_some_and(|problem| problem.starts_with("seems not to be logged in: ")),
            "{problem}"
        ),
    }
}

fn row(world: &World, program: &Program) -> Value {
    let answer = world.call("GET", "/v1/agents", &Value::Null);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let agents = answer.json()["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|agent| agent["name"] == program.name).unwrap()
}
