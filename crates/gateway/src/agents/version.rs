//! Versions as programs print them, and the oldest Node that a package runs with.

use std::fmt;

/// The longest version, in bytes. A longer word is not one.
const MAX_VERSION: usize = 64;

/// The first word of a text that looks like a version: numbers and dots, perhaps with a suffix such as `-beta.1`.
pub(super) fn find(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    let words = text.split(|c| !is_part(c)).map(|word| word.strip_prefix('v').unwrap_or(word));
    words.map(|word| word.trim_end_matches(['.', '-', '+', '_'])).find(|word| is_version(word))
}

fn is_version(word: &str) -> bool {
    let after_digits = |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &word[word.len() - after_digits(word)..];
    let second = rest.strip_prefix('.').unwrap_or_default();
    word.len() <= MAX_VERSION && rest.len() < word.len() && after_digits(second) < second.len()
}

/// The first three numbers of a version. Those that are missing are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release([u32; 3]);

impl Release {
    /// Reads a version such as `v20.19.0`, `22` or `18.x`.
    pub(super) fn parse(text: &str) -> Option<Release> {
        let text = text.trim().trim_start_matches('v');
        let mut numbers = [0; 3];
        for (at, part) in text.split('.').take(3).enumerate() {
            let digits: &str = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            match digits.parse() {
                Ok(number) => numbers[at] = number,
                Err(_) if at == 0 => return None,
                Err(_) => break,
            }
        }
        Some(Release(numbers))
    }

    /// The oldest release that `engines.node` of a package allows, such as `>=22.0.0` or `^20.17.0 || >=22.9.0`. `None`
    /// if it has no lower bound, or one that is not understood.
    pub(super) fn oldest(range: &str) -> Option<Release> {
        let lower_bound = |alternative: &str| {
            let first = alternative.trim();
            let version = first.trim_start_matches(['>', '=', '^', '~']);
            // Above a version is not from it on, but nearly.
            Release::parse(version.split_whitespace().next()?)
        };
        let bounds: Option<Vec<Release>> = range.split("||").map(lower_bound).collect();
        bounds?.into_iter().min()
    }
}

/// Without zeros at the end.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [major, 0, 0] => write!(f, "{major}"),
            [major, minor, 0] => write!(f, "{major}.{minor}"),
            [major, minor, patch] => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_word_that_looks_like_one() {
        let long = format!("1.{}", "2".repeat(70));
        for (text, version) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("0.61.0\n", Some("0.61.0")),
            ("v22.23.3\n", Some("22.23.3")),
            ("2025.09.18-7ae6800\n", Some("2025.09.18-7ae6800")),
            ("tool version 1.0.0-beta.2+build_5.\n", Some("1.0.0-beta.2+build_5")),
            ("Update 3 of 4: \u{1b}[1m9.8\u{1b}[0m\n", None),
            ("\u{1b}]0;title\u{7}1.2\u{0}3.4", Some("1.2")),
            ("one 1 two 2. .5 v 1.x", None),
            ("x1.2 (3.4)", Some("3.4")),
            (long.as_str(), None),
            ("\u{fffd}\u{fffd}1.2\u{fffd}", Some("1.2")),
            ("", None),
        ] {
            assert_eq!(find(text), version, "{text:?}");
        }
    }

    #[test]
    fn the_oldest_release_of_a_range_is_its_lower_bound() {
        for (range, oldest) in [
            (">=22.0.0", Some("22")),
            (">=20", Some("20")),
            (">= 18.17", Some("18.17")),
            ("^20.17.0 || >=22.9.1", Some("20.17")),
            (">=18 <23", Some("18")),
            ("v16.x", Some("16")),
            ("*", None),
            ("<23", None),
            (">=20 || *", None),
            ("", None),
            (">=99999999999", None),
        ] {
            assert_eq!(Release::oldest(range).map(|release| release.to_string()).as_deref(), oldest, "{range:?}");
        }
        assert!(Release::parse("v20.20.2") < Release::parse("22"));
        assert!(Release::parse("22.10.0") > Release::parse("22.9.1"));
    }
}
