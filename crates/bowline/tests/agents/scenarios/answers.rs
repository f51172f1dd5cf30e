//! A prompt and its answer, as a client sees them.

use super::stream::{Received, Sse, read_until};
use super::{Bench, with_each};

#[test]
fn r32_r34_r39_a_prompt_is_answered_and_a_client_sees_all_of_it() {
    with_each(|bench| {
        let id = bench.start();
        let epoch = bench.world.describe(&id)["epoch"].as_str().unwrap().to_owned();
        let mut sse = Sse::open(&bench.world, &format!("watch={id}@{epoch}:0"), None);
        let run = bench.prompt(&id, "Hello. [[say:A good day to you.]]");
        let mut received = Received::default();
        read_until(
            || Some(sse.next()?.0),
            &mut received,
            "the run ends",
            |event| event["type"] == "complete" && event["run"] == run.as_str(),
        );
        let events = || received.of(&id).iter().map(|record| &record["event"]);
        let texts = events().filter(|event| event["type"] == "text" && event["run"] == run.as_str());
        let said: String = texts.map(|event| event["delta"].as_str().unwrap()).collect();
        assert_eq!(said, "A good day to you.");
        let end = events().next_back().unwrap();
        assert_eq!((&end["success"], &end["started"]), (&true.into(), &true.into()), "{end}");
        assert!(end["conversation"].is_string(), "{end}");
        fail(bench, &id);
        bench.converse(&id, "And again.", "Indeed.");
    });
}

/// The model refuses: its run fails, once.
fn fail(bench: &mut Bench, id: &str) {
    let run = bench.prompt(id, "Fail. [[error:400]]");
    let end = bench.world.complete(id, &run);
    assert_eq!((&end["success"], &end["aborted"]), (&false.into(), &false.into()), "{end}");
    assert!(end["error"]["message"].is_string(), "{end}");
}
