//! Finds the files that a user means by a few characters of their paths.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use bowline_proto::files::{FileEntry, FileList};
use tokio_util::sync::CancellationToken;

use super::walk::{Tree, TreeFile};

/// The points of each character that is found.
const FOUND: i32 = 16;
/// More points where the character before it is the one before it in the query. With those that a gap takes away, a long
/// run is better than the beginnings of several words, and a short one is not.
const IN_RUN: i32 = 8;
/// More points at the beginning of a name in the path, and at that of a word in a name.
const AT_NAME: i32 = 10;
const AT_WORD: i32 = 8;
/// More points in the last name of the path.
const IN_LAST_NAME: i32 = 4;
/// Points that a gap takes away: for its first character, and for each other one.
const GAP: i32 = 3;
const GAP_MORE: i32 = 1;
/// Where a character cannot be found. Adding points to it does not overflow.
const NOWHERE: i32 = i32::MIN / 2;
/// The paths that are compared until the time is checked again.
const PER_CHECK: usize = 256;

/// What a path must contain: these characters, in this order, whatever their case.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    chars: Vec<char>,
}

impl Pattern {
    /// It is only compared with paths: `..` and `/` at its beginning lead nowhere.
    pub(super) fn new(query: &str) -> Pattern {
        let text = query.trim_start_matches("./").to_owned();
        Pattern { chars: text.chars().map(lower).collect(), text }
    }

    /// Whether a part of it can only be the beginning of a hidden name.
    pub(super) fn names_hidden(&self) -> bool {
        self.text.split('/').any(|name| name.starts_with('.') && name != "..")
    }

    /// How well a path matches; `None` if it does not.
    fn score(&self, path: &str, row: &mut Row) -> Option<i32> {
        let mut rest = path.chars().map(lower);
        if !self.chars.iter().all(|wanted| rest.any(|found| found == *wanted)) {
            return None;
        }
        row.fill(path);
        for (n, wanted) in self.chars.iter().enumerate() {
            row.find(*wanted, n == 0);
        }
        row.best.iter().max().copied()
    }
}

/// The files that match best, at most `limit`. An empty pattern lists the top of the tree by name.
pub(super) fn best(
    tree: &Tree,
    pattern: &Pattern,
    limit: usize,
    within: Duration,
    stop: &CancellationToken,
) -> FileList {
    let (mut found, mut truncated) = (Vec::new(), tree.truncated);
    let mut row = Row::default();
    let until = Instant::now() + within;
    for (n, file) in tree.files.iter().enumerate() {
        if n % PER_CHECK == 0 && (stop.is_cancelled() || Instant::now() >= until) {
            truncated = true;
            break;
        }
        if pattern.chars.is_empty() {
            if !file.path.contains('/') {
                found.push((Reverse(0), 0, file.path.to_lowercase(), file));
            }
        } else if let Some(score) = pattern.score(&file.path, &mut row) {
            found.push((Reverse(score), file.path.len(), String::new(), file));
        }
    }
    found.sort_unstable_by(|a, b| (&a.0, a.1, &a.2, &a.3.path).cmp(&(&b.0, b.1, &b.2, &b.3.path)));
    truncated |= found.len() > limit;
    let entry = |TreeFile { path, kind }: &TreeFile| FileEntry { path: path.to_string(), kind: *kind };
    FileList { files: found.into_iter().take(limit).map(|(.., file)| entry(file)).collect(), truncated }
}

/// A path, and how well the characters of a pattern up to one of them match where that one is found.
#[derive(Debug, Default)]
struct Row {
    chars: Vec<char>,
    /// The points of each position.
    points: Vec<i32>,
    /// The points of the best match whose last character is here.
    best: Vec<i32>,
    /// The same, up to the character before.
    before: Vec<i32>,
}

impl Row {
    fn fill(&mut self, path: &str) {
        self.chars.clear();
        self.points.clear();
        let last_name = path.rfind('/').map_or(0, |slash| slash + 1);
        let mut before = '/';
        for (at, char) in path.char_indices() {
            let points = match before {
                '/' => AT_NAME,
                _ if begins_word(before, char) => AT_WORD,
                _ => 0,
            };
            self.chars.push(lower(char));
            self.points.push(points + if at >= last_name { IN_LAST_NAME } else { 0 });
            before = char;
        }
        self.best.clear();
        self.before.clear();
        self.best.resize(self.chars.len(), NOWHERE);
        self.before.resize(self.chars.len(), NOWHERE);
    }

    /// Finds the next character of the pattern at each position.
    fn find(&mut self, wanted: char, is_first: bool) {
        std::mem::swap(&mut self.best, &mut self.before);
        let mut after_gap = NOWHERE;
        for at in 0..self.chars.len() {
            let mut ahead = if is_first { 0 } else { after_gap };
            if at > 0 && !is_first {
                ahead = ahead.max(self.before[at - 1] + IN_RUN);
                after_gap = (after_gap - GAP_MORE).max(self.before[at - 1] - GAP).max(NOWHERE);
            }
            let is_found = self.chars[at] == wanted && ahead > NOWHERE / 2;
            self.best[at] = if is_found { ahead + FOUND + self.points[at] } else { NOWHERE };
        }
    }
}

/// Whether a word begins between these two characters.
fn begins_word(before: char, char: char) -> bool {
    let is_inside = |char: char| char.is_alphanumeric();
    is_inside(char)
        && (!is_inside(before)
            || (before.is_lowercase() && char.is_uppercase())
            || (!before.is_numeric() && char.is_numeric()))
}

/// The character in lower case, as one character.
fn lower(char: char) -> char {
    if char.is_ascii() { char.to_ascii_lowercase() } else { char.to_lowercase().next().unwrap_or(char) }
}

#[cfg(test)]
mod tests;
