//! Compares the screen with xterm.js, cell by cell: text, widths, colours, links, cursor and modes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

mod screen_input;

use std::path::{Path, PathBuf};
use std::process::Command;

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use screen_input::{Rng, output, recordings, small_size};
use serde_json::{Value, json};

const HISTORY: usize = 300;

/// A screen, and the output that xterm.js gets to show the same.
struct Case {
    name: String,
    screen: Screen,
    /// Earlier output, then the snapshot.
    parts: Vec<Vec<u8>>,
    /// With [`Scope::Screen`], xterm.js keeps the scrollback of earlier output, which is not compared.
    scope: Scope,
    /// xterm.js gets every byte instead of a snapshot. Wrapped rows may then differ: xterm.js marks the row
    /// after a wrap, our emulator the cell before it, so erasing has a different effect.
    live: bool,
}

#[test]
fn r22_xterm_js_shows_snapshots_as_the_screen_does() {
    let mut cases = Vec::new();
    for (name, bytes) in recordings() {
        for cut in 1..=12 {
            let cut = bytes.len() * cut / 12;
            let mut screen = Screen::new(Size::default(), HISTORY);
            screen.advance(&bytes[..cut]);
            cases.push(case(format!("{name} at {cut}"), screen, Scope::All, Vec::new()));
            let mut screen = Screen::new(Size::default(), HISTORY);
            screen.advance(&bytes[..cut]);
            let before = bytes[..cut / 2].to_vec();
            cases.push(case(format!("{name} at {cut} from {}", cut / 2), screen, Scope::Screen, before));
        }
    }
    let seeds = std::env::var("SCREEN_SEEDS").map_or(300, |n| n.parse::<u64>().unwrap());
    for seed in 0..seeds {
        let mut rng = Rng(seed);
        let size = small_size(&mut rng);
        let mut screen = Screen::new(size, HISTORY);
        (0..60).for_each(|_| screen.advance(&output(&mut rng)));
        // xterm.js 6.0.0 throws on `CSI 1 J` with the cursor in the last cell of the screen.
        let before: Vec<u8> =
            (0..20).map(|_| output(&mut rng)).filter(|bytes| !bytes.ends_with(b"J")).flatten().collect();
        let scope = if seed % 2 == 0 { Scope::All } else { Scope::Screen };
        cases.push(case(format!("seed {seed}"), screen, scope, before));
    }
    assert_same(cases);
}

/// A viewer that saw every byte and one that attached late must show the same, so both emulators must agree
/// on the output of real programs.
#[test]
fn r22_xterm_js_shows_live_output_as_the_screen_does() {
    let mut cases = Vec::new();
    for (name, bytes) in recordings() {
        for cut in 1..=12 {
            let cut = bytes.len() * cut / 12;
            // Do not cut inside a character: emulators differ in what they show for half of one.
            let cut = (cut..bytes.len()).find(|&at| bytes[at] & 0xc0 != 0x80).unwrap_or(bytes.len());
            let bytes = &bytes[..cut];
            let mut screen = Screen::new(Size::default(), HISTORY);
            screen.advance(bytes);
            screen.advance(b"\x18");
            // The second part is empty, so that xterm.js's replies to the program's queries are not compared.
            let parts = vec![[bytes, b"\x18"].concat(), Vec::new()];
            cases.push(Case {
                name: format!("{name} live to {}", bytes.len()),
                screen,
                parts,
                scope: Scope::All,
                live: true,
            });
        }
    }
    assert_same(cases);
}

fn assert_same(cases: Vec<Case>) {
    let shown = show_in_xterm(&cases);
    assert_eq!(shown.len(), cases.len());
    let failures: Vec<_> = cases
        .into_iter()
        .zip(shown)
        .filter_map(|(mut case, shown)| {
            let snapshot = case.parts[1].escape_ascii().to_string();
            compare(&mut case, &shown).err().map(|why| format!("{}: {why}\nsnapshot {snapshot}", case.name))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} cases differ, the first ones: {}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}

fn case(name: String, mut screen: Screen, scope: Scope, before: Vec<u8>) -> Case {
    // Cancel an unfinished sequence; the tests of live output cover those.
    screen.advance(b"\x18");
    let snapshot = screen.snapshot(scope, usize::MAX);
    Case { name, screen, parts: vec![before, snapshot], scope, live: false }
}

/// What xterm.js shows for every case.
fn show_in_xterm(cases: &[Case]) -> Vec<Value> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/xterm");
    install(&dir);
    // The test in `widths.rs` checks that this is the session's table.
    let widths = dir.join("../../packages/web/src/terminal/widths.json");
    let widths: Value = serde_json::from_str(&std::fs::read_to_string(widths).unwrap()).unwrap();
    let mut input = json!({ "widths": widths }).to_string();
    for case in cases {
        let size = case.screen.size();
        let parts: Vec<_> = case.parts.iter().map(|part| base64(part)).collect();
        input.push('\n');
        input.push_str(&json!({ "cols": size.cols(), "rows": size.rows(), "parts": parts }).to_string());
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), input).unwrap();
    let run = Command::new("node").arg("show.mjs").arg(file.path()).current_dir(&dir).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn install(dir: &PathBuf) {
    Command::new("node").arg("--version").output().expect("this test needs node (20 or later) on the PATH");
    if dir.join("node_modules/@xterm/headless").exists() {
        return;
    }
    let npm = Command::new("npm").args(["install", "--no-audit", "--no-fund"]).current_dir(dir).output();
    let npm = npm.expect("this test needs npm on the PATH, to install @xterm/headless");
    assert!(npm.status.success(), "npm install in {dir:?}: {}", String::from_utf8_lossy(&npm.stderr));
}

fn json_of(screen: &mut Screen, history: usize) -> Value {
    serde_json::from_str(&screen.json(history)).unwrap()
}

fn compare(case: &mut Case, shown: &Value) -> Result<(), String> {
    let history = if case.scope == Scope::All { usize::MAX } else { 0 };
    let size = case.screen.size();
    let ours = json_of(&mut case.screen, history);
    let alt = ours["alt"] == true;
    same("alternate screen", &shown["alt"], &ours["alt"])?;
    same_lines("shown", &shown["active"], &ours["lines"], size, case)?;
    let pending = ours["cursor"]["pending_wrap"] == true;
    let col = ours["cursor"]["col"].as_u64().unwrap() + u64::from(pending);
    same("cursor", &shown["cursor"], &json!({ "row": ours["cursor"]["row"], "col": col }))?;
    same("hidden cursor", &shown["hidden"], &json!(ours["cursor"]["visible"] == false))?;
    same("title", &shown["title"], &ours["title"])?;
    same("replies of xterm.js", &shown["said"], &json!(if ours["modes"]["focus"] == true { "\x1b[O" } else { "" }))
        .or_else(|_| same("replies of xterm.js", &shown["said"], &json!("")))?;
    same_modes(&shown["modes"], &ours["modes"])?;
    let dump = case.screen.dump();
    let line = |start: &str| dump.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    let region = format!("region ({}, {})", shown["region"][0], shown["region"][1]);
    if !line("size").contains(&region) {
        return Err(format!("{region}, ours {}", line("size")));
    }
    let tabs = format!("tabs {} ", shown["tabs"]).replace(',', ", ");
    if !line("tabs").starts_with(&tabs) {
        return Err(format!("{tabs}, ours {}", line("tabs")));
    }
    if alt {
        case.screen.advance(b"\x1b[?1049l");
        let ours = json_of(&mut case.screen, history);
        same_lines("main", &shown["normal"], &ours["lines"], size, case)?;
    }
    Ok(())
}

fn same(what: &str, shown: &Value, ours: &Value) -> Result<(), String> {
    if shown == ours { Ok(()) } else { Err(format!("{what}: xterm.js has {shown}, we have {ours}")) }
}

fn same_lines(what: &str, shown: &Value, ours: &Value, size: Size, case: &Case) -> Result<(), String> {
    let (shown, ours) = (shown.as_array().unwrap(), ours.as_array().unwrap());
    let rows = usize::from(size.rows());
    let shown = if case.scope == Scope::All { shown.as_slice() } else { &shown[shown.len() - rows..] };
    if shown.len() != ours.len() {
        return Err(format!("{what}: xterm.js has {} lines, we have {}", shown.len(), ours.len()));
    }
    for (row, (shown, ours)) in shown.iter().zip(ours).enumerate() {
        if !case.live {
            same(&format!("{what}, line {row}, wrapped"), &shown["wrapped"], &ours["wrapped"])?;
        }
        let spans: Vec<Value> = ours["spans"].as_array().unwrap().iter().map(without_underline_colour).collect();
        same(&format!("{what}, line {row}"), &shown["spans"], &json!(merged(spans)))?;
    }
    Ok(())
}

/// Removes what xterm.js does not report: the colour of an underline.
fn without_underline_colour(span: &Value) -> Value {
    let mut span = span.clone();
    span.as_object_mut().unwrap().remove("underline_colour");
    span
}

/// Merges adjacent spans with the same attributes, and removes default blanks at the end.
fn merged(spans: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let attributes = |span: &Value| {
        let mut map = span.as_object().unwrap().clone();
        map.remove("col");
        map.remove("text");
        map
    };
    for span in spans {
        match out.last_mut() {
            Some(last) if attributes(last) == attributes(&span) => {
                let text = format!("{}{}", last["text"].as_str().unwrap(), span["text"].as_str().unwrap());
                last["text"] = text.into();
            }
            _ => out.push(span),
        }
    }
    if let Some(last) = out.last_mut()
        && attributes(last).is_empty()
    {
        let text = last["text"].as_str().unwrap().trim_end_matches(' ').to_owned();
        if text.is_empty() {
            out.pop();
        } else {
            last["text"] = text.into();
        }
    }
    out
}

/// xterm.js does not support the UTF-8 and urxvt mouse encodings, and has other names for the rest.
fn same_modes(shown: &Value, ours: &Value) -> Result<(), String> {
    let mut ours = ours.clone();
    ours.as_object_mut().unwrap().remove("alternate_scroll");
    ours["mouse_coding"] = match ours["mouse_coding"].as_str().unwrap() {
        "sgr" => "SGR".into(),
        "sgr_pixels" => "SGR_PIXELS".into(),
        _ => "DEFAULT".into(),
    };
    same("modes", shown, &ours)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            out.push(DIGITS[(word >> (18 - 6 * at) & 63) as usize] as char);
        }
    }
    out.push_str(&"=".repeat((3 - bytes.len() % 3) % 3));
    out
}
