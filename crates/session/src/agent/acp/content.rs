//! The content of a prompt, as ACP has it.

use std::borrow::Cow;

use bowline_proto::agent::run::Prompt;
use serde::Serialize;

use super::messages::PromptCapabilities;
use super::quirks::Quirks;
use crate::agent::attachment::{Attachment, Base64, prompt_text};

/// A part of a prompt.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        mime_type: &'static str,
        data: Base64<'a>,
    },
    Resource {
        resource: TextResource<'a>,
    },
    /// The protocol obliges every agent to take links.
    ResourceLink {
        uri: String,
        name: &'a str,
        mime_type: &'static str,
        size: usize,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextResource<'a> {
    uri: String,
    mime_type: &'static str,
    text: &'a str,
}

/// The parameters of `session/prompt`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptParams<'a> {
    pub(super) session_id: Option<&'a str>,
    pub(super) prompt: Vec<Block<'a>>,
}

/// A prompt. Each attachment has the richest form that the agent takes.
pub(super) fn prompt_content<'a>(
    prompt: &'a Prompt,
    attachments: &'a [Attachment],
    takes: PromptCapabilities,
    quirks: Quirks,
) -> Vec<Block<'a>> {
    let text = prompt_text(prompt, attachments).map(|text| Block::Text { text: text.into() });
    text.into_iter().chain(attachments.iter().map(|attachment| block(attachment, takes, quirks))).collect()
}

fn block(attachment: &Attachment, takes: PromptCapabilities, quirks: Quirks) -> Block<'_> {
    let mime_type = attachment.media_type.name();
    match attachment.text() {
        Some(text) if takes.embedded_context => {
            Block::Resource { resource: TextResource { uri: attachment.uri(), mime_type, text } }
        }
        None if takes.image && attachment.media_type.is_image() => {
            Block::Image { mime_type, data: attachment.base64() }
        }
        _ if quirks.drops_links => Block::Text { text: attachment.mention().into() },
        _ => {
            let (name, size) = (attachment.name.as_str(), attachment.content.len());
            Block::ResourceLink { uri: attachment.uri(), name, mime_type, size }
        }
    }
}
