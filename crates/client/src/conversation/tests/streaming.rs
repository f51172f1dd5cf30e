//! Text that arrives in pieces: the lines do not depend on the pieces, and the work is linear.

use proptest::prelude::*;

use super::super::blocks::MAX_BLOCK;
use super::super::markdown::work;
use super::super::text::char_width;
use super::*;
use crate::escape::rearranges;

/// The final lines of a text that arrives in these pieces.
fn shown(pieces: &[&str], style: Style) -> Vec<String> {
    let mut session = Session::new(style);
    let mut lines: Vec<String> = pieces.iter().flat_map(|piece| session.event(text("b", piece))).collect();
    lines.extend(session.finish());
    lines
}

/// Pieces of Markdown, which meet in any order.
fn markdown() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "word",
        "longer words ",
        " ",
        "  ",
        "    ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "23) ",
        "# ",
        "## ",
        "> ",
        ">",
        "```",
        "```rust\n",
        "~~~",
        "`",
        "``",
        "*",
        "**",
        "_",
        "~~",
        "[",
        "]",
        "](",
        "](http://a.b)",
        "![",
        "<",
        ">",
        "<b>",
        "<!--",
        "-->",
        "http://a.b",
        "| a | b |\n",
        "|---|:-:|\n",
        "|",
        "---\n",
        "===\n",
        "- [ ] ",
        "- [x] ",
        "\\",
        "&lt;",
        "&#27;",
        "[a]: b\n",
        "漢字",
        "e\u{301}",
        "👩\u{200d}👩",
        "❤\u{fe0f}",
        "\u{1b}[31m",
        "\u{202e}",
        "\u{9b}",
        "\0",
    ]);
    prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat())
}

fn width() -> impl Strategy<Value = Option<u16>> {
    prop_oneof![Just(None), (0..100u16).prop_map(Some)]
}

/// Cuts a text at these positions, moved to the next character.
fn cut_at<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.ceil_char_boundary(cut % (text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}

/// A line without its SGR sequences. Fails if it has another one.
fn without_colour(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (codes, text) = part.strip_prefix('[').and_then(|part| part.split_once('m')).expect("a whole sequence");
        assert!(
            codes.split(';').all(|code| ["0", "1", "2", "3", "9", "31", "32", "33", "36"].contains(&code)),
            "{line:?}"
        );
        plain.push_str(text);
    }
    plain
}

fn check_line(line: &str, style: Style) {
    assert!(style.color || !line.contains('\x1b'), "{line:?}");
    let plain = without_colour(line);
    assert!(!plain.contains(|c: char| c.is_control() || rearranges(c)), "{line:?}");
    let columns: usize = plain.chars().map(char_width).sum();
    assert!(style.width.is_none_or(|width| columns <= usize::from(width).max(20)), "{columns} columns: {line:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// Whatever the text and its size are: only whole lines are looked at, also to decide that a block is too long.
    #[test]
    fn final_lines_do_not_depend_on_how_the_text_was_cut(
        source in markdown(),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        width in width(),
        color: bool,
    ) {
        let style = Style { width, color };
        let whole = shown(&[&source], style);
        prop_assert_eq!(shown(&cut_at(&source, &cuts), style), whole.clone());
        for line in &whole {
            check_line(line, style);
        }
    }

    #[test]
    fn what_is_pending_becomes_final_as_it_was_shown(source in markdown(), cut: usize, width in width()) {
        let style = Style { width, color: true };
        let mut session = Session::new(style);
        session.event(text("b", cut_at(&source, &[cut])[0]));
        let pending = session.pending();
        pending.iter().for_each(|line| check_line(line, style));
        prop_assert_eq!(session.finish(), pending);
    }
}

#[test]
fn the_same_holds_for_blocks_and_lines_above_the_bounds() {
    let list: String = (0..800).map(|n| format!("1. item {n} of a long list\n")).collect();
    let words = "some words of a long line ".repeat(1500);
    let item = format!("- item\n{}", "  a line of a long item\n".repeat(900));
    let code = format!("```\n{}\n{words}\n", "code\n".repeat(500));
    for source in [list, words, item, code] {
        let whole = shown(&[&source], PLAIN);
        for size in [1, 7, 1000, MAX_BLOCK - 1, MAX_BLOCK, MAX_BLOCK + 1] {
            let cuts: Vec<usize> = (0..source.len()).step_by(size).collect();
            assert!(shown(&cut_at(&source, &cuts), PLAIN) == whole, "pieces of {size} bytes");
        }
    }
}

/// How many times as long as its source the lines of a block may be.
const MAX_GROWTH: usize = 20;

/// Each byte is parsed once when its block is final. Text that is pending is parsed when it is shown, and is bounded. So is
/// what is written for it.
#[test]
fn r52_the_work_is_linear_in_the_text() {
    let words = "a few words of text, ";
    let lines = |prefix: &str, suffix: &str| format!("{prefix}{words}{suffix}\n").repeat(10_000);
    let half = "x".repeat(MAX_BLOCK / 2);
    let deep = MAX_BLOCK / 7;
    let sources = [
        ("one paragraph", words.repeat(50_000)),
        ("lines of one paragraph", lines("", "")),
        ("one item", format!("- {}", lines("  ", ""))),
        ("a list", lines("- ", "")),
        ("code", format!("```\n{}", lines("", ""))),
        ("a quote", lines("> ", "")),
        ("a table", format!("| a | b |\n|---|---|\n{}", lines("| ", "| x |"))),
        ("a table with a long name", format!("|{half}|\n|-|\n{}", "a\n".repeat(4000))),
        ("a table with a wide cell", format!("|a|\n|-:|\n|{half}|\n{}", "a\n".repeat(4000))),
        ("a table with many names", format!("{}\n{}\n{}", "|name".repeat(40), "|-".repeat(40), "|a\n".repeat(100))),
        ("a table with short cells", format!("|{}|\n|-:|\n{}", &half[..150], "a\n".repeat(4000))),
        ("images in images", format!("{}x{}", "![".repeat(deep), "](a)".repeat(deep))),
        ("links in links", format!("{}x{}", "[".repeat(deep), "](a)".repeat(deep))),
        ("references", format!("{}\n\n[a]: {half}\n", "[a]".repeat(2000))),
        ("a reference and its target", format!("[a]: {half}\n{}", "[a]".repeat(2000))),
        ("blank lines", "\n".repeat(200_000)),
        ("blank lines in an item", format!("- a\n{}  b", "\n".repeat(200_000))),
    ];
    for (name, source) in sources {
        for width in [Some(40), Some(200), None] {
            check_work(name, &source, Style { width, color: false });
        }
    }
}

fn check_work(name: &str, source: &str, style: Style) {
    let bound = MAX_GROWTH * MAX_BLOCK;
    work::take();
    let mut session = Session::new(style);
    let (mut lines, mut all_written) = (0, 0);
    for (number, piece) in source.as_bytes().chunks(20).enumerate() {
        lines += session.event(text("b", std::str::from_utf8(piece).unwrap())).len();
        let (parsed, written) = work::take();
        assert!(parsed <= MAX_BLOCK, "{name}: {parsed} bytes parsed for one piece");
        assert!(written <= bound, "{name}: {written} bytes written for one piece");
        all_written += written;
        if number % 1000 == 0 {
            assert!(session.pending().len() <= ROWS);
            let (parsed, written) = work::take();
            assert!(parsed <= 2 * MAX_BLOCK, "{name}: {parsed} bytes parsed to show what is pending");
            assert!(written <= bound, "{name}: {written} bytes written to show what is pending");
        }
    }
    let before = lines;
    lines += session.finish().len();
    assert!(lines - before <= MAX_BLOCK, "{name}: {} lines were pending", lines - before);
    let written = work::take().1;
    assert!(written <= bound, "{name}: {written} bytes written at the end");
    let all_written = all_written + written;
    assert!(all_written <= MAX_GROWTH * source.len(), "{name}: {all_written} bytes of {}", source.len());
}

#[test]
fn r52_five_thousand_pieces_of_a_block_are_parsed_once() {
    work::take();
    let mut session = Session::new(PLAIN);
    for _ in 0..5000 {
        assert!(session.event(text("b", "x ")).is_empty());
    }
    assert_eq!(work::take(), (0, 0));
    session.finish();
    assert_eq!(work::take().0, 10_001, "with a line break at its end");
}
