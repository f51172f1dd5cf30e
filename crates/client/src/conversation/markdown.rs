//! The lines of a block of Markdown.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::blocks::Block;
use super::table::Table;
use super::text::{Color, Indent, Paint, Style, Text, cut};

/// Quotes and lists whose marks are shown; deeper ones look like these.
const MAX_DEPTH: usize = 8;
/// The widest horizontal rule.
const MAX_RULE: usize = 40;
/// How far back a blank line is looked for.
const MAX_BLANK: usize = 256;
/// Before each line of code.
const CODE_INDENT: &str = "    ";

const LINE_BREAK: &str = "\n";

/// The lines of a block.
pub(super) fn render_block(block: &Block, style: Style) -> Vec<String> {
    let indent = Indent::default();
    let lines = match block {
        Block::Markdown { text, number, .. } => render(text, *number, style),
        Block::Code { language, .. } => code_header(language, &indent, style),
        Block::CodeLine(line) => code_line(line, &indent, style),
        Block::Plain(line) => Text::new(line, Paint::PLAIN).wrap(&indent, style),
    };
    #[cfg(test)]
    work::count_written(lines.iter().map(String::len).sum());
    lines
}

/// Renders Markdown. `number` is that of the first item, if the text is an item of an ordered list.
fn render(source: &str, number: Option<u64>, style: Style) -> Vec<String> {
    #[cfg(test)]
    work::count_parsed(source.len());
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_ext(source, options);
    // A definition such as `[name]: URL` is not part of what is parsed, but everything is shown.
    let definitions = parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone());
    let mut definitions: Vec<_> = definitions.collect();
    definitions.sort_by_key(|span| span.start);
    let mut definitions = definitions.into_iter().peekable();
    let mut writer = Writer { source, style, number, ..Writer::default() };
    for (event, range) in parser.into_offset_iter() {
        while let Some(span) = definitions.next_if(|span| span.start < range.start) {
            writer.write_source(span.start, &source[span]);
        }
        writer.handle(event, range);
    }
    for span in definitions {
        writer.write_source(span.start, &source[span]);
    }
    writer.flush();
    writer.lines
}

/// The line before code that names its language.
fn code_header(language: &str, indent: &Indent, style: Style) -> Vec<String> {
    if language.is_empty() {
        return Vec::new();
    }
    let header = cut(&format!("── {language}"), style.cut_columns().min(MAX_RULE));
    Text::new(&header, Paint::DIM).wrap(&code_indent(indent), style)
}

/// The lines of a line of code.
fn code_line(line: &str, indent: &Indent, style: Style) -> Vec<String> {
    Text::new(line, Paint::DIM).wrap_exact(&code_indent(indent), style)
}

fn code_indent(indent: &Indent) -> Indent {
    let deeper = |text: &Text| text.clone().with(CODE_INDENT, Paint::PLAIN);
    Indent { first: deeper(&indent.first), rest: deeper(&indent.rest) }
}

#[derive(Default)]
struct Writer<'a> {
    source: &'a str,
    style: Style,
    lines: Vec<String>,
    /// Where the last blank line ends. Zero at first: no blank line begins a text.
    blank_to: usize,
    containers: Vec<Container>,
    /// The number of the next list, if its text does not say it.
    number: Option<u64>,
    /// The text of the block so far.
    text: Text,
    bold: usize,
    italic: usize,
    strike: usize,
    /// The links that are open: their targets, and the text before them.
    links: Vec<(String, Text)>,
    /// The targets of the images that are open.
    images: Vec<String>,
    /// The code of the block that is open, with its language.
    code: Option<(String, String)>,
    table: Option<Table>,
}

enum Container {
    Quote,
    List { next: Option<u64> },
    Item { mark: String, is_shown: bool },
}

impl Writer<'_> {
    fn handle(&mut self, event: Event<'_>, range: std::ops::Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range.start),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text),
            },
            Event::Code(code) => self.push_code(&code),
            Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text) => self.push(&text),
            Event::SoftBreak | Event::HardBreak => self.push(LINE_BREAK),
            Event::Rule => {
                self.begin_block(range.start);
                let rule = "─".repeat(self.style.columns().min(MAX_RULE) / 2);
                self.text.push(&rule, Paint::DIM);
                self.flush();
            }
            Event::TaskListMarker(done) => {
                if let Some(Container::Item { mark, .. }) = self.containers.last_mut() {
                    *mark = if done { "☑ " } else { "☐ " }.to_owned();
                }
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        match tag {
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Strikethrough => {
                self.strike += 1;
                self.push_mark("~~");
            }
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), std::mem::take(&mut self.text)));
            }
            Tag::Image { dest_url, .. } => {
                self.images.push(dest_url.to_string());
                self.push("[image: ");
            }
            Tag::TableHead | Tag::TableRow => {
                self.bold += usize::from(matches!(tag, Tag::TableHead));
                self.table.iter_mut().for_each(Table::begin_row);
            }
            Tag::TableCell => {}
            Tag::Heading { level, .. } => {
                self.begin_block(at);
                self.bold += 1;
                if !self.style.color {
                    self.push(&format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(at);
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::BlockQuote(_) => {
                self.begin_block(at);
                self.containers.push(Container::Quote);
            }
            Tag::List(first) => {
                // A nested list follows the text of its item.
                self.begin_block(at);
                let next = first.map(|first| self.number.take().unwrap_or(first));
                self.containers.push(Container::List { next });
            }
            Tag::Item => {
                self.begin_block(at);
                let mark = match self.containers.last_mut() {
                    Some(Container::List { next: Some(number) }) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                self.containers.push(Container::Item { mark, is_shown: false });
            }
            Tag::Table(alignments) => {
                self.begin_block(at);
                self.table = Some(Table { alignments, ..Table::default() });
            }
            // Of these, only paragraphs and HTML occur: the others need options that are not set.
            Tag::Paragraph
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.begin_block(at),
        }
    }

    fn end(&mut self, tag: TagEnd, range: std::ops::Range<usize>) {
        match tag {
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strikethrough => {
                self.push_mark("~~");
                self.strike = self.strike.saturating_sub(1);
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Image => self.end_image(),
            TagEnd::TableHead => self.bold = self.bold.saturating_sub(1),
            TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                self.table.iter_mut().for_each(|table| table.push_cell(cell.clone()));
            }
            TagEnd::Table => self.end_table(range),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Heading(_) => {
                self.flush();
                self.bold = self.bold.saturating_sub(1);
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.flush();
                self.containers.pop();
            }
            TagEnd::Item => {
                let is_empty = matches!(self.containers.last(), Some(Container::Item { is_shown: false, .. }));
                if is_empty && self.text.is_empty() {
                    self.text.push(" ", Paint::PLAIN);
                }
                self.flush();
                self.containers.pop();
            }
            TagEnd::Paragraph
            | TagEnd::HtmlBlock
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => self.flush(),
        }
    }

    fn paint(&self) -> Paint {
        Paint { bold: self.bold > 0, italic: self.italic > 0, strike: self.strike > 0, ..Paint::PLAIN }
    }

    fn push(&mut self, text: &str) {
        #[cfg(test)]
        work::count_written(text.len());
        self.text.push(text, self.paint());
    }

    /// Pushes a mark that stands for a style that cannot be shown.
    fn push_mark(&mut self, mark: &str) {
        if !self.style.color {
            self.push(mark);
        }
    }

    fn push_code(&mut self, code: &str) {
        if self.style.color {
            self.text.push(code, Paint { color: Some(Color::Cyan), ..self.paint() });
        } else {
            self.push(&format!("`{code}`"));
        }
    }

    /// The text of a link, and its target if that is not the text.
    fn end_link(&mut self) {
        let Some((target, before)) = self.links.pop() else { return };
        let text = std::mem::replace(&mut self.text, before);
        let is_same = text.plain() == Text::new(&target, Paint::PLAIN).plain();
        let is_empty = text.is_empty();
        self.text.append(text);
        if !is_same && !target.is_empty() {
            self.text.push(if is_empty { "(" } else { " (" }, Paint::DIM);
            self.text.push(&target, Paint::DIM);
            self.text.push(")", Paint::DIM);
        }
    }

    fn end_image(&mut self) {
        let Some(target) = self.images.pop() else { return };
        self.push("]");
        self.text.push(&format!(" ({target})"), Paint::DIM);
    }

    fn end_table(&mut self, range: std::ops::Range<usize>) {
        let Some(table) = self.table.take() else { return };
        let indent = self.indent();
        let source = &self.source[range];
        let lines = table.lines(source.len(), &indent, self.style);
        self.lines.extend(lines.unwrap_or_else(|| Text::new(source, Paint::PLAIN).wrap(&indent, self.style)));
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let header = code_header(&language, &self.indent(), self.style);
        self.lines.extend(header);
        for line in code.lines() {
            let lines = code_line(line, &self.indent(), self.style);
            self.lines.extend(lines);
        }
    }

    /// A block begins: what was before it is written, and the blank line between them if the source has one.
    fn begin_block(&mut self, at: usize) {
        self.flush();
        let is_first = matches!(self.containers.last(), Some(Container::Item { is_shown: false, .. }));
        if !is_first && self.lines.len() > self.blank_to && has_blank_before(self.source, at) {
            let blank = self.indent().rest.line(self.style);
            self.lines.push(blank);
            self.blank_to = self.lines.len();
        }
    }

    /// Writes the text of the block.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        // After very many cells, the parser takes the other rows for text inside of the table, which is shown as it is.
        if !text.is_empty() && self.table.is_none() {
            let lines = text.wrap(&self.indent(), self.style);
            self.lines.extend(lines);
        }
    }

    /// Writes a part of the source as it is.
    fn write_source(&mut self, at: usize, source: &str) {
        self.begin_block(at);
        self.text.push(source.trim_end(), Paint::PLAIN);
        self.flush();
    }

    /// What stands before the next lines. The marks of items are shown once.
    fn indent(&mut self) -> Indent {
        let mut indent = Indent::default();
        let mut depth = 0;
        for container in &mut self.containers {
            let (first, rest) = match container {
                Container::List { .. } => continue,
                Container::Quote => ("│ ".to_owned(), "│ ".to_owned()),
                Container::Item { mark, is_shown } => {
                    let spaces = " ".repeat(mark.chars().count());
                    let first = if *is_shown { spaces.clone() } else { mark.clone() };
                    *is_shown = true;
                    (first, spaces)
                }
            };
            depth += 1;
            if depth <= MAX_DEPTH {
                indent.first.push(&first, Paint::DIM);
                indent.rest.push(&rest, Paint::DIM);
            }
        }
        indent
    }
}

/// Whether a blank line is before this position, not counting the marks of quotes.
fn has_blank_before(source: &str, at: usize) -> bool {
    let before =
        source[..at].bytes().rev().take(MAX_BLANK).take_while(|byte| matches!(byte, b' ' | b'\t' | b'>' | b'\n'));
    before.filter(|byte| *byte == b'\n').count() >= 2
}

/// Counts what is parsed and written, so that a test can tell that it is not too much.
#[cfg(test)]
pub(super) mod work {
    use std::cell::Cell;

    thread_local!(static BYTES: Cell<(usize, usize)> = const { Cell::new((0, 0)) });

    pub(super) fn count_parsed(bytes: usize) {
        let (parsed, written) = BYTES.get();
        BYTES.set((parsed + bytes, written));
    }

    pub(super) fn count_written(bytes: usize) {
        let (parsed, written) = BYTES.get();
        BYTES.set((parsed, written + bytes));
    }

    /// The bytes that this thread has parsed since the last call, and those that it has written.
    pub(in super::super) fn take() -> (usize, usize) {
        BYTES.take()
    }
}
