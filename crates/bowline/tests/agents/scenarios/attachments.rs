//! Files that go with a prompt: what the model gets of them.

use serde_json::json;

use super::with_each;

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
        let ask = |text: &str, attachment: &str, command: &str| {
            let run = bench.world.prompt_with(&id, command, &format!("{text} [[say:Seen.]]"), &[attachment]);
            let end = bench.world.complete(&id, &run);
            assert_eq!(end["success"], true, "{attachment}: {end}");
            assert!(bench.world.said(&id, &run).contains("Seen."), "{attachment}");
        };
        ask("Look at the picture.", &picture, "f1");
        assert!(bench.stub.was_sent(&["Look at the picture.", "image/png", PNG]), "the picture reaches the model");
        ask("Read the notes.", &notes, "f2");
        // Either the file itself or its path.
        let was_sent = |text: &str, either: [&str; 2]| either.iter().any(|file| bench.stub.was_sent(&[text, file]));
        assert!(was_sent("Read the notes.", ["A purple owl.", &notes]));
        ask("Read the paper.", &paper, "f3");
        assert!(was_sent("Read the paper.", [PDF, &paper]));
        let alone = bench.world.prompt_with(&id, "f4", "", &[&picture]);
        assert_eq!(bench.world.complete(&id, &alone)["success"], json!(true), "a prompt without a text");
        assert!(bench.world.events_of(&id, "notice").iter().all(|notice| notice["level"] != "warning"));
    });
}
