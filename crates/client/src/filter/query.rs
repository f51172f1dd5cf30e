//! Decides which escape sequences are removed: pure functions over one whole sequence.
//!
//! The lists follow xterm's control sequences, DEC's manuals, and the protocols of kitty and iTerm2. Where a sequence
//! can be a query or something else, only the query is removed; a family in which every member is answered (such as
//! kitty's file transfer) is removed whole. So are the modes in which the terminal types by itself, or prints on paper,
//! and what its keys type.

/// What the filter does with a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Pass,
    Strip,
    /// Only a part is a query: these bytes pass instead.
    Replace(Vec<u8>),
}

/// A parsed control sequence, without embedded C0 controls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Csi {
    /// `<`, `=`, `>` or `?` in front of the parameters, or 0.
    pub(crate) prefix: u8,
    /// Digits, `;` and `:`.
    pub(crate) params: Vec<u8>,
    /// The last intermediate byte, or 0.
    pub(crate) intermediate: u8,
    pub(crate) action: u8,
}

impl Csi {
    /// Parses `body`: everything after the introducer, including the final byte.
    pub(crate) fn parse(body: &[u8]) -> Csi {
        let mut csi = Csi::default();
        for &byte in body {
            match byte {
                b'<'..=b'?' if csi.params.is_empty() && csi.prefix == 0 => csi.prefix = byte,
                0x30..=0x3f => csi.params.push(byte),
                0x20..=0x2f => csi.intermediate = byte,
                0x40..=0x7e => csi.action = byte,
                _ => {}
            }
        }
        csi
    }

    /// The first 32 parameters as numbers. An empty one is 0; sub-parameters are left out.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.params.split(|b| *b == b';').take(32).map(|field| {
            let digits = field.split(|b| *b == b':').next().unwrap_or_default();
            digits
                .iter()
                .filter(|b| b.is_ascii_digit())
                .fold(0u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b - b'0')))
        })
    }

    /// The first parameter, or 0.
    pub(crate) fn first(&self) -> u32 {
        self.numbers().next().unwrap_or(0)
    }
}

/// Private modes that are never set: Tektronix mode, which has queries of its own, and in-band resize notifications, where
/// a terminal reports its size at once.
const REMOVED_MODES: [u32; 2] = [38, 2048];

pub(super) fn csi(csi: &Csi) -> Decision {
    let removed = match (csi.prefix, csi.intermediate, csi.action) {
        // Device attributes, primary to tertiary.
        (0 | b'>' | b'=', 0, b'c') => true,
        // Device status and cursor position, with their private forms. (`CSI > n` disables key modifiers.)
        (0 | b'?', 0, b'n') => true,
        // Terminal parameters.
        (0, 0, b'x') => true,
        // Modes.
        (0 | b'?', b'$', b'p') => true,
        // Secure reset with a confirmation.
        (0, b'+', b'p') => true,
        // Presentation state, checksum of a rectangle, terminal state, preferred charset, displayed extent.
        (0, b'$', b'w' | b'u') | (_, b'*', b'y') | (0, b'&', b'u') | (0, b'"', b'v') => true,
        // Locator position.
        (0, b'\'', b'|') => true,
        // Version; kitty's extra cursors.
        (b'>', _, b'q') => true,
        // Window state, position, sizes and titles. Other window operations have no answer.
        (0, 0, b't') => matches!(csi.first(), 11 | 13..=16 | 18..=21),
        // Kitty keyboard flags, key modifiers, graphics attributes.
        (b'?', 0, b'u' | b'm' | b'S') => true,
        // Palette stack, title stack, rendition of a rectangle.
        (_, b'#', b'R' | b'S' | b'|') => true,
        // Printing: the screen, or all further output.
        (0 | b'?', 0, b'i') => true,
        (b'?', 0, b'h') if csi.numbers().any(|mode| REMOVED_MODES.contains(&mode)) => return without_removed(csi),
        _ => false,
    };
    if removed { Decision::Strip } else { Decision::Pass }
}

/// The part of a control sequence that affects how the terminal encodes keys, mouse and pastes, if it has one.
pub(super) fn key_part(csi: &Csi) -> Option<Vec<u8>> {
    const MODES: [u32; 13] = [1, 9, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1036, 2004];
    let text = |middle: &str| format!("\x1b[{}{middle}{}", char::from(csi.prefix), char::from(csi.action)).into_bytes();
    match (csi.prefix, csi.intermediate, csi.action) {
        (b'?', 0, b'h' | b'l') => {
            let modes: Vec<String> =
                csi.numbers().filter(|mode| MODES.contains(mode)).map(|mode| mode.to_string()).collect();
            (!modes.is_empty()).then(|| text(&modes.join(";")))
        }
        (b'>' | b'<' | b'=', 0, b'u') | (b'>', 0, b'm' | b'n') => Some(text(&String::from_utf8_lossy(&csi.params))),
        _ => None,
    }
}

/// The same mode change without [`REMOVED_MODES`].
fn without_removed(csi: &Csi) -> Decision {
    let kept = csi.numbers().filter(|mode| !REMOVED_MODES.contains(mode));
    let rest: Vec<String> = kept.map(|mode| mode.to_string()).collect();
    if rest.is_empty() { Decision::Strip } else { Decision::Replace(format!("\x1b[?{}h", rest.join(";")).into_bytes()) }
}

/// Decides about an operating system command; `text` is without introducer and terminator.
pub(super) fn osc(text: &[u8]) -> Decision {
    let (code, rest) = split_code(text);
    let removed = match code {
        // Titles, directories, links, notifications, prompt marks: free text, where `?` has no meaning.
        Some(0 | 1 | 2 | 7 | 8 | 9 | 66 | 133 | 633 | 777) => false,
        // Allowed and disallowed features; kitty's file transfer and clipboard, where everything is answered.
        Some(60 | 61 | 5113 | 5522) => true,
        // Desktop notifications: the metadata may query support, list live notifications, or request a report.
        Some(99) => notification_answers(rest),
        // iTerm2's copying of everything up to the end of a session has no bound.
        Some(1337) => {
            let words = [&b"Report"[..], b"Request", b"Capabilities", b"CopyToClipboard"];
            words.iter().any(|word| rest.starts_with(word))
        }
        _ => rest.split(|b| *b == b';').any(|field| field.starts_with(b"?") || field.ends_with(b"=?")),
    };
    if removed { Decision::Strip } else { Decision::Pass }
}

/// Whether an operating system command that is too long to be judged whole may pass as it arrives: it carries text or a
/// payload, and nothing after `start` can make it a query.
pub(super) fn long_osc_passes(start: &[u8]) -> bool {
    match split_code(start).0 {
        Some(0 | 1 | 2 | 7 | 8 | 9 | 66 | 133 | 633 | 777 | 1337) => {
            osc(start) == Decision::Pass && !is_clipboard(start)
        }
        _ => false,
    }
}

/// Whether an operating system command that starts like this writes to the clipboard: OSC 52, or iTerm2's own.
pub(super) fn is_clipboard(start: &[u8]) -> bool {
    match split_code(start) {
        (Some(52), _) => true,
        (Some(1337), rest) => rest.starts_with(b"Copy="),
        _ => false,
    }
}

/// The command's number, if it starts with one, and the rest after the `;`.
pub(crate) fn split_code(text: &[u8]) -> (Option<u32>, &[u8]) {
    let end = text.iter().position(|b| *b == b';').unwrap_or(text.len());
    let code = std::str::from_utf8(&text[..end]).ok().and_then(|digits| digits.parse().ok());
    (code, text.get(end + 1..).unwrap_or_default())
}

fn notification_answers(rest: &[u8]) -> bool {
    let metadata = rest.split(|b| *b == b';').next().unwrap_or_default();
    metadata.split(|b| *b == b':').any(|field| match field.strip_prefix(b"a=") {
        Some(actions) => actions.split(|b| *b == b',').any(|action| action == b"report"),
        None => matches!(field, b"p=?" | b"p=alive" | b"c=1"),
    })
}

/// Decides about a device control string by its header.
pub(super) fn dcs(header: &Csi) -> Decision {
    match (header.intermediate, header.action) {
        // Settings, terminfo and resource values; kitty's remote control starts with `@`.
        (b'$', b'q') | (b'+', b'q' | b'Q') | (0, b'@') => Decision::Strip,
        // Keys and macros that type what the program chose, and keys as in a terminfo entry that it names.
        (0, b'|') | (b'!', b'z') | (b'+', b'p') => Decision::Strip,
        // tmux's control mode (1000) and iTerm2's ssh integration (2000), where the terminal types commands by itself. With
        // 0 to 3, it is a drawing.
        (0, b'p') if header.prefix != 0 || header.numbers().any(|number| number > 3) => Decision::Strip,
        _ => Decision::Pass,
    }
}

/// Decides about a kitty graphics command by its control data (after the `G`, up to the `;`).
///
/// A terminal also answers a transmission that has an id, unless it has `q=2`.
pub(super) fn graphics(control: &[u8]) -> Decision {
    let mut quiet = false;
    for field in control.split(|b| *b == b',') {
        match field {
            b"a=q" => return Decision::Strip,
            _ if field.starts_with(b"q=") => quiet = field == b"q=2",
            _ => {}
        }
    }
    if quiet {
        return Decision::Pass;
    }
    let separator: &[u8] = if control.is_empty() { b"" } else { b"," };
    Decision::Replace([control, separator, b"q=2"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(body: &str) -> Decision {
        csi(&Csi::parse(body.as_bytes()))
    }

    #[test]
    fn r24_control_sequence_queries_are_stripped() {
        for query in [
            "c",
            "0c",
            ">c",
            ">0c",
            "=c",
            "5n",
            "6n",
            "?6n",
            "?996n",
            "x",
            "1x",
            "4$p",
            "?2026$p",
            "1$w",
            "1;1;1;1;1;1*y",
            "1$u",
            "&u",
            "\"v",
            "'|",
            ">q",
            ">0q",
            "11t",
            "14t",
            "14;2t",
            "18t",
            "21t",
            "?u",
            "?4m",
            "?1;1;0S",
            "#R",
            "#S",
            "1;1;2;2#|",
            "?2048h",
            "?38h",
            "5i",
            "?5i",
        ] {
            assert_eq!(decision(query), Decision::Strip, "CSI {query}");
        }
    }

    #[test]
    fn control_sequences_that_only_act_pass() {
        for plain in [
            "m",
            "1;31m",
            ">4;2m",
            ">4n",
            "H",
            "2J",
            "3J",
            "?25h",
            "?1049h",
            "?25c",
            "r",
            "1;24r",
            "s",
            "u",
            ">1u",
            "<u",
            "=1;1u",
            "22;0t",
            "23;0t",
            "8;24;80t",
            "2 q",
            "!p",
            "1\"q",
            "1;1;2;2$v",
            "88;1;1;2;2$x",
            "1$t",
            "2*x",
            "1S",
            "1T",
        ] {
            assert_eq!(decision(plain), Decision::Pass, "CSI {plain}");
        }
        assert_eq!(decision("?1049;2048;25h"), Decision::Replace(b"\x1b[?1049;25h".to_vec()));
        assert_eq!(decision("?2048l"), Decision::Pass);
    }

    #[test]
    fn strings_in_which_the_terminal_takes_over_are_stripped_and_drawings_pass() {
        let header = |text: &str| dcs(&Csi::parse(text.as_bytes()));
        for taken in
            ["1000p", "2000p", "01000p", ";1000p", "?1p", "4p", "$q", "+q", "+Q", "@", "0;1|", "|", "0;0!z", "+p"]
        {
            assert_eq!(header(taken), Decision::Strip, "DCS {taken}");
        }
        for plain in ["p", "0p", "3p", "q", "0;1q", "$r", "1$r", "t"] {
            assert_eq!(header(plain), Decision::Pass, "DCS {plain}");
        }
    }

    #[test]
    fn r24_string_queries_are_stripped() {
        for query in [
            "4;1;?",
            "4;1;rgb:0/0/0;2;?",
            "10;?",
            "11;?",
            "12;?",
            "52;c;?",
            "5;0;?",
            "21;foreground=?",
            "22;?__current__",
            "50;?",
            "60",
            "61;allowWindowOps",
            "99;i=1:p=?;",
            "99;i=1:a=report;x",
            "1337;ReportCellSize",
            "1337;Capabilities",
            "1337;CopyToClipboard=",
            "5522;type=read",
        ] {
            assert_eq!(osc(query.as_bytes()), Decision::Strip, "OSC {query}");
        }
        for plain in [
            "0;what?",
            "2;?",
            "8;;http://x/?y=?",
            "7;file://h/a?",
            "9;?",
            "52;c;aGk=",
            "4;1;#fff",
            "10;#fff",
            "104",
            "133;A",
            "99;i=1;ready?",
            "777;notify;a;?",
            "1337;File=inline=1:aGk=",
        ] {
            assert_eq!(osc(plain.as_bytes()), Decision::Pass, "OSC {plain}");
        }
        assert_eq!(graphics(b"a=q,i=1"), Decision::Strip);
        assert_eq!(graphics(b"a=T,q=2"), Decision::Pass);
        assert_eq!(graphics(b"a=T,i=1"), Decision::Replace(b"a=T,i=1,q=2".to_vec()));
    }
}
