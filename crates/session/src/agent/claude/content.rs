//! The content of a message to Claude Code, as the Messages API has it.

use bowline_proto::agent::run::Prompt;
use serde::Serialize;

use crate::agent::attachment::{Attachment, Base64, prompt_text};

/// A message of the user.
#[derive(Debug, Serialize)]
pub(super) struct UserMessage<'a> {
    r#type: &'static str,
    message: Message<'a>,
    uuid: &'a str,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a [Block<'a>],
}

impl<'a> UserMessage<'a> {
    pub(super) fn new(uuid: &'a str, content: &'a [Block<'a>]) -> UserMessage<'a> {
        UserMessage { r#type: "user", message: Message { role: "user", content }, uuid }
    }
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
    Document { source: Source<'a>, title: &'a str },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'static str, data: Base64<'a> },
    Text { media_type: &'static str, data: &'a str },
}

/// A prompt. Its text comes last: the program looks there for its commands, such as `/compact`.
pub(super) fn prompt_content<'a>(prompt: &'a Prompt, attachments: &'a [Attachment]) -> Vec<Block<'a>> {
    let text = prompt_text(prompt, attachments).map(|text| Block::Text { text });
    attachments.iter().map(block).chain(text).collect()
}

fn block(attachment: &Attachment) -> Block<'_> {
    let (media_type, title) = (attachment.media_type.name(), attachment.name.as_str());
    match attachment.text() {
        Some(data) => Block::Document { source: Source::Text { media_type, data }, title },
        None => {
            let source = Source::Base64 { media_type, data: attachment.base64() };
            if attachment.media_type.is_image() { Block::Image { source } } else { Block::Document { source, title } }
        }
    }
}
