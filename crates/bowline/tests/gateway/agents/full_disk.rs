//! A full disk: the agent waits, nothing is lost, and commands are refused with the reason.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use super::super::gateway::World;
use super::{assert_contiguous, assert_each_run_ends_once, until, world_with};

impl World {
    /// Limits how long the files of a session's process may grow; `None` for no limit.
    pub(super) fn limit_files(&self, session: &str, bytes: Option<u64>) {
        let pid = Pid::from_raw(self.session_pid(session).cast_signed());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    }

    /// The processor time that a session's process has used, in clock ticks.
    pub(super) fn ticks(&self, session: &str) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.session_pid(session))).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

#[test]
fn r52_a_full_disk_stops_the_agent_and_loses_nothing() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    for (n, last) in ["say last words", "exit 3"].into_iter().enumerate() {
        let id = world.agent();
        let (reached, go) = (world.file(&format!("reached-{n}")), world.file(&format!("go-{n}")));
        let (touch, wait) = (format!("touch {reached}"), format!("wait {go}"));
        let lines = [touch.as_str(), &wait, "chunks 300 100", last];
        let run = world.prompt(&id, "a", &lines);
        until("the run is in the agent", || std::path::Path::new(&reached).exists());
        let len = std::fs::metadata(world.session_dir(&id).join("events.jsonl")).unwrap().len();
        world.limit_files(&id, Some(len));
        std::fs::write(&go, "").unwrap();
        until("the session is degraded", || world.describe(&id)["degraded"] == true);
        let (before, begun) = (world.ticks(&id), Instant::now());
        for attempt in 0.. {
            if attempt >= 20 && begun.elapsed() > Duration::from_secs(1) {
                break;
            }
            let refused = world.command(&id, &format!("x{attempt}"), &json!({"type": "prompt", "text": "say no"}));
            assert_eq!((refused.status, refused.code()), (507, "no_space"), "{}", refused.text());
            // The commands themselves take time of the session process, which is measured below.
            std::thread::sleep(Duration::from_millis(20));
        }
        let refused = world.command(&id, "y", &json!({"type": "abort", "run": run}));
        assert_eq!(refused.code(), "no_space", "an abort that cannot be recorded is not accepted");
        assert_eq!(world.command(&id, "a", &json!({"type": "prompt", "text": lines.join("\n")})).status, 200);
        // A tick has 10 ms. One that spins takes a whole processor, if there is one for it.
        let (used, elapsed) = (world.ticks(&id) - before, begun.elapsed());
        assert!(used * 10 < elapsed.as_millis() as u64 / 4, "{used} ticks in {elapsed:?}: the session process spins");
        world.limit_files(&id, None);
        let end = world.complete(&id, &run);
        assert_eq!(end["success"], n == 0, "{end}");
        let said = world.said(&id, &run);
        assert_eq!(said.len(), 300 * 100 + if n == 0 { "last words".len() } else { 0 }, "every word is there, once");
        assert_eq!(world.run_prompt(&id, "b", &["say back"])["success"], true);
        let journal = world.journal(&id);
        assert_contiguous(&journal);
        assert_each_run_ends_once(&journal);
    }
}

/// A session can be ended while its journal cannot be written. The first that looks at it afterwards ends its runs.
#[test]
fn r52_a_session_can_be_ended_on_a_full_disk() {
    let world = world_with(&[]);
    let id = world.agent();
    let reached = world.file("reached");
    let run = world.prompt(&id, "a", &[&format!("touch {reached}"), &format!("wait {}", world.file("never"))]);
    until("the run is in the agent", || std::path::Path::new(&reached).exists());
    let len = std::fs::metadata(world.session_dir(&id).join("events.jsonl")).unwrap().len();
    world.limit_files(&id, Some(len));
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &serde_json::Value::Null).status, 204);
    assert_eq!(world.describe(&id)["state"], "lost", "its end is not recorded");
    assert_eq!(world.complete(&id, &run)["interrupted"], true);
    assert_each_run_ends_once(&world.journal(&id));
}
