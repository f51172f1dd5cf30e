//! Agents that print garbage, floods and endless lines: memory stays bounded, and the run still ends once.

use serde_json::json;

use super::{assert_contiguous, assert_each_run_ends_once, world};

/// The memory of a process that is not shared, in KiB.
fn private_memory(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Private_Dirty:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn r52_a_hostile_agent_costs_bounded_memory_and_its_run_ends_once() {
    let world = world();
    let id = world.agent();
    for (n, lines) in [
        &["long 9437184", "say after a long line"][..],
        &["flood 20000000", "say after a flood"],
        &["deep 100000", "say after a deep message"],
        &["garbage", "hex ff00fe0a", "raw {}", "raw [1", "raw null", "say after garbage"],
        &["request fs/read_text_file {\"path\":\"/etc/passwd\"}", "request other/thing", "say after requests"],
        &["chunks 20000 10", "say after chunks"],
    ]
    .into_iter()
    .enumerate()
    {
        let end = world.run_prompt(&id, &format!("c{n}"), lines);
        assert_eq!(end["success"], true, "{lines:?}: {end}");
        let said = world.said(&id, end["run"].as_str().unwrap());
        assert!(said.ends_with(lines.last().unwrap().strip_prefix("say ").unwrap()), "{lines:?}");
    }
    let memory = private_memory(world.session_pid(&id));
    assert!(memory < 40 << 10, "the session process has {memory} KiB");
    let journal = world.journal(&id);
    assert_contiguous(&journal);
    assert_each_run_ends_once(&journal);
    let notices = world.events_of(&id, "notice");
    assert!(notices.iter().any(|notice| notice["text"].as_str().unwrap().contains("was skipped")), "the long line");
}

#[test]
fn r34_a_storm_of_errors_is_counted_not_recorded() {
    let world = world();
    let id = world.agent();
    let lines: Vec<&str> = (0..2000).map(|_| "stderr storm").chain(["say calm"]).collect();
    assert_eq!(world.run_prompt(&id, "a", &lines)["success"], true);
    let storm = world.events_of(&id, "notice").into_iter().filter(|notice| notice["text"] == "storm").count();
    assert!((1..2000).contains(&storm), "{storm} notices");
    super::until("the rest is counted", || {
        world.events_of(&id, "notice").iter().any(|notice| notice["text"].as_str().unwrap().contains("left out"))
    });
    assert_eq!(world.events_of(&id, "notice")[0]["level"], json!("info"));
}
