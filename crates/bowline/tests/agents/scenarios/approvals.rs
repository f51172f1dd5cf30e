//! Tools that need an approval.

use serde_json::json;

use super::with_each;

#[test]
fn r36_an_allowed_tool_runs_and_a_denied_one_does_not() {
    with_each(|bench| {
        let id = bench.start();
        let (run, approval) = bench.request_tool(&id, "touch allowed");
        assert!(!bench.project().join("allowed").exists(), "it waits");
        let text = approval.to_string();
        assert!(text.contains("touch allowed"), "the approval shows the command: {approval}");
        bench.allow(&id, &approval);
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["success"], true, "{end}");
        assert!(bench.project().join("allowed").exists());
        bench.made.push("allowed");

        let (run, approval) = bench.request_tool(&id, "touch denied");
        bench.deny(&id, &approval);
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["success"], true, "the model is told, and goes on: {end}");
        assert!(!bench.project().join("denied").exists());
        let outcomes: Vec<_> = bench.world.events_of(&id, "approval_resolved");
        let outcomes: Vec<_> = outcomes.iter().map(|event| &event["outcome"]).collect();
        assert_eq!(outcomes, [&json!("allowed"), &json!("denied")]);
        bench.converse(&id, "Go on.", "All is well.");
    });
}
