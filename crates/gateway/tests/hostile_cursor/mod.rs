//! Parses hostile cursors of event streams. Used by the fuzz target `sse_cursor` and by the seeded test `cursor_fuzz.rs`.

use bowline_gateway::sse_cursor;

/// The most sessions that are watched over SSE.
const MAX_WATCHED: usize = 16;
/// Parts of cursors, as they are and damaged.
const PARTS: [&str; 24] = [
    "aaaaaaaaaaaa",
    "k3v9x0q2m7aa",
    "build",
    "-x",
    "A",
    ":9f3c61d2:7",
    "@9f3c61d2:7",
    ":00000000:0",
    "@ffffffff:18446744073709551615",
    ":9f3c61d2:18446744073709551616",
    ":9f3c61d2:007",
    ":9f3c61d2:+1",
    ":9F3C61D2:1",
    ":9f3c61d2",
    ":",
    "@",
    ";",
    ",",
    "",
    "%2C",
    "%",
    "\u{e9}",
    "zzzzzzzzzzzz;",
    "zzzzzzzzzzzz,",
];

/// Builds a `watch` parameter and a `Last-Event-ID` from the data. What the parser accepts has a bounded length, and the
/// `id:` of the stream means the same when it comes back.
pub fn parse(data: &[u8]) {
    let (query, last_event) = data.split_at(data.len() / 2);
    check(&format!("watch={}", String::from_utf8_lossy(query)), Some(last_event));
    check("", Some(data));
    check(&format!("watch={}", text(query)), None);
    check("", Some(text(data).as_bytes()));
    check(&format!("watch={}&client={}", text(last_event), text(query)), Some(query));
}

fn text(data: &[u8]) -> String {
    data.iter().map(|byte| PARTS[usize::from(*byte) % PARTS.len()]).collect()
}

fn check(query: &str, last_event: Option<&[u8]>) {
    let Some((watched, id)) = sse_cursor(query, last_event) else { return };
    assert!(watched <= MAX_WATCHED);
    let ids = id.split(';').filter(|item| !item.is_empty()).count();
    assert!(ids <= watched);
    // 12 of the session, 8 of the epoch, 20 of the number, and what separates them.
    assert!(id.len() <= MAX_WATCHED * 43);
    assert!(!id.contains(['\n', '\r', '\0', ' ']), "it is one line of an event");
    assert_eq!(sse_cursor("", Some(id.as_bytes())), Some((ids, id)));
}
