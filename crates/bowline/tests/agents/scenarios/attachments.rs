//! Files that go with a prompt: what the model gets of them.

use serde_json::Value;

use super::{Bench, until, with_each};

const PICTURE: &[u8] = include_bytes!("../files/picture.png");
const PAPER: &[u8] = include_bytes!("../files/paper.pdf");
/// The beginning of every PNG, as Base64. Some programs write images anew.
const PNG: &str = "iVBORw0KGgo";
/// The beginning of the PDF, as Base64.
const PDF: &str = "JVBERi0xLjQK";

#[test]
fn r32_the_model_gets_the_files_that_go_with_a_prompt() {
    with_each(|bench| {
        let id = bench.start();
        let [picture, paper, notes] = [("picture.png", PICTURE), ("paper.pdf", PAPER), ("notes.md", b"A purple owl.")]
            .map(|(name, content)| bench.world.upload(&id, name, content));
        ask(bench, &id, "Look at the picture.", &picture);
        assert!(bench.stub.was_sent(&["Look at the picture.", "image/png", PNG]), "the picture reaches the model");
        // Of other files, either the file itself or its path.
        let was_sent =
            |bench: &Bench, text: &str, either: [&str; 2]| either.iter().any(|file| bench.stub.was_sent(&[text, file]));
        ask(bench, &id, "Read the notes.", &notes);
        assert!(was_sent(bench, "Read the notes.", ["A purple owl.", &notes]));
        ask(bench, &id, "Read the paper.", &paper);
        assert!(was_sent(bench, "Read the paper.", [PDF, &paper]));
        let command = bench.command_id();
        let alone = bench.world.prompt_with(&id, &command, "", &[&picture]);
        assert_eq!(bench.world.complete(&id, &alone)["success"], true, "a prompt without a text");
        let notices = bench.world.events_of(&id, "notice");
        let is_missed = |notice: &Value| notice["text"].as_str().is_some_and(|text| text.contains("attachment"));
        assert!(!notices.iter().any(is_missed), "{notices:?}");
    });
}

/// Sends a prompt with an attachment, and allows the agent to read it if it requests that.
#[track_caller]
fn ask(bench: &mut Bench, id: &str, text: &str, attachment: &str) {
    let command = bench.command_id();
    let run = bench.world.prompt_with(id, &command, &format!("{text} [[say:Seen.]]"), &[attachment]);
    let approvals = |bench: &Bench| bench.world.describe(id)["approvals"].as_array().unwrap().clone();
    let has_ended = |bench: &Bench| bench.world.events_of(id, "complete").iter().any(|end| end["run"] == run.as_str());
    until("the run has ended, or needs an approval", || has_ended(bench) || !approvals(bench).is_empty());
    if let Some(approval) = approvals(bench).first() {
        bench.allow(id, approval);
    }
    let end = bench.world.complete(id, &run);
    assert_eq!(end["success"], true, "{attachment}: {end}");
    assert!(bench.world.said(id, &run).contains("Seen."), "{attachment}");
}
