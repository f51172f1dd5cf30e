//! The id of an upload: the name of its file, made of a digest and of what its name may keep.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::MediaType;

/// The longest id in bytes.
const MAX_ID: usize = 128;
/// The digits of the digest in an id.
const DIGITS: usize = 16;
/// The ending of a file that is being written; see [`crate::files`].
pub(super) const UNFINISHED: &str = ".new";
/// The longest name in bytes.
const MAX_NAME: usize = 255;

/// Endings of texts that no desktop runs or renders when such a file is opened. Another text gets `.txt`.
const TEXT_ENDINGS: [&str; 44] = [
    "adoc", "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "diff", "ex", "go", "h", "hpp", "hs", "ini", "java",
    "json", "jsonl", "jsx", "kt", "less", "lock", "log", "md", "ndjson", "nix", "patch", "proto", "rs", "rst", "scala",
    "scss", "sql", "svelte", "swift", "tex", "toml", "ts", "tsv", "tsx", "txt", "yaml", "yml",
];

/// The id of an upload: 16 hexadecimal digits, `-`, and a name of `[A-Za-z0-9._-]`; at most 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UploadId(String);

/// The name or id is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("the name of an upload must have 1 to {MAX_NAME} bytes, without / and control characters")]
    Name,
    #[error("not the id of an upload")]
    Id,
}

/// Checks the name of a file to upload.
pub fn check_name(name: &str) -> Result<(), BadName> {
    match (1..=MAX_NAME).contains(&name.len()) && !name.contains(|c: char| c == '/' || c.is_control()) {
        true => Ok(()),
        false => Err(BadName::Name),
    }
}

impl UploadId {
    /// The id of this content under this name. The same again has the same id.
    pub(super) fn new(name: &str, media_type: MediaType, content: &[u8]) -> Result<UploadId, BadName> {
        check_name(name)?;
        let digest = Sha256::new().chain_update(content).chain_update([0]).chain_update(name).finalize();
        let mut id: String = digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
        id.push('-');
        let (stem, ending) = plain_name(name, media_type);
        let room = MAX_ID - id.len() - 1 - ending.len();
        id.extend(stem.chars().take(room));
        id.push('.');
        id.push_str(&ending);
        Ok(UploadId(id))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part that was made from the name.
    pub fn name(&self) -> &str {
        self.0.get(DIGITS + 1..).unwrap_or_default()
    }
}

impl FromStr for UploadId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<UploadId, BadName> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.split_once('-') {
            Some((digest, name))
                if text.len() <= MAX_ID
                    && digest.len() == DIGITS
                    && digest.bytes().all(is_digit)
                    && !name.is_empty()
                    && name.chars().all(is_plain)
                    && !name.ends_with(UNFINISHED) =>
            {
                Ok(UploadId(text.to_owned()))
            }
            _ => Err(BadName::Id),
        }
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// What is kept of a name, and an ending that agrees with the type: people, agents and desktops go by it.
fn plain_name(name: &str, media_type: MediaType) -> (String, String) {
    let own: &[&str] = match media_type {
        MediaType::Png => &["png"],
        MediaType::Jpeg => &["jpg", "jpeg"],
        MediaType::Gif => &["gif"],
        MediaType::Webp => &["webp"],
        MediaType::Pdf => &["pdf"],
        MediaType::Text => &TEXT_ENDINGS,
    };
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if own.contains(&ending.to_ascii_lowercase().as_str()) => {
            (stem, ending.to_ascii_lowercase())
        }
        _ if media_type == MediaType::Text => (name, "txt".to_owned()),
        _ => (name, own.first().copied().unwrap_or_default().to_owned()),
    };
    let mut plain = String::new();
    for c in stem.chars() {
        // A run of other characters becomes one hyphen.
        match is_plain(c) {
            true => plain.push(c),
            false if plain.ends_with('-') => {}
            false => plain.push('-'),
        }
    }
    let plain = plain.trim_matches(['.', '-']);
    (if plain.is_empty() { "file" } else { plain }.to_owned(), ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn name_of(name: &str, media_type: MediaType) -> String {
        let id = UploadId::new(name, media_type, PNG).unwrap();
        assert_eq!(id.as_str().parse(), Ok(id.clone()), "{name:?}");
        assert!(id.as_str().len() <= 128 && id.as_str().chars().all(is_plain), "{id}");
        id.name().to_owned()
    }

    #[test]
    fn r52_a_name_keeps_what_is_harmless_and_its_ending_agrees_with_the_type() {
        for (name, media_type, expected) in [
            ("shot.png", MediaType::Png, "shot.png"),
            ("SHOT.PNG", MediaType::Png, "SHOT.png"),
            ("photo.jpeg", MediaType::Jpeg, "photo.jpeg"),
            ("photo.png", MediaType::Jpeg, "photo.png.jpg"),
            ("run.exe", MediaType::Gif, "run.exe.gif"),
            ("noending", MediaType::Webp, "noending.webp"),
            ("a report v2.pdf", MediaType::Pdf, "a-report-v2.pdf"),
            ("main.rs", MediaType::Text, "main.rs"),
            ("page.html", MediaType::Text, "page.html.txt"),
            ("run.sh", MediaType::Text, "run.sh.txt"),
            ("x.new", MediaType::Text, "x.new.txt"),
            ("Makefile", MediaType::Text, "Makefile.txt"),
            ("..", MediaType::Text, "file.txt"),
            (".", MediaType::Png, "file.png"),
            (".env", MediaType::Text, "env.txt"),
            (".png", MediaType::Png, "file.png"),
            ("...hidden.txt", MediaType::Text, "hidden.txt"),
            ("-rf.txt", MediaType::Text, "rf.txt"),
            ("a\\b:c*?.txt", MediaType::Text, "a-b-c.txt"),
            ("..\\..\\x.txt", MediaType::Text, "x.txt"),
            ("Übersicht.txt", MediaType::Text, "bersicht.txt"),
            ("\u{1f600}.png", MediaType::Png, "file.png"),
            ("\u{202e}gnp.exe", MediaType::Text, "gnp.exe.txt"),
        ] {
            assert_eq!(name_of(name, media_type), expected, "{name:?}");
        }
        let long = format!("{}.toml", "n".repeat(250));
        assert_eq!(name_of(&long, MediaType::Text).len(), 128 - DIGITS - 1);
        assert!(name_of(&long, MediaType::Text).ends_with("n.toml"));
    }

    #[test]
    fn r52_a_bad_name_is_refused() {
        for name in ["", "a/b", "/", "../x", "a\nb", "a\0", "\u{85}", &"n".repeat(256)] {
            assert_eq!(UploadId::new(name, MediaType::Png, PNG), Err(BadName::Name), "{name:?}");
        }
        assert!(UploadId::new(&"n".repeat(255), MediaType::Png, PNG).is_ok());
    }

    #[test]
    fn r52_only_the_form_of_an_id_is_an_id() {
        let digest = "0123456789abcdef";
        assert!(format!("{digest}-a.png").parse::<UploadId>().is_ok());
        let long = format!("{digest}-{}", "a".repeat(112));
        for bad in
            ["", "a.png", digest, &format!("{digest}-"), &format!("{digest}-a/b"), &format!("{digest}-a b"), &long]
        {
            assert_eq!(bad.parse::<UploadId>(), Err(BadName::Id), "{bad:?}");
        }
        for bad in ["0123456789ABCDEF-a", "0123456789abcde-a", "../../../../../a-b", ".123456789abcdef-a"] {
            assert_eq!(bad.parse::<UploadId>(), Err(BadName::Id), "{bad:?}");
        }
        assert!(format!("{digest}-a.png.new").parse::<UploadId>().is_err(), "a file that is being written");
    }

    #[test]
    fn an_id_depends_on_the_name_and_on_the_content() {
        let id = |name, content| UploadId::new(name, MediaType::Text, content).unwrap();
        assert_eq!(id("a.txt", b"x"), id("a.txt", b"x"));
        assert_ne!(id("a.txt", b"x"), id("a.txt", b"y"));
        assert_ne!(id("\u{e4}.txt", b"x"), id("\u{f6}.txt", b"x"), "also where the plain names are the same");
    }
}
