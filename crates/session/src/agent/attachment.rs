//! The attachments of a prompt, and the forms that the protocols of agents have in common for them.

use std::path::PathBuf;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bowline_host::uploads::MediaType;
use bowline_proto::agent::run::Prompt;
use serde::{Serialize, Serializer};

/// What stands in the place of a prompt of which nothing is left.
const NOTHING_LEFT: &str = "(The files that were attached to this message are gone.)";

/// A file that goes with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    pub media_type: MediaType,
    /// An absolute path.
    pub path: PathBuf,
    pub content: Vec<u8>,
}

impl Attachment {
    /// Its content in the form of Base64.
    pub(super) fn base64(&self) -> Base64<'_> {
        Base64(&self.content)
    }

    /// Its content, if it is a text.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.content).ok().filter(|_| self.media_type == MediaType::Text)
    }

    /// Its path, as agents get it.
    pub(super) fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// A line for an agent that takes no such file.
    pub(super) fn mention(&self) -> String {
        format!("Attached file ({}): {}", self.media_type.name(), self.path())
    }

    /// The URI of its file.
    pub(super) fn uri(&self) -> String {
        let mut uri = "file://".to_owned();
        for byte in self.path().bytes() {
            match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(byte.into()),
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }
}

/// Bytes that are written as Base64 straight into a message: they may have many megabytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// The text of a prompt; `None` if it is blank, because models refuse blank texts.
pub(super) fn prompt_text<'a>(prompt: &'a Prompt, attachments: &[Attachment]) -> Option<&'a str> {
    match prompt.text.trim().is_empty() {
        false => Some(&prompt.text),
        true if attachments.is_empty() => Some(NOTHING_LEFT),
        true => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An attachment of each form: an image, a PDF and a text.
    pub(in super::super) fn attachments() -> [Attachment; 3] {
        let file = |name: &str, media_type, content: &[u8]| Attachment {
            name: name.to_owned(),
            media_type,
            path: PathBuf::from("/a b/uploads").join(name),
            content: content.to_vec(),
        };
        [
            file("shot.png", MediaType::Png, b"\x89PNG"),
            file("paper.pdf", MediaType::Pdf, b"%PDF-"),
            file("notes.md", MediaType::Text, "\"Grüße\"\n".as_bytes()),
        ]
    }

    #[test]
    fn a_prompt_is_never_empty() {
        let [image, ..] = attachments();
        let prompt = |text: &str| Prompt { text: text.to_owned(), attachments: vec![] };
        assert_eq!(prompt_text(&prompt(" hi "), &[]), Some(" hi "));
        assert_eq!(prompt_text(&prompt(" \n"), std::slice::from_ref(&image)), None);
        assert_eq!(prompt_text(&prompt(" \n"), &[]), Some(NOTHING_LEFT));
    }

    #[test]
    fn a_uri_has_no_characters_with_a_meaning() {
        let [mut image, _, notes] = attachments();
        assert_eq!(image.uri(), "file:///a%20b/uploads/shot.png");
        image.path = PathBuf::from("/ü?#%.png");
        assert_eq!(image.uri(), "file:///%C3%BC%3F%23%25.png");
        assert_eq!((image.text(), notes.text()), (None, Some("\"Grüße\"\n")));
        assert_eq!(serde_json::to_string(&notes.base64()).unwrap(), "\"Ikdyw7zDn2UiCg==\"");
    }
}
