//! The text of a tool's output in a message, read without parsing the rest: a string, or a list of blocks.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// The most bytes of the name of a block that is no text.
const MAX_NAME: usize = 32;

/// The texts of an output, one line after the other. Of a block that is no text, it has the name, such as `[image]`.
#[derive(Debug, Default)]
pub(super) struct OutputText(pub(super) String);

impl OutputText {
    fn push(&mut self, block: TextBlock<'_>) {
        let text = match block {
            TextBlock { text: Some(text), .. } => text,
            TextBlock { kind: Some(kind), .. } => {
                format!("[{}]", kind.get(..kind.floor_char_boundary(MAX_NAME)).unwrap_or_default()).into()
            }
            TextBlock { .. } => Cow::default(),
        };
        if self.0.is_empty() {
            self.0 = text.into_owned();
        } else {
            self.0.push('\n');
            self.0.push_str(&text);
        }
    }
}

/// A block of MCP, ACP or Claude's API.
#[derive(Debug, Default, Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// An item of a tool call's content in ACP.
#[derive(Debug, Deserialize)]
struct ContentItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<TextBlock<'a>>,
}

impl<'a> From<ContentItem<'a>> for TextBlock<'a> {
    fn from(item: ContentItem<'a>) -> TextBlock<'a> {
        item.content.unwrap_or(TextBlock { kind: item.kind, text: None })
    }
}

impl<'de> Deserialize<'de> for OutputText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OutputText, D::Error> {
        from.deserialize_any(TextVisitor::<TextBlock<'de>>(PhantomData))
    }
}

/// Reads the content of a tool call in ACP.
pub(super) fn read_content<'de, D: Deserializer<'de>>(from: D) -> Result<OutputText, D::Error> {
    from.deserialize_any(TextVisitor::<ContentItem<'de>>(PhantomData))
}

/// Reads a list whose items are `B`.
struct TextVisitor<B>(PhantomData<B>);

impl<'de, B: Deserialize<'de> + Into<TextBlock<'de>>> Visitor<'de> for TextVisitor<B> {
    type Value = OutputText;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of blocks")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<OutputText, E> {
        Ok(OutputText(text.to_owned()))
    }
    fn visit_unit<E: Error>(self) -> Result<OutputText, E> {
        Ok(OutputText::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OutputText, A::Error> {
        let mut output = OutputText::default();
        while let Some(item) = items.next_element::<B>()? {
            output.push(item.into());
        }
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_other_blocks_are_named() {
        let read = |json: &str| serde_json::from_str::<OutputText>(json).map(|output| output.0).ok();
        let blocks = r#"[{"type":"text","text":"one\n"},{"type":"image","data":"x"},{},{"type":"text","text":"two"}]"#;
        assert_eq!(read(blocks).unwrap(), "one\n\n[image]\n\ntwo");
        assert_eq!((read("\"text\"").unwrap().as_str(), read("null").unwrap().as_str()), ("text", ""));
        assert_eq!((read("{}"), read("[{\"text\":7}]"), read("[1]")), (None, None, None));
        let long = format!(r#"[{{"type":"{}"}}]"#, "\u{e9}".repeat(1000));
        assert_eq!(read(&long).unwrap().len(), MAX_NAME + 2);
        let content = |json: &str| read_content(&mut serde_json::Deserializer::from_str(json)).map(|text| text.0).ok();
        let items = r#"[{"type":"content","content":{"type":"text","text":"x"}},{"type":"diff","newText":"y"}]"#;
        assert_eq!(content(items).unwrap(), "x\n[diff]");
    }
}
