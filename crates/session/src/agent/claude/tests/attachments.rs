//! What becomes of attachments.

use super::*;
use crate::agent::attachment::tests::attachments;

fn content(text: &str, attachments: &[Attachment]) -> Value {
    let mut claude = ready(config());
    claude.prompt(RUN, &Prompt { text: text.to_owned(), attachments: vec![] }, attachments);
    let mut line = written(&mut claude).pop().unwrap();
    assert_eq!((&line["type"], &line["message"]["role"]), (&json!("user"), &json!("user")));
    assert!(line["uuid"].is_string());
    line["message"]["content"].take()
}

#[test]
fn r32_attachments_are_images_and_documents_before_the_text() {
    let base64 = |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
    let text = json!({"type": "text", "media_type": "text/plain", "data": "\"Grüße\"\n"});
    let expected = json!([
        {"type": "image", "source": base64("image/png", "iVBORw==")},
        {"type": "document", "source": base64("application/pdf", "JVBERi0="), "title": "paper.pdf"},
        {"type": "document", "source": text, "title": "notes.md"},
        {"type": "text", "text": "look"},
    ]);
    assert_eq!(content("look", &attachments()), expected);
}

#[test]
fn r32_a_prompt_without_a_text_has_no_empty_block() {
    let [image, ..] = attachments();
    let sent = content("\n", std::slice::from_ref(&image));
    assert_eq!((sent[0]["type"].as_str(), sent.as_array().unwrap().len()), (Some("image"), 1));
    assert_eq!(content("\n", &[])[0]["type"], "text", "of which nothing is left");
}
