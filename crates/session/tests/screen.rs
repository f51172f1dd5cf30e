//! The screen as the session process uses it: text in, snapshots, answers and events out.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::{Screen, ScreenEvent};

fn size(cols: u32, rows: u32) -> Size {
    Size::new(cols, rows).unwrap()
}

fn folded(size: Size, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(size, 1000);
    screen.advance(bytes);
    screen
}

#[track_caller]
fn assert_round_trip(size: Size, bytes: &[u8]) {
    let mut screen = folded(size, bytes);
    let snapshot = screen.snapshot(Scope::All, usize::MAX);
    let mut again = folded(size, &snapshot);
    assert_eq!(again.dump(), screen.dump(), "snapshot {:?}", String::from_utf8_lossy(&snapshot));
    assert!(again.take_replies().is_empty(), "a snapshot asks nothing");
}

#[test]
fn r22_plain_and_styled_text_come_back() {
    assert_round_trip(size(80, 24), b"");
    assert_round_trip(size(80, 24), b"hello\r\n\x1b[1;31mred\x1b[0m world");
    assert_round_trip(size(10, 3), b"a line that wraps over several rows and scrolls\r\nmore\r\n");
    assert_round_trip(size(10, 3), "宽字符一二三四五六\u{301}e\u{301}".as_bytes());
    assert_round_trip(size(10, 3), b"0123456789");
    assert_round_trip(size(20, 5), b"main\x1b[?1049h\x1b[2;2Halt\x1b[44m\x1b[K");
    assert_round_trip(size(20, 5), b"x\x1b[2;4r\x1b[?6h\x1b[3g\x1b[5G\x1bH\x1b[4h\x1b[?1000;1006;2004habc");
    assert_round_trip(size(20, 5), b"text\x1b]0;half a tit");
}

#[test]
fn r24_questions_are_answered_once() {
    let mut screen = folded(size(80, 24), b"\x1b[c\x1b[5n\x1b[3;4H\x1b[6n\x1b]11;?\x07");
    let replies = String::from_utf8(screen.take_replies()).unwrap();
    assert_eq!(replies, "\x1b[?62;22c\x1b[0n\x1b[3;4R\x1b]11;rgb:1818/1818/1818\x07");
    assert!(screen.take_replies().is_empty());
}

#[test]
fn r29_titles_and_the_bell_become_events() {
    let mut screen = folded(size(80, 24), b"\x1b]2;one\x07\x1b]2;two\x07\x07");
    assert_eq!(screen.take_events(), [ScreenEvent::Title("two".into()), ScreenEvent::Bell]);
}

#[test]
fn r30_the_screen_is_readable() {
    let mut screen = folded(size(20, 4), b"one\r\n\x1b[31mtwo\x1b[m  \r\n");
    assert_eq!(screen.text(0), "one\ntwo\n");
    assert_eq!(screen.ansi(0), b"one\n\x1b[31mtwo\x1b[m\n");
    assert_eq!(screen.json(0)["lines"][1]["spans"][0], serde_json::json!({"col": 0, "text": "two", "fg": 1}));
}

fn urls(screen: &mut Screen) -> Vec<(String, bool)> {
    let events = screen.take_events().into_iter();
    events
        .filter_map(|event| if let ScreenEvent::Url { url, open } = event { Some((url, open)) } else { None })
        .collect()
}

#[test]
fn r27_addresses_are_found_across_wraps_and_styling() {
    let mut screen = folded(size(20, 5), b"see https://example.com/a/long/path?with=query, please\r\n");
    assert_eq!(urls(&mut screen), [("https://example.com/a/long/path?with=query".into(), false)]);
    screen.advance(b"again: HTTPS://Example.com:443/a/long/path?with=query\r\n");
    assert_eq!(urls(&mut screen), [], "once each");
    screen.advance(b"\x1b[1mhttps://\x1b[32mgithub.com\x1b[0m/login/\x1b[4mdevice\x1b[m and on\r\n");
    assert_eq!(urls(&mut screen), [("https://github.com/login/device".into(), true)]);
    screen.advance(b"\x1b]8;;https://linked.example/x\x1b\\text\x1b]8;;\x1b\\\r\n");
    assert_eq!(urls(&mut screen), [("https://linked.example/x".into(), false)]);
    // Wrapped by the program itself, at the last column.
    screen.advance(b"\r\nhttps://h.example/aa\r\nb?code=1\r\nThe end\r\n");
    assert_eq!(urls(&mut screen), [("https://h.example/aab?code=1".into(), false)]);
    screen.advance(b"\r\nhttps://h.example/zz\r\nThe end\r\n");
    assert_eq!(urls(&mut screen), [("https://h.example/zz".into(), false)]);
}

#[test]
fn r27_addresses_in_pieces_are_reported_whole() {
    let text = b"Open https://claude.ai/oauth/authorize?code=true&client_id=x in a browser\r\n";
    let mut screen = Screen::new(size(30, 5), 100);
    for byte in text {
        screen.advance(&[*byte]);
    }
    let expected = [("https://claude.ai/oauth/authorize?code=true&client_id=x".to_owned(), true)];
    assert_eq!(urls(&mut screen), expected);
    // Far more output than the screen has rows, in one go.
    let mut screen = Screen::new(size(30, 5), 2000);
    let mut flood: Vec<u8> = (0..400).flat_map(|n| format!("http://n.example/{n}\r\n").into_bytes()).collect();
    flood.extend_from_slice(text);
    screen.advance(&flood);
    assert_eq!(urls(&mut screen).len(), 256, "events are bounded");
    screen.advance(&flood);
    assert_eq!(urls(&mut screen).len(), 145, "what did not fit comes when it is printed again");
}
