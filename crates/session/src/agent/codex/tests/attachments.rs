//! What becomes of attachments.

use super::*;
use crate::agent::attachment::tests::attachments;

fn input(text: &str, attachments: &[Attachment]) -> Value {
    let mut codex = opened(config());
    codex.prompt(RUN, &Prompt { text: text.to_owned(), attachments: vec![] }, attachments);
    let mut line = written(&mut codex).pop().unwrap();
    assert_eq!(line["method"], "turn/start");
    line["params"]["input"].take()
}

#[test]
fn r32_images_are_read_by_codex_and_other_files_are_mentioned() {
    let expected = json!([
        {"type": "localImage", "path": "/a b/uploads/shot.png"},
        {"type": "text", "text": "Attached file (application/pdf): /a b/uploads/paper.pdf"},
        {"type": "text", "text": "Attached file (text/plain): /a b/uploads/notes.md"},
        {"type": "text", "text": "look"},
    ]);
    assert_eq!(input("look", &attachments()), expected);
}

#[test]
fn r32_a_prompt_without_a_text_has_no_empty_block() {
    let [image, ..] = attachments();
    assert_eq!(input(" ", std::slice::from_ref(&image)).as_array().unwrap().len(), 1);
    assert_eq!(input(" ", &[])[0]["type"], "text", "of which nothing is left");
}
