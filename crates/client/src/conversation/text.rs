//! Styled text, and how it becomes lines of a terminal. Everything is escaped here, where it cannot be forgotten.

use unicode_width::UnicodeWidthChar;

use crate::escape::{escape, one_line};

/// The narrowest layout. Lines for a narrower window are this wide.
const MIN_WIDTH: usize = 20;
/// What is left for text beside the indentation, at least. Deeper indentation is not shown.
const MIN_TEXT: usize = 8;
/// Characters without a width of their own that one character may carry; the others are shown as one `�`.
const MAX_MARKS: usize = 8;
/// Where a single line is cut if lines are not wrapped.
const MAX_CUT: usize = 200;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The columns of the window. `None`: lines are not wrapped.
    pub width: Option<u16>,
    /// Whether lines may contain SGR sequences. Without colour, they contain no escape byte at all.
    pub color: bool,
}

impl Style {
    pub(super) fn columns(self) -> usize {
        self.width.map_or(usize::MAX, |width| usize::from(width).max(MIN_WIDTH))
    }

    /// The columns of a text that must be one line.
    pub(super) fn cut_columns(self) -> usize {
        self.columns().min(MAX_CUT)
    }
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Paint {
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) italic: bool,
    pub(super) strike: bool,
    pub(super) color: Option<Color>,
}

/// A colour that is readable on dark and on light backgrounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Color {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

impl Paint {
    pub(super) const PLAIN: Paint = Paint { bold: false, dim: false, italic: false, strike: false, color: None };
    pub(super) const BOLD: Paint = Paint { bold: true, ..Paint::PLAIN };
    pub(super) const DIM: Paint = Paint { dim: true, ..Paint::PLAIN };
    pub(super) const RED: Paint = Paint { color: Some(Color::Red), ..Paint::PLAIN };
    pub(super) const GREEN: Paint = Paint { color: Some(Color::Green), ..Paint::PLAIN };
    pub(super) const YELLOW: Paint = Paint { color: Some(Color::Yellow), ..Paint::PLAIN };
    pub(super) const CYAN: Paint = Paint { color: Some(Color::Cyan), ..Paint::PLAIN };

    fn sgr(self) -> String {
        let flags = [(self.bold, 1), (self.dim, 2), (self.italic, 3), (self.strike, 9)];
        let codes = flags.into_iter().filter_map(|(set, code)| set.then_some(code));
        let codes: Vec<String> =
            codes.chain(self.color.map(|color| color as u8)).map(|code: u8| code.to_string()).collect();
        format!("\x1b[{}m", codes.join(";"))
    }
}

/// Text in one or more paints. A newline begins a new line.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    spans: Vec<(String, Paint)>,
}

impl Text {
    pub(super) fn new(text: &str, paint: Paint) -> Text {
        Text::default().with(text, paint)
    }

    #[must_use]
    pub(super) fn with(mut self, text: &str, paint: Paint) -> Text {
        self.push(text, paint);
        self
    }

    /// Appends text from anywhere: it is escaped.
    pub(super) fn push(&mut self, text: &str, paint: Paint) {
        let text = escape(text, &['\n', '\t']);
        match self.spans.last_mut() {
            Some((last, same)) if *same == paint => last.push_str(&text),
            _ => self.spans.push((text, paint)),
        }
    }

    pub(super) fn append(&mut self, other: Text) {
        self.spans.extend(other.spans);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.iter().all(|(text, _)| text.is_empty())
    }

    /// The text alone.
    pub(super) fn plain(&self) -> String {
        self.spans.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// The columns that it takes as one line.
    pub(super) fn width(&self) -> usize {
        self.clusters()
            .map(|cluster| if matches!(cluster.text.as_str(), "\n" | "\t") { 1 } else { cluster.width })
            .sum()
    }

    /// The text as one line of at most `columns`, with `…` for what is cut. A line break or a tab is a space.
    #[must_use]
    pub(super) fn cut(&self, columns: usize) -> Text {
        let mut line = Line::default();
        for cluster in self.clusters() {
            let (text, width) = match cluster.text.as_str() {
                "\n" | "\t" => (" ", 1),
                text => (text, cluster.width),
            };
            if line.width + width > columns {
                line.shorten(columns.saturating_sub(1));
                line.put("…", 1, cluster.paint);
                break;
            }
            line.put(text, width, cluster.paint);
        }
        Text { spans: line.spans }
    }

    /// The lines of the text, broken between words, or inside of a word that is longer than a line.
    pub(super) fn wrap(&self, indent: &Indent, style: Style) -> Vec<String> {
        Wrap::new(indent, style).wrap_words(self)
    }

    /// The lines of the text with all its spaces, broken wherever a line is full. For code and commands.
    pub(super) fn wrap_exact(&self, indent: &Indent, style: Style) -> Vec<String> {
        Wrap::new(indent, style).wrap_exact(self)
    }

    /// The text as one line of any width.
    pub(super) fn line(&self, style: Style) -> String {
        Line { spans: self.cut(usize::MAX).spans, width: 0 }.finish(style)
    }

    fn clusters(&self) -> impl Iterator<Item = Cluster> {
        self.spans.iter().flat_map(|(text, paint)| Clusters { chars: text.chars().peekable(), paint: *paint })
    }
}

/// What stands before the lines of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Indent {
    pub(super) first: Text,
    pub(super) rest: Text,
}

impl Indent {
    /// A mark before the first line, and spaces before the others.
    pub(super) fn hanging(mark: &str, paint: Paint) -> Indent {
        let first = Text::new(mark, paint);
        let rest = Text::new(&" ".repeat(first.width()), Paint::PLAIN);
        Indent { first, rest }
    }
}

/// Text cut to `columns`, with its escapes, as one line.
pub(super) fn cut(text: &str, columns: usize) -> String {
    // A text of a megabyte is not measured to its end. Every column takes at most this many characters.
    let shown: String = text.chars().take(columns.saturating_mul(MAX_MARKS + 1)).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Text::new(&(one_line(shown) + more), Paint::PLAIN).cut(columns).plain()
}

/// The columns that a character takes, as terminals count them.
pub fn char_width(c: char) -> usize {
    UnicodeWidthChar::width(c).unwrap_or(0)
}

/// Characters that are shown together and never separated, such as a letter and its accents.
struct Cluster {
    text: String,
    width: usize,
    paint: Paint,
}

struct Clusters<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    paint: Paint,
}

impl Iterator for Clusters<'_> {
    type Item = Cluster;

    fn next(&mut self) -> Option<Cluster> {
        const JOINER: char = '\u{200d}';
        const EMOJI: char = '\u{fe0f}';
        let first = self.chars.next()?;
        let mut cluster = Cluster { text: first.to_string(), width: char_width(first), paint: self.paint };
        if matches!(first, '\n' | '\t') {
            return Some(cluster);
        }
        let (mut marks, mut last) = (0, first);
        while let Some(&c) = self.chars.peek() {
            let mark = char_width(c) == 0;
            let joined = last == JOINER && cluster.width + char_width(c) <= MIN_TEXT;
            if matches!(c, '\n' | '\t' | ' ') || !mark && !joined {
                break;
            }
            self.chars.next();
            marks += usize::from(mark);
            if marks > MAX_MARKS {
                if marks == MAX_MARKS + 1 {
                    cluster.text.push('\u{fffd}');
                    cluster.width += 1;
                }
                // The rest of the marks is dropped, so nothing is joined to this cluster any more.
                last = '\u{fffd}';
                continue;
            }
            // Terminals disagree about sequences of emoji. Counting too much keeps a line within the window.
            cluster.width += if c == EMOJI && cluster.width == 1 { 1 } else { char_width(c) };
            cluster.text.push(c);
            last = c;
        }
        Some(cluster)
    }
}

/// A line that is being filled.
#[derive(Default)]
struct Line {
    spans: Vec<(String, Paint)>,
    width: usize,
}

impl Line {
    fn put(&mut self, text: &str, width: usize, paint: Paint) {
        self.width += width;
        match self.spans.last_mut() {
            Some((last, same)) if *same == paint => last.push_str(text),
            _ => self.spans.push((text.to_owned(), paint)),
        }
    }

    /// Removes clusters from the end until the line is at most this wide.
    fn shorten(&mut self, columns: usize) {
        if self.width <= columns {
            return;
        }
        let text = Text { spans: std::mem::take(&mut self.spans) };
        self.width = 0;
        for cluster in text.clusters() {
            if self.width + cluster.width > columns {
                break;
            }
            self.put(&cluster.text, cluster.width, cluster.paint);
        }
    }

    fn finish(self, style: Style) -> String {
        let mut line = String::new();
        for (text, paint) in self.spans {
            if !style.color || paint == Paint::PLAIN || text.bytes().all(|byte| byte == b' ') {
                line.push_str(&text);
            } else {
                line.push_str(&format!("{}{text}\x1b[0m", paint.sgr()));
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }
}

/// Fills lines, one after the other.
struct Wrap<'a> {
    indent: &'a Indent,
    style: Style,
    lines: Vec<String>,
    line: Line,
    /// Columns of the indentation of this line, which has no text yet if it is as wide as this.
    start: usize,
}

impl<'a> Wrap<'a> {
    fn new(indent: &'a Indent, style: Style) -> Wrap<'a> {
        let mut wrap = Wrap { indent, style, lines: Vec::new(), line: Line::default(), start: 0 };
        wrap.begin();
        wrap
    }

    fn begin(&mut self) {
        let indent = if self.lines.is_empty() { &self.indent.first } else { &self.indent.rest };
        self.line = Line { spans: indent.spans.clone(), width: indent.width() };
        self.line.shorten(self.style.columns() - MIN_TEXT);
        self.start = self.line.width;
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line).finish(self.style));
        self.begin();
    }

    fn finish(mut self) -> Vec<String> {
        if self.line.width > self.start || self.lines.is_empty() {
            self.end_line();
        }
        self.lines
    }

    fn put(&mut self, cluster: &Cluster) {
        if self.line.width.saturating_add(cluster.width) > self.style.columns() && self.line.width > self.start {
            self.end_line();
        }
        self.line.put(&cluster.text, cluster.width, cluster.paint);
    }

    fn wrap_exact(mut self, text: &Text) -> Vec<String> {
        const TAB: usize = 4;
        for mut cluster in text.clusters() {
            match cluster.text.as_str() {
                "\n" => self.end_line(),
                "\t" => {
                    cluster.width = TAB - (self.line.width - self.start) % TAB;
                    cluster.text = " ".repeat(cluster.width);
                    self.put(&cluster);
                }
                _ => self.put(&cluster),
            }
        }
        self.finish()
    }

    fn wrap_words(mut self, text: &Text) -> Vec<String> {
        let mut word: Vec<Cluster> = Vec::new();
        // Spaces before the word. They are dropped at the end of a line.
        let mut spaces: Vec<Cluster> = Vec::new();
        for mut cluster in text.clusters() {
            match cluster.text.as_str() {
                "\n" => {
                    self.put_word(&mut spaces, &mut word);
                    spaces.clear();
                    self.end_line();
                }
                " " | "\t" => {
                    self.put_word(&mut spaces, &mut word);
                    (cluster.text, cluster.width) = (" ".to_owned(), 1);
                    spaces.push(cluster);
                }
                // A line may be broken before and after each wide character: their languages have no spaces.
                _ if cluster.width > 1 => {
                    self.put_word(&mut spaces, &mut word);
                    word.push(cluster);
                    self.put_word(&mut spaces, &mut word);
                }
                _ => word.push(cluster),
            }
        }
        self.put_word(&mut spaces, &mut word);
        self.finish()
    }

    fn put_word(&mut self, spaces: &mut Vec<Cluster>, word: &mut Vec<Cluster>) {
        if word.is_empty() {
            return;
        }
        let width = |clusters: &[Cluster]| clusters.iter().map(|cluster| cluster.width).sum::<usize>();
        let needed = self.line.width + width(spaces) + width(word);
        if needed > self.style.columns() && self.line.width > self.start {
            self.end_line();
            spaces.clear();
        }
        for cluster in spaces.drain(..).chain(word.drain(..)) {
            self.put(&cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { width: Some(20), color: false };

    fn wrapped(text: &str) -> Vec<String> {
        Text::new(text, Paint::PLAIN).wrap(&Indent::default(), PLAIN)
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        assert_eq!(wrapped("a few words that are wrapped"), ["a few words that are", "wrapped"]);
        assert_eq!(wrapped(&format!("a {}", "x".repeat(45))), ["a", &"x".repeat(20), &"x".repeat(20), "xxxxx"]);
        assert_eq!(wrapped("one\n\n  two   spaces  "), ["one", "", "  two   spaces"]);
        assert_eq!(wrapped(""), [""]);
        assert_eq!(Text::new(&"x".repeat(999), Paint::PLAIN).wrap(&Indent::default(), Style::default()).len(), 1);
    }

    #[test]
    fn width_is_counted_as_terminals_show_it() {
        assert_eq!(wrapped(&"漢".repeat(11)), ["漢".repeat(10), "漢".to_owned()], "two columns each");
        assert_eq!(
            wrapped(&"e\u{301}".repeat(21)),
            ["e\u{301}".repeat(20), "e\u{301}".to_owned()],
            "accents take none"
        );
        assert_eq!(wrapped(&"❤\u{fe0f}".repeat(11))[0].chars().count(), 20, "two columns as emoji");
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(wrapped(&family.repeat(4))[0], family.repeat(3), "never broken inside");
    }

    #[test]
    fn r52_a_flood_of_marks_without_width_is_dropped() {
        for mark in ['\u{301}', '\u{200d}', '\u{200b}'] {
            let flood = format!("a{}b", String::from(mark).repeat(100_000));
            let lines = wrapped(&flood);
            assert_eq!(lines.len(), 1);
            assert!(
                lines[0].chars().count() < 20 && lines[0].contains('\u{fffd}') && lines[0].ends_with('b'),
                "{lines:?}"
            );
        }
        let joined = "👩\u{200d}".repeat(1000);
        assert!(wrapped(&joined).iter().all(|line| line.chars().map(char_width).sum::<usize>() <= 20));
    }

    #[test]
    fn code_keeps_its_spaces_and_tabs_become_spaces() {
        let code = Text::new("\tif  x {\n  y\tz", Paint::PLAIN);
        assert_eq!(code.wrap_exact(&Indent::default(), PLAIN), ["    if  x {", "  y z"]);
    }

    #[test]
    fn colours_are_sequences_of_their_own_on_each_line() {
        let text = Text::new("plain ", Paint::PLAIN).with("red words that are long", Paint::RED);
        let lines = text.wrap(&Indent::hanging("> ", Paint::DIM), Style { color: true, ..PLAIN });
        assert_eq!(
            lines,
            ["\x1b[2m> \x1b[0mplain \x1b[31mred words\x1b[0m", "  \x1b[31mthat are long\x1b[0m"],
            "no line ends in colour"
        );
        assert_eq!(text.wrap(&Indent::default(), PLAIN).join(" "), "plain red words that are long");
    }

    #[test]
    fn a_cut_text_is_one_line_and_a_huge_one_is_not_read_to_its_end() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("too long", 5), "too …");
        assert_eq!(cut("漢字漢字", 4), "漢…", "a wide character is not halved");
        assert_eq!(cut("a\nb\x1b", 20), r"a\u000ab\u001b");
        assert_eq!(cut(&"\u{301}".repeat(1 << 20), 20).chars().count(), 11);
        assert_eq!(cut(&"x".repeat(1 << 20), 20), format!("{}…", "x".repeat(19)));
    }

    #[test]
    fn deep_indentation_leaves_room_for_text() {
        let lines = Text::new("some words", Paint::PLAIN).wrap(&Indent::hanging(&"│ ".repeat(50), Paint::PLAIN), PLAIN);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.chars().count() <= 20), "{lines:?}");
    }
}
