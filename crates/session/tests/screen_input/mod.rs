//! Seeded random terminal output and recordings, for the tests of the screen.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use bowline_proto::size::Size;

/// A small random number generator (SplitMix64): the same seed gives the same output everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

#[derive(Clone)]
pub enum Op {
    Output(Vec<u8>),
    Resize(Size),
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Op::Output(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Op::Resize(size) => write!(f, "{}x{}", size.cols(), size.rows()),
        }
    }
}

/// A size small enough that everything wraps, scrolls and overlaps.
pub fn small_size(rng: &mut Rng) -> Size {
    Size::new(2 + rng.below(18) as u32, 1 + rng.below(8) as u32).unwrap()
}

/// A piece of output: text, control characters or one escape sequence, sometimes cut short.
pub fn output(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = match rng.below(20) {
        0..=4 => text(rng),
        5 => rng
            .pick::<[u8]>(&[b"\r\n", b"\n", b"\r", b"\t", b"\x08", b"\x0b", b"\x0c", b"\x07", b"\x0e", b"\x0f"])
            .to_vec(),
        6..=8 => sgr(rng),
        9..=13 => csi(rng),
        14..=15 => modes(rng),
        16 => escape(rng),
        17..=18 => string(rng),
        _ => (0..1 + rng.below(6)).map(|_| rng.next() as u8).collect(),
    };
    if rng.below(40) == 0 {
        bytes.truncate(rng.below(bytes.len() + 1));
    }
    bytes
}

fn text(rng: &mut Rng) -> Vec<u8> {
    let words = [
        "a",
        "word ",
        "some longer text ",
        "\u{4e2d}",
        "宽字符",
        "e\u{301}",
        "\u{1f468}\u{200d}\u{1f469}",
        "─│┌",
        "\u{1f600}",
        "한국어",
        "\u{fe0f}",
        "\u{300}\u{301}\u{302}",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "   ",
        "q_x~",
        "\u{3000}",
        "é",
        "\u{ad}",
        "\u{200b}",
        "https://example.com/a?b=c ",
    ];
    (0..1 + rng.below(4)).flat_map(|_| rng.pick(&words).bytes()).collect()
}

fn number(rng: &mut Rng) -> String {
    match rng.below(12) {
        0 => String::new(),
        1 => "0".into(),
        2 => "65535".into(),
        3 => rng.below(2000).to_string(),
        _ => (1 + rng.below(12)).to_string(),
    }
}

fn sgr(rng: &mut Rng) -> Vec<u8> {
    let codes = [
        "0",
        "",
        "1",
        "2",
        "3",
        "4",
        "4:3",
        "4:2",
        "4:5",
        "5",
        "7",
        "8",
        "9",
        "21",
        "22",
        "24",
        "27",
        "31",
        "42",
        "91",
        "103",
        "38;5;200",
        "48;5;17",
        "38;2;1;2;3",
        "48;2;9;8;7",
        "58:2::4:5:6",
        "58;5;9",
        "59",
        "53",
        "55",
        "39",
        "49",
        "38:5:3",
    ];
    let list: Vec<_> = (0..1 + rng.below(3)).map(|_| rng.pick(&codes)).collect();
    format!("\x1b[{}m", list.join(";")).into_bytes()
}

fn csi(rng: &mut Rng) -> Vec<u8> {
    let finals = "@ABCDEFGHIJKLMPSTXZ`abdefghJKrsu";
    let last = finals.as_bytes()[rng.below(finals.len())] as char;
    let (a, b) = (number(rng), number(rng));
    match rng.below(3) {
        0 => format!("\x1b[{last}"),
        1 => format!("\x1b[{a}{last}"),
        _ => format!("\x1b[{a};{b}{last}"),
    }
    .into_bytes()
}

fn modes(rng: &mut Rng) -> Vec<u8> {
    let modes = [
        "4", "20", "?1", "?3", "?5", "?6", "?7", "?9", "?12", "?25", "?45", "?47", "?66", "?1000", "?1002", "?1003",
        "?1004", "?1005", "?1006", "?1007", "?1015", "?1016", "?1047", "?1048", "?1049", "?1049", "?2004", "?2026",
        "?2031", "?7;6",
    ];
    format!("\x1b[{}{}", rng.pick(&modes), rng.pick(&["h", "l"])).into_bytes()
}

fn escape(rng: &mut Rng) -> Vec<u8> {
    let all = [
        "\x1b7",
        "\x1b8",
        "\x1b=",
        "\x1b>",
        "\x1bD",
        "\x1bE",
        "\x1bH",
        "\x1bM",
        "\x1bn",
        "\x1bo",
        "\x1b(0",
        "\x1b)0",
        "\x1b*0",
        "\x1b+0",
        "\x1b(B",
        "\x1b)B",
        "\x1b#8",
        "\x1b[!p",
        "\x1b[3 q",
        "\x1b[6 q",
        "\x1b[ q",
        "\x1b[>4;2m",
        "\x1b[22;0t",
        "\x1b[23;0t",
        "\x1b[22;2t",
        "\x1b[>1u",
        "\x1b[c",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[?2026$p",
        "\x1b[18t",
        "\x1bc",
        "\x1b[?5W",
    ];
    rng.pick(&all).bytes().collect()
}

fn string(rng: &mut Rng) -> Vec<u8> {
    let starts = [
        "\x1b]0;a title",
        "\x1b]2;\u{e9}\u{1f600};x",
        "\x1b]8;;http://a.b/c",
        "\x1b]8;id=x;http://d.e/f;g",
        "\x1b]8;;",
        "\x1b]4;1;rgb:ff/00/80",
        "\x1b]4;300;#123456;2;#abc",
        "\x1b]104",
        "\x1b]104;1",
        "\x1b]10;#102030",
        "\x1b]11;rgb:1/2/3;#fff",
        "\x1b]110",
        "\x1b]112",
        "\x1b]4;1;?",
        "\x1b]7;file:///tmp/a%20b",
        "\x1b]9;hi",
        "\x1b]777;notify;t;b",
        "\x1b]52;c;aGk=",
        "\x1b]133;A",
        "\x1b]1337;File=inline=1:AAAA",
        "\x1bP$qm",
        "\x1bP+q544e;436f",
        "\x1bPq#0;2;0;0;0~-",
        "\x1b_Gf=24;AAAA",
        "\x1b^pm",
        "\x1bXsos",
    ];
    let ends = ["\x07", "\x1b\\", "\x1b\\", "\x18", ""];
    format!("{}{}", rng.pick(&starts), rng.pick(&ends)).into_bytes()
}

/// Recorded output of real programs at 80 x 24, by name.
pub fn recordings() -> Vec<(String, Vec<u8>)> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings");
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rec"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    all.sort();
    assert!(all.len() >= 10, "recordings are missing in fixtures/recordings");
    all
}
