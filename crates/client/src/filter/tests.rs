//! Tests of the filter, by example and by property.

use super::*;
use proptest::prelude::*;

fn filtered(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Filter::new().filter(input, &mut out);
    out
}

fn chunked(input: &[u8], sizes: &[usize]) -> Vec<u8> {
    let (mut filter, mut out, mut rest) = (Filter::new(), Vec::new(), input);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*size).clamp(1, rest.len()));
        filter.filter(now, &mut out);
        rest = later;
    }
    out
}

/// The queries that a terminal would answer, found with alacritty's parser, independent of the filter's own lists.
#[derive(Default)]
struct Answers(Vec<String>);

impl vte::Perform for Answers {
    fn execute(&mut self, byte: u8) {
        if byte == ENQ {
            self.0.push("ENQ".into());
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, intermediates: &[u8], ignore: bool, action: char) {
        let first = params.iter().next().map_or(0, |p| p[0]);
        let answers = match (intermediates, action) {
            (b"" | b">" | b"=", 'c') | (b"" | b"?", 'n') | (b"$" | b"?$", 'p') | (b"", 'x') | (b">", 'q') => true,
            (b"", 't') => [11, 13, 14, 15, 16, 18, 19, 20, 21].contains(&first),
            (b"?", 'u' | 'S' | 'm') | (b"*", 'y') | (b"$", 'w') => true,
            _ => false,
        };
        if answers && !ignore {
            self.0.push(format!("CSI {intermediates:?} {action}"));
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell: bool) {
        let code = params.first().copied().unwrap_or_default();
        let colour = [&b"4"[..], b"5", b"10", b"11", b"12", b"13", b"17", b"19", b"52"].contains(&code);
        if colour && params.iter().any(|p| *p == b"?") {
            self.0.push(format!("OSC {params:?}"));
        }
    }

    fn hook(&mut self, params: &vte::Params, intermediates: &[u8], _ignore: bool, action: char) {
        let is_control_mode = (intermediates, action) == (b"", 'p') && params.iter().flatten().any(|n| *n >= 1000);
        if is_control_mode || matches!((intermediates, action), (b"$" | b"+", 'q')) {
            self.0.push(format!("DCS {intermediates:?} {action}"));
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        if intermediates.is_empty() && byte == b'Z' {
            self.0.push("DECID".into());
        }
    }
}

fn answers(bytes: &[u8]) -> Vec<String> {
    let (mut parser, mut answers) = (vte::Parser::new(), Answers::default());
    parser.advance(&mut answers, bytes);
    answers.0
}

/// Fragments that are hard to filter when they meet.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed: Vec<&'static [u8]> = vec![
        b"\x1b",
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b_",
        b"\x1b_G",
        b"\x1bX",
        b"\x1b\\",
        b"\x07",
        b"\x05",
        b"\x18",
        b"\x1a",
        b"\xc2",
        b"\xc2\x9b",
        b"\x9b",
        b"\xc2\x9d",
        b"\xc2\x9c",
        b"\xc2\x90",
        b"\xc2\x9a",
        b"\x9a",
        b"\xe2\x9b\x9b",
        b"\xe2",
        b"\xf0\x9f",
        b"c",
        b"[c",
        b"6n",
        b"?",
        b"\x1b[c",
        b"\x1b[>c",
        b"\x1b[6n",
        b"\x1b[?u",
        b"\x1b[?2026$p",
        b"$q",
        b"+q",
        b"\x1b]11;?\x07",
        b"\x1b]52;c;?\x1b\\",
        b"4;1;?",
        b"10;?",
        b"52;c;",
        b"\x1bZ",
        b"\x1b[18t",
        b"a=q",
        b"q=2",
        b";",
        b"hello",
        b"\r\n",
        b"\x1b[1;31m",
        b"\x1b[?1049h",
        b"\x1b]0;t?\x07",
        b"\x1bP1$r0m\x1b\\",
        b"\x1bP1000p",
        b"\x901000p",
        b"1000p",
        b"\x9d",
        b"\x9c",
        b"\x9f",
        b"\xff",
        b"\x1b%@",
        b"\x1b[?2048h",
    ];
    prop_oneof![
        8 => prop::sample::select(fixed).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..6),
        1 => "[ -~é✓🦀]{0,12}".prop_map(String::into_bytes),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn r24_no_query_survives(input in stream()) {
        let out = filtered(&input);
        prop_assert_eq!(answers(&out), Vec::<String>::new(), "out: {:?}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn only_valid_utf8_reaches_the_terminal(input in stream(), sizes in prop::collection::vec(1usize..7, 1..8)) {
        prop_assert!(std::str::from_utf8(&filtered(&input)).is_ok());
        prop_assert!(std::str::from_utf8(&chunked(&input, &sizes)).is_ok());
    }

    #[test]
    fn r24_splitting_never_changes_the_output(input in stream(), sizes in prop::collection::vec(1usize..7, 1..8)) {
        let out = filtered(&input);
        prop_assert_eq!(&chunked(&input, &sizes), &out);
        prop_assert_eq!(&chunked(&input, &[1]), &out);
    }

    #[test]
    fn r24_filtering_twice_changes_nothing_more(input in stream()) {
        // The cancel and the letter at the end make sure that nothing is held back.
        let once = filtered(&[&input[..], b"\x18z"].concat());
        prop_assert_eq!(filtered(&once), once);
    }

    #[test]
    fn text_and_plain_sequences_pass_unchanged(pieces in prop::collection::vec(prop_oneof![
        "[ -~é✓🦀中\r\n\t]{0,20}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            &b"\x1b[0;38;2;1;2;3m"[..], b"\x1b[2J", b"\x1b[H", b"\x1b[?1002;1006h", b"\x1b(0", b"\x1b7", b"\x1b8", b"\x1bM",
            b"\x1b]0;a title?\x07", b"\x1b]8;;http://x/?q=?\x1b\\", b"\x1b]52;c;aGk=\x07", b"\x1b[5 q", b"\x1b[!p", b"\x1b[>4;1m",
            b"\x1bP0;1q#0;2;0;0;0~-\x1b\\", b"\x1b_Ga=T,q=2;AAAA\x1b\\", b"\x1b[22;0t", b"\xc2\x85", b"\x1b]133;A\x1b\\",
        ]).prop_map(<[u8]>::to_vec),
    ], 0..30)) {
        let input = pieces.concat();
        prop_assert_eq!(filtered(&input), input);
    }
}

#[test]
fn r24_queries_are_removed_from_text() {
    for query in [
        &b"\x1b[c"[..],
        b"\x1b[0c",
        b"\x1b[>c",
        b"\x1b[=c",
        b"\xc2\x9bc",
        b"\x1b[6n",
        b"\x1b[?6n",
        b"\x1b[5n",
        b"\x1bZ",
        b"\xc2\x9a",
        b"\x05",
        b"\x1b[?2026$p",
        b"\x1bP$qm\x1b\\",
        b"\x1bP+q544e\x1b\\",
        b"\xc2\x90+q544e\xc2\x9c",
        b"\x1b[>0q",
        b"\x1b]10;?\x07",
        b"\x1b]4;1;?\x1b\\",
        b"\xc2\x9d11;?\xc2\x9c",
        b"\x1b]52;c;?\x07",
        b"\x1b[14t",
        b"\x1b[21t",
        b"\x1b[?u",
        b"\x1b_Ga=q,i=31;AAAA\x1b\\",
        b"\x1b_Gi=31,a=q\xc2\x9c",
        b"\x1b[x",
        b"\x1b[1;1;1;1;1;1*y",
        b"\x1b[1$w",
    ] {
        let input = [&b"before"[..], query, b"after"].concat();
        assert_eq!(filtered(&input), b"beforeafter", "{:?}", String::from_utf8_lossy(query));
    }
}

#[test]
fn removing_a_query_inside_another_sequence_forms_no_new_query() {
    assert_eq!(filtered(b"\x1b\x1b[c[c"), b"\x1b\x18[c");
    assert_eq!(filtered(b"\x1b]0;t\x1b[ctext"), b"\x1b]0;t\x18text");
    assert_eq!(filtered(b"\xc2\x1b[c\x9a"), "\u{fffd}".as_bytes());
    assert_eq!(filtered(b"\xc2\x05\x9a"), "\u{fffd}".as_bytes());
}

#[test]
fn controls_inside_a_query_keep_their_effect() {
    assert_eq!(filtered(b"a\x1b[\r\nc"), b"a\r\n");
}

#[test]
fn a_query_wrapped_for_a_multiplexer_is_removed_too() {
    assert!(answers(&filtered(b"\x1bPtmux;\x1b\x1b[c\x1b\\")).is_empty());
    let out = filtered(b"\x1bPtmux;\x1b\x1b]11;?\x07\x1b\\");
    assert!(!out.windows(4).any(|w| w == b"11;?"), "{out:?}");
}

/// A terminal that reads invalid UTF-8 as Latin-1 would act on these.
#[test]
fn raw_8_bit_controls_do_not_reach_the_terminal() {
    assert_eq!(filtered(b"a\x9bcb\x9d52;c;?\x9cc"), b"acb52;c;?c");
    assert_eq!(filtered(b"\x1b]0;t\x9c\x9bc\x07x"), b"\x1b]0;tc\x07x");
    assert_eq!(filtered(b"\x1bPq#0\x9c\x9bc\x1b\\x"), b"\x1bPq#0c\x1b\\x");
    assert_eq!(filtered(b"\xe2\x90A caf\xe9"), "\u{fffd}A caf".as_bytes());
}

#[test]
fn tmux_control_mode_does_not_reach_the_terminal() {
    let start = b"a\x1bP1000p%begin 1 1 0\r\n%end 1 1 0\r\n%exit\r\n\x1b\\b";
    assert_eq!(filtered(start), b"ab");
    assert_eq!(filtered("a\u{90}1000p%begin\u{9c}b".as_bytes()), b"ab");
    assert_eq!(filtered(b"\x1bPpS(E)\x1b\\"), b"\x1bPpS(E)\x1b\\");
}

#[test]
fn r24_output_cannot_program_the_keys() {
    assert_eq!(filtered(b"a\x1bP0;1|17/6c730d\x1b\\b"), b"ab");
    assert_eq!(filtered(b"a\x1bP0;0;0!z6c730d\x1b\\b"), b"ab");
    assert_eq!(filtered(b"a\x1bP+p7874657264\x1b\\b"), b"ab");
}

#[test]
fn a_clipboard_write_passes_whole_or_not_at_all() {
    let write = |introducer: &str, len: usize, end: &str| format!("{introducer}{}{end}", "A".repeat(len)).into_bytes();
    // Not `assert_eq!`, which would print them.
    for (introducer, end) in [("\x1b]52;c;", "\x07"), ("\x1b]52;;", "\x1b\\"), ("\x1b]1337;Copy=:", "\x07")] {
        let fits = MAX_CLIPBOARD - introducer.len() - end.len();
        let longest = write(introducer, fits, end);
        assert!(filtered(&longest) == longest && chunked(&longest, &[1000]) == longest, "{introducer:?}");
        let too_long = [b"a", &write(introducer, fits + 2, end)[..], b"b"].concat();
        assert!(filtered(&too_long) == b"ab" && chunked(&too_long, &[1000]) == b"ab", "{introducer:?}");
    }
    // A query stays a query, whatever its length, and no terminal gets a write that has not ended.
    assert!(filtered(&write("\x1b]52;", 50_000, ";?\x07")).is_empty());
    assert!(filtered(&write("\x1b]52;c;", 50_000, "")).is_empty());
}

#[test]
fn long_sequences_are_bounded() {
    let long_csi = [&b"\x1b["[..], &vec![b'0'; 2 * MAX_SEQUENCE], b"c"].concat();
    assert_eq!(filtered(&[&long_csi[..], b"x"].concat()), b"x");
    let colours = [&b"\x1b]4"[..], &b";1;#000".repeat(1000), b";2;?\x07x"].concat();
    assert_eq!(filtered(&colours), b"x");
    let mut filter = Filter::new();
    filter.filter(&vec![0x1b; 100_000], &mut Vec::new());
    filter.filter(&[&b"\x1b]4;"[..], &vec![b'1'; 100_000]].concat(), &mut Vec::new());
    assert!(filter.held.capacity() < 4 * MAX_SEQUENCE);
    filter.filter(&[&b"\x07\x1b]52;c;"[..], &vec![b'A'; 1 << 20]].concat(), &mut Vec::new());
    assert!(filter.held.capacity() < 4 * MAX_CLIPBOARD);
}

#[test]
fn r6_an_interrupted_string_is_cancelled_and_its_rest_dropped() {
    let (mut filter, mut out) = (Filter::new(), Vec::new());
    filter.filter(b"\x1bPq#0~~", &mut out);
    filter.interrupt(&mut out);
    assert_eq!(out, b"\x1bPq#0~~\x18");
    out.clear();
    filter.filter(b"~~-\x1b\\text", &mut out);
    assert_eq!(out, b"text");
    filter.interrupt(&mut out);
    assert_eq!(out, b"text");
}

#[test]
fn graphics_get_the_quiet_flag() {
    assert_eq!(filtered(b"\x1b_Ga=T,i=1;AAAA\x1b\\"), b"\x1b_Ga=T,i=1,q=2;AAAA\x1b\\");
}

#[test]
fn r23_muted_output_passes_only_key_encoding_modes() {
    let (mut filter, mut out) = (Filter::new(), Vec::new());
    filter.set_muted(true);
    filter.filter(
        b"text\x1b[31m\x1b[?1049h\x1b[?6;1002;25l\x1b=\x1b[?2004h\x1b]2;t\x07\x1bPq~\x1b\\\x1b[>4;2m",
        &mut out,
    );
    assert_eq!(out, b"\x1b[?1002l\x1b=\x1b[?2004h\x1b[>4;2m");
}
