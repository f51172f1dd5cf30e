//! Splits Markdown that arrives in pieces into blocks that are final: each is given out once, and never changes.
//!
//! Only whole lines are looked at, each once, so the blocks depend on the text alone and not on how it was cut into
//! pieces, and the work is linear. A block is a paragraph, a heading, a table, a quote or the like, up to a blank line; an
//! item of a list; or a line of fenced code. What a block means is decided by [`super::markdown`]: this only has to find
//! places where Markdown can be separated.

use std::collections::VecDeque;
use std::mem;

/// Bytes of a block, and of a line. What follows in a longer block is shown as it is, line by line; a longer line is
/// broken.
pub(super) const MAX_BLOCK: usize = 16 << 10;

/// A part of a text that is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Markdown {
        text: String,
        /// The number of this item in its list.
        number: Option<u64>,
        /// A blank line was before it.
        gap: bool,
    },
    /// Fenced code begins.
    Code { language: String, gap: bool },
    /// A line of fenced code.
    CodeLine(String),
    /// A line of a block that is too long to be understood.
    Plain(String),
}

impl Block {
    /// Whether a new block begins here, as opposed to a line of the one before.
    pub(super) fn is_start(&self) -> bool {
        matches!(self, Block::Markdown { .. } | Block::Code { .. })
    }

    /// Whether a blank line was before it.
    pub(super) fn gap(&self) -> bool {
        matches!(self, Block::Markdown { gap: true, .. } | Block::Code { gap: true, .. })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// The line that is not whole yet. At most [`MAX_BLOCK`] bytes.
    partial: String,
    /// The beginning of the line in `partial` was given out already.
    broken: bool,
    open: Open,
    /// Blank lines since the last line with text.
    blanks: usize,
    ready: VecDeque<Block>,
}

/// The block that is not final yet.
#[derive(Clone, Debug, Default)]
enum Open {
    #[default]
    None,
    Markdown {
        text: String,
        item: Option<Item>,
        gap: bool,
    },
    Code(Fence),
    /// The rest of a block that is too long.
    Rest(Option<Item>),
}

impl Blocks {
    /// Takes the next piece of the text.
    pub(super) fn push(&mut self, piece: &str) {
        for piece in piece.split_inclusive('\n') {
            self.partial.push_str(piece);
            let whole = piece.ends_with('\n');
            if whole || self.partial.len() > MAX_BLOCK {
                self.take_partial(whole);
            }
        }
    }

    /// The text ends here.
    pub(super) fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.take_partial(true);
        }
        self.close();
        (self.open, self.blanks) = (Open::None, 0);
    }

    /// The next block that is final.
    pub(super) fn poll(&mut self) -> Option<Block> {
        self.ready.pop_front()
    }

    /// Whether nothing of the text waits for more.
    pub(super) fn is_empty(&self) -> bool {
        self.partial.is_empty() && matches!(self.open, Open::None)
    }

    /// Whether the next block to come is the one that is open, and not one that follows it.
    pub(super) fn is_start_open(&self) -> bool {
        match self.open {
            Open::None => !self.partial.is_empty(),
            Open::Markdown { .. } => true,
            Open::Code(_) | Open::Rest(_) => false,
        }
    }

    fn take_partial(&mut self, whole: bool) {
        let text = mem::take(&mut self.partial);
        let mut rest = text.as_str();
        while rest.len() > MAX_BLOCK {
            let full = &rest[..rest.floor_char_boundary(MAX_BLOCK)];
            let end = full.rfind(' ').map_or(full.len(), |space| space + 1);
            self.take_line(&rest[..end], false);
            rest = &rest[end..];
        }
        if whole {
            let line = rest.strip_suffix('\n').unwrap_or(rest);
            self.take_line(line.strip_suffix('\r').unwrap_or(line), true);
        } else {
            rest.clone_into(&mut self.partial);
        }
    }

    /// Takes a line, or its beginning if it is too long.
    fn take_line(&mut self, line: &str, whole: bool) {
        let continued = mem::replace(&mut self.broken, !whole);
        if let Open::Code(fence) = &self.open {
            if fence.is_closed_by(line) && !continued {
                self.open = Open::None;
            } else {
                let line = if continued { line } else { fence.content(line) };
                self.ready.push_back(Block::CodeLine(line.to_owned()));
            }
        } else if continued {
            self.ready.push_back(Block::Plain(line.to_owned()));
        } else if line.trim().is_empty() {
            self.take_blank();
        } else {
            self.take_text(line);
        }
        if !whole && !matches!(self.open, Open::Code(_)) {
            let item = self.close();
            self.open = Open::Rest(item);
        }
    }

    fn take_blank(&mut self) {
        if self.item().is_none() {
            self.close();
            self.open = Open::None;
        }
        self.blanks += 1;
    }

    fn take_text(&mut self, line: &str) {
        if self.item().is_some_and(|item| indentation(line) >= item.content) {
            return self.append(line);
        }
        let gap = self.blanks > 0;
        if let Some((fence, language)) = Fence::parse(line) {
            self.close();
            self.blanks = 0;
            self.open = Open::Code(fence);
            self.ready.push_back(Block::Code { language, gap });
            return;
        }
        let in_paragraph = !matches!(self.open, Open::None) && self.item().is_none();
        match Item::parse(line).filter(|item| !in_paragraph || item.can_interrupt) {
            Some(mut item) => {
                if let Some(before) = self.item().filter(|before| before.mark == item.mark) {
                    item.number = before.number.map(|number| number.saturating_add(1));
                }
                self.begin(line, Some(item));
            }
            None if gap || matches!(self.open, Open::None) => self.begin(line, None),
            None => self.append(line),
        }
    }

    fn item(&self) -> Option<&Item> {
        match &self.open {
            Open::Markdown { item, .. } | Open::Rest(item) => item.as_ref(),
            Open::None | Open::Code(_) => None,
        }
    }

    fn begin(&mut self, line: &str, item: Option<Item>) {
        self.close();
        let gap = mem::take(&mut self.blanks) > 0;
        self.open = Open::Markdown { text: format!("{line}\n"), item, gap };
    }

    /// Adds a line to the open block.
    fn append(&mut self, line: &str) {
        let blanks = mem::take(&mut self.blanks);
        match &mut self.open {
            Open::Markdown { text, .. } if text.len() + blanks + line.len() < MAX_BLOCK => {
                text.extend(std::iter::repeat_n('\n', blanks));
                text.push_str(line);
                text.push('\n');
            }
            _ => {
                let item = self.close();
                self.open = Open::Rest(item);
                self.ready.extend(std::iter::repeat_n(Block::Plain(String::new()), blanks.min(1)));
                self.ready.push_back(Block::Plain(line.to_owned()));
            }
        }
    }

    /// Makes the open block final. Returns the item that it is.
    fn close(&mut self) -> Option<Item> {
        match mem::take(&mut self.open) {
            Open::Markdown { text, item, gap } => {
                let number = item.as_ref().and_then(|item| item.number);
                self.ready.push_back(Block::Markdown { text, number, gap });
                item
            }
            Open::Rest(item) => item,
            Open::None | Open::Code(_) => None,
        }
    }
}

/// The columns before the text of a line.
fn indentation(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// The text of a line that is indented by less than indented code is.
fn unindented(line: &str) -> Option<&str> {
    (indentation(line) < 4).then(|| line.trim_start_matches([' ', '\t']))
}

/// The fence of a block of code.
#[derive(Clone, Debug)]
struct Fence {
    mark: char,
    length: usize,
    indentation: usize,
}

impl Fence {
    /// The fence that a line is, and the language that it names.
    fn parse(line: &str) -> Option<(Fence, String)> {
        let text = unindented(line)?;
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        let language = info.split_whitespace().next().unwrap_or_default().to_owned();
        is_fence.then(|| (Fence { mark, length, indentation: indentation(line) }, language))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        unindented(line).is_some_and(|text| {
            let after = text.trim_start_matches(self.mark);
            text.len() - after.len() >= self.length && after.trim().is_empty()
        })
    }

    /// A line of the code, without the indentation of the fence.
    fn content<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indentation).take_while(|byte| *byte == b' ').count();
        &line[spaces..]
    }
}

/// An item of a list.
#[derive(Clone, Debug)]
struct Item {
    /// The character that makes items of one list: the bullet, or what follows the number.
    mark: char,
    number: Option<u64>,
    /// The column of its text. Lines that are indented by this much belong to it.
    content: usize,
    /// Whether it can follow a paragraph without a blank line.
    can_interrupt: bool,
}

impl Item {
    /// The item that a line begins.
    fn parse(line: &str) -> Option<Item> {
        let text = unindented(line).filter(|text| !is_rule(text))?;
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let mark = text[digits..].chars().next()?;
        let number = match (digits, mark) {
            (0, '-' | '+' | '*') => None,
            (1..=9, '.' | ')') => Some(text[..digits].parse().ok()?),
            _ => return None,
        };
        let after = &text[digits + 1..];
        let spaces = indentation(after);
        let empty = after.trim().is_empty();
        let space = match spaces {
            0 if !empty => return None,
            1..=4 if !empty => spaces,
            _ => 1,
        };
        let can_interrupt = !empty && number.is_none_or(|number| number == 1);
        Some(Item { mark, number, content: indentation(line) + digits + 1 + space, can_interrupt })
    }
}

/// Whether a line is a horizontal rule, such as `* * *`.
fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|c| !c.is_whitespace());
    let first = marks.next();
    matches!(first, Some('-' | '_' | '*')) && marks.clone().count() >= 2 && marks.all(|mark| Some(mark) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Block> {
        let mut blocks = Blocks::default();
        blocks.push(text);
        blocks.finish();
        std::iter::from_fn(|| blocks.poll()).collect()
    }

    /// The blocks in short: the text of each, `=` before those after a blank line, `|` before lines of code.
    fn short(text: &str) -> Vec<String> {
        let short = |block| match block {
            Block::Markdown { text, number, gap } => {
                let number = number.map_or_else(String::new, |number| format!("({number})"));
                format!("{}{number}{}", if gap { "=" } else { "" }, text.trim_end())
            }
            Block::Code { language, gap } => format!("{}```{language}", if gap { "=" } else { "" }),
            Block::CodeLine(line) => format!("|{line}"),
            Block::Plain(line) => format!("plain {}", line.len()),
        };
        all(text).into_iter().map(short).collect()
    }

    #[test]
    fn blocks_end_at_blank_lines() {
        assert_eq!(short("one\ntwo\n\n\nthree"), ["one\ntwo", "=three"]);
        assert_eq!(short("> a\n>\n> b\n\nc"), ["> a\n>\n> b", "=c"]);
        assert_eq!(short("\n \r\nwindows\r\n\r\nlines\r\n"), ["=windows", "=lines"]);
        assert!(all("").is_empty() && all("\n\n").is_empty());
    }

    #[test]
    fn each_item_of_a_list_is_a_block() {
        assert_eq!(
            short("Text:\n- a\n  more\n- b\n\n  second\n\n- c\n\nafter"),
            ["Text:", "- a\n  more", "- b\n\n  second", "=- c", "=after"]
        );
        assert_eq!(short("1. a\n1. b\n1. c"), ["(1)1. a", "(2)1. b", "(3)1. c"], "numbers go on");
        assert_eq!(short("7) a\n9) b\n1. c"), ["(7)7) a", "(8)9) b", "(1)1. c"], "another mark is another list");
        assert_eq!(short("- a\n  - b\n  - c\nlazy"), ["- a\n  - b\n  - c\nlazy"]);
        assert_eq!(short("the year\n1985. That was it\n* * *"), ["the year\n1985. That was it\n* * *"]);
        assert_eq!(short("-not an item\n-\n- - -"), ["-not an item\n-\n- - -"]);
    }

    #[test]
    fn lines_of_fenced_code_are_blocks() {
        assert_eq!(short("a\n```rust x\n\n  b\n~~~\n```\nc"), ["a", "```rust", "|", "|  b", "|~~~", "c"]);
        assert_eq!(short("  ~~~~\n    a\n ~~~\n  ~~~~~ \n"), ["```", "|  a", "|~~~"]);
        assert_eq!(short("- a\n  ```\n  b\n\n  ```\n- c"), ["- a\n  ```\n  b\n\n  ```", "- c"], "code of an item");
        assert_eq!(short("1. a\n```\nb\n```\n2. c"), ["(1)1. a", "```", "|b", "(2)2. c"]);
        assert_eq!(short("``` a`b\nc"), ["``` a`b\nc"], "inline code");
        assert_eq!(short("```\nnever closed"), ["```", "|never closed"]);
    }

    #[test]
    fn r52_a_block_that_is_too_long_goes_on_as_plain_lines() {
        let line = "word ".repeat(20);
        let long = format!("{line}\n").repeat(400) + "\nnext";
        let blocks = all(&long);
        let plain = blocks.iter().filter(|block| matches!(block, Block::Plain(_))).count();
        assert!(matches!(&blocks[0], Block::Markdown { text, .. } if text.len() <= MAX_BLOCK), "{blocks:?}");
        assert!(plain > 200, "{plain}");
        assert_eq!(blocks.last(), Some(&Block::Markdown { text: "next\n".into(), number: None, gap: true }));
        let one_line = "word ".repeat(10_000);
        let whole: String = all(&one_line)
            .into_iter()
            .map(|block| match block {
                Block::Markdown { text, .. } => text.trim_end_matches('\n').to_owned(),
                Block::Plain(line) => line,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(whole, one_line, "a line that is too long is broken at spaces, and all there");
    }
}
