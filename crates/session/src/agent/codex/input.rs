//! The input of a turn, as Codex has it.

use bowline_proto::agent::run::Prompt;
use serde_json::{Value, json};

use crate::agent::attachment::{Attachment, prompt_text};

/// A prompt. Codex reads images itself, from their paths: it repeats its input when a thread is resumed, and would send
/// the whole images back. Other files are mentioned.
pub(super) fn prompt_input(prompt: &Prompt, attachments: &[Attachment]) -> Value {
    let item = |attachment: &Attachment| match attachment.media_type.is_image() {
        true => json!({"type": "localImage", "path": attachment.path()}),
        false => text_input(&attachment.mention()),
    };
    attachments.iter().map(item).chain(prompt_text(prompt, attachments).map(text_input)).collect()
}

pub(super) fn text_input(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
