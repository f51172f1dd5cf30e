//! The screen as the session process uses it: output in; snapshots, query replies and events out.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::{Rgb, Screen, ScreenEvent, Theme};

fn size(cols: u32, rows: u32) -> Size {
    Size::new(cols, rows).unwrap()
}

fn screen_after(size: Size, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(size, 1000);
    screen.advance(bytes);
    screen
}

#[track_caller]
fn assert_round_trip(size: Size, bytes: &[u8]) {
    let mut screen = screen_after(size, bytes);
    let snapshot = screen.snapshot(Scope::All, usize::MAX);
    let mut again = screen_after(size, &snapshot);
    assert_eq!(again.dump(), screen.dump(), "snapshot {:?}", String::from_utf8_lossy(&snapshot));
    assert!(again.take_replies().is_empty(), "a snapshot contains no query");
}

#[test]
fn r22_a_snapshot_restores_plain_and_styled_text() {
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
fn r24_every_query_gets_its_reply() {
    let cases = [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1bZ", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>0;2600;1c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[3;4H\x1b[6n", "\x1b[3;4R"),
        ("\x1b[3;4H\x1b[?6n", "\x1b[?3;4;1R"),
        ("\x1b[2;9r\x1b[?6h\x1b[3;4H\x1b[6n", "\x1b[3;4R"),
        ("\x1b[4$p", "\x1b[4;2$y"),
        ("\x1b[4h\x1b[4$p", "\x1b[4;1$y"),
        ("\x1b[99$p", "\x1b[99;0$y"),
        ("\x1b[?25$p", "\x1b[?25;1$y"),
        ("\x1b[?1049h\x1b[?1049$p", "\x1b[?1049;1$y"),
        ("\x1b[?1016h\x1b[?1016$p\x1b[?1006$p", "\x1b[?1016;1$y\x1b[?1006;2$y"),
        ("\x1b[?2026$p", "\x1b[?2026;2$y"),
        ("\x1b[?12345$p", "\x1b[?12345;0$y"),
        ("\x1b[1;31;48;5;7m\x1bP$qm\x1b\\", "\x1bP1$r0;1;31;48;5;7m\x1b\\"),
        ("\x1b[3;7r\x1bP$qr\x1b\\", "\x1bP1$r3;7r\x1b\\"),
        ("\x1b[4 q\x1bP$q q\x1b\\", "\x1bP1$r4 q\x1b\\"),
        ("\x1bP$qx\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1b[>q", concat!("\x1bP>|bowline(", env!("CARGO_PKG_VERSION"), ")\x1b\\")),
        ("\x1bP+q544e\x1b\\", "\x1bP1+r544e=787465726d2d323536636f6c6f72\x1b\\"),
        ("\x1bP+q5858\x1b\\", "\x1bP0+r5858\x1b\\"),
        ("\x1bP+qzz\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;1;#102030\x07\x1b]4;1;?\x1b\\", "\x1b]4;1;rgb:1010/2020/3030\x1b\\"),
        ("\x1b]10;?;?\x07", "\x1b]10;rgb:d8d8/d8d8/d8d8\x07\x1b]11;rgb:1818/1818/1818\x07"),
        ("\x1b]12;?\x07", "\x1b]12;rgb:d8d8/d8d8/d8d8\x07"),
        ("\x1b[14t", "\x1b[4;480;800t"),
        ("\x1b[16t", "\x1b[6;20;10t"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[19t", "\x1b[9;24;80t"),
        ("\x1b]2;x\x07\x1b[21t", "\x1b]l\x1b\\"),
        ("\x1b[?996n", "\x1b[?997;1n"),
        // No reply: ENQ, the kitty keyboard protocol, the clipboard.
        ("\x05\x1b[?u\x1b]52;c;?\x07", ""),
    ];
    for (query, reply) in cases {
        let mut screen = screen_after(size(80, 24), query.as_bytes());
        assert_eq!(String::from_utf8(screen.take_replies()).unwrap(), reply, "{query:?}");
        assert!(screen.take_replies().is_empty(), "{query:?} got a second reply");
    }
}

#[test]
fn r24_colour_queries_report_the_theme() {
    let mut screen = Screen::new(size(80, 24), 0);
    let white = Rgb { r: 255, g: 255, b: 255 };
    screen.set_theme(Theme { fg: Rgb { r: 1, g: 2, b: 3 }, bg: white, cursor: white });
    screen.advance(b"\x1b]10;?\x07\x1b]11;?\x07\x1b[?996n");
    let expected = "\x1b]10;rgb:0101/0202/0303\x07\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?997;2n";
    assert_eq!(String::from_utf8(screen.take_replies()).unwrap(), expected);
}

#[test]
fn r29_titles_directories_and_notifications_become_events() {
    let notify = |title: &str, body: &str| ScreenEvent::Notify { title: title.into(), body: body.into() };
    let cases = [
        ("\x1b]2;one\x07\x1b]0;two;three\x07\x07\x07", vec![ScreenEvent::Title("two;three".into()), ScreenEvent::Bell]),
        ("\x1b]7;file:///tmp/a%20b\x07", vec![ScreenEvent::Cwd("/tmp/a b".into())]),
        ("\x1b]7;file://localhost/x\x07", vec![ScreenEvent::Cwd("/x".into())]),
        ("\x1b]7;file://another.host/x\x07\x1b]7;/x\x07\x1b]7;file:///a%0ab\x07\x1b]7;file:///%zz\x07", vec![]),
        ("\x1b]9;build; done\x07", vec![notify("", "build; done")]),
        ("\x1b]9;4;1;50\x07", vec![]),
        ("\x1b]777;notify;Title;the body\x07", vec![notify("Title", "the body")]),
        ("\x1b]99;;Hello\x1b\\", vec![notify("Hello", "")]),
        (
            "\x1b]99;i=1:d=0;Hel\x1b\\\x1b]99;i=1:d=0;lo\x1b\\\x1b]99;i=1:p=body:e=1;d29ybGQ=\x1b\\",
            vec![notify("Hello", "world")],
        ),
        ("\x1b]52;c;aGVsbG8=\x07\x1b]133;A\x07", vec![]),
    ];
    for (output, events) in cases {
        assert_eq!(screen_after(size(80, 24), output.as_bytes()).take_events(), events, "{output:?}");
    }
}

#[test]
fn r30_the_screen_renders_as_text_ansi_and_json() {
    let mut screen = screen_after(size(20, 4), b"one\r\n\x1b[31mtwo\x1b[m  \r\n");
    assert_eq!(screen.text(0), "one\ntwo\n");
    assert_eq!(screen.ansi(0), b"one\n\x1b[31mtwo\x1b[m\n");
    let json: serde_json::Value = serde_json::from_str(&screen.json(0)).unwrap();
    assert_eq!(json["lines"][1]["spans"][0], serde_json::json!({"col": 0, "text": "two", "fg": 1}));
}

fn urls(screen: &mut Screen) -> Vec<(String, bool)> {
    let events = screen.take_events().into_iter();
    events
        .filter_map(|event| if let ScreenEvent::Url { url, open } = event { Some((url, open)) } else { None })
        .collect()
}

#[test]
fn r27_urls_are_found_across_wraps_and_styling() {
    let mut screen = screen_after(size(20, 5), b"see https://example.com/a/long/path?with=query, please\r\n");
    assert_eq!(urls(&mut screen), [("https://example.com/a/long/path?with=query".into(), false)]);
    screen.advance(b"again: HTTPS://Example.com:443/a/long/path?with=query\r\n");
    assert_eq!(urls(&mut screen), [], "a URL is reported once");
    screen.advance(b"\x1b[1mhttps://\x1b[32mgithub.com\x1b[0m/login/\x1b[4mdevice\x1b[m and on\r\n");
    assert_eq!(urls(&mut screen), [("https://github.com/login/device".into(), true)]);
    screen.advance(b"\x1b]8;;https://linked.example/x\x1b\\text\x1b]8;;\x1b\\\r\n");
    assert_eq!(urls(&mut screen), [("https://linked.example/x".into(), false)]);
    // The program itself wraps at the last column.
    screen.advance(b"\r\nhttps://h.example/aa\r\nb?code=1\r\nThe end\r\n");
    assert_eq!(urls(&mut screen), [("https://h.example/aab?code=1".into(), false)]);
    screen.advance(b"\r\nhttps://h.example/zz\r\nThe end\r\n");
    assert_eq!(urls(&mut screen), [("https://h.example/zz".into(), false)]);
}

#[test]
fn r27_urls_that_arrive_in_pieces_are_reported_whole() {
    let text = b"Open https://claude.ai/oauth/authorize?code=true&client_id=x in a browser\r\n";
    let mut screen = Screen::new(size(30, 5), 100);
    for byte in text {
        screen.advance(&[*byte]);
    }
    let expected = [("https://claude.ai/oauth/authorize?code=true&client_id=x".to_owned(), true)];
    assert_eq!(urls(&mut screen), expected);
    // Far more output than the screen has rows, at once.
    let mut screen = Screen::new(size(30, 5), 2000);
    let mut flood: Vec<u8> = (0..400).flat_map(|n| format!("http://n.example/{n}\r\n").into_bytes()).collect();
    flood.extend_from_slice(text);
    screen.advance(&flood);
    assert_eq!(urls(&mut screen).len(), 256, "events are bounded");
    screen.advance(&flood);
    assert_eq!(urls(&mut screen).len(), 145, "the rest is reported when it is printed again");
}
