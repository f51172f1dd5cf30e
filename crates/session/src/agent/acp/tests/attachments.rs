//! What becomes of attachments.

use super::*;
use crate::agent::attachment::tests::attachments;

/// The blocks of a prompt with this text, for an agent with these capabilities.
fn blocks(text: &str, capabilities: Value, attachments: &[Attachment]) -> Value {
    blocks_for("some-agent", text, capabilities, attachments)
}

fn blocks_for(agent: &str, text: &str, capabilities: Value, attachments: &[Attachment]) -> Value {
    let mut acp = adapter(None, None);
    let (capabilities, info) = (json!({"promptCapabilities": capabilities}), json!({"name": agent}));
    let result = json!({"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 0, "result": result}));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}));
    acp.prompt(RUN, &Prompt { text: text.to_owned(), attachments: vec![] }, attachments);
    let mut line = written(&mut acp).pop().unwrap();
    assert_eq!((&line["jsonrpc"], &line["method"]), (&json!("2.0"), &json!("session/prompt")));
    line["params"]["prompt"].take()
}

fn link(name: &str, media_type: &str, size: usize) -> Value {
    let uri = format!("file:///a%20b/uploads/{name}");
    json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": media_type, "size": size})
}

#[test]
fn r32_an_attachment_has_the_richest_form_that_the_agent_takes() {
    let text = json!({"type": "text", "text": "look"});
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw=="});
    let uri = "file:///a%20b/uploads/notes.md";
    let resource = json!({"uri": uri, "mimeType": "text/plain", "text": "\"Grüße\"\n"});
    let embedded = json!({"type": "resource", "resource": resource});
    let [png, pdf, notes] =
        [link("shot.png", "image/png", 4), link("paper.pdf", "application/pdf", 5), link("notes.md", "text/plain", 10)];
    let all = json!({"image": true, "embeddedContext": true, "audio": true});
    assert_eq!(blocks("look", all, &attachments()), json!([text, image, pdf, embedded]));
    assert_eq!(blocks("look", json!({"image": true}), &attachments()), json!([text, image, pdf, notes]));
    assert_eq!(blocks("look", json!({}), &attachments()), json!([text, png, pdf, notes]));
}

/// Qwen Code drops links to files outside of the project.
#[test]
fn r32_an_agent_that_drops_links_is_told_the_path() {
    let all = json!({"image": true, "embeddedContext": true});
    let sent = blocks_for("qwen-code", "look", all, &attachments());
    let kinds: Vec<&str> = sent.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image", "text", "resource"]);
    assert_eq!(sent[2]["text"], "Attached file (application/pdf): /a b/uploads/paper.pdf");
}

#[test]
fn r32_a_prompt_without_a_text_has_no_empty_block() {
    let [image, ..] = attachments();
    let sent = blocks(" ", json!({"image": true}), std::slice::from_ref(&image));
    assert_eq!(sent, json!([{"type": "image", "mimeType": "image/png", "data": "iVBORw=="}]));
    assert_eq!(blocks(" ", json!({}), &[])[0]["type"], "text", "of which nothing is left");
}
