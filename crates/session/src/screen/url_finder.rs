//! Finds URLs in the cells, across wraps and styling, and reports each once.
//!
//! Checking every character would cost more than printing it. So the bytes are searched for `://` first,
//! and cells are read only if it was found.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;

use super::limits::{URL_MAX, URLS_MAX};
use super::state::State;
use super::url::Url;
use super::url_reader::{CellPosition, FoundUrl, read_url};

const MARK: &[u8] = b"://";

#[derive(Debug, Default)]
pub(super) struct UrlFinder {
    /// `://` was found in the bytes, and the cells have not been searched since.
    due: bool,
    /// The last bytes of the previous piece, in which the mark may start.
    tail: Vec<u8>,
    /// Rows that may have scrolled off since the cells were last searched.
    scrolled: usize,
    /// Hashes of texts whose URLs were reported, to skip parsing them again.
    known: HashSet<u64>,
    /// Hashes of the URLs that were reported.
    reported: HashSet<u64>,
    /// The same hashes, oldest first.
    order: VecDeque<u64>,
}

impl UrlFinder {
    fn is_new(&self, url: &str) -> bool {
        !self.reported.contains(&hash(url))
    }

    fn remember(&mut self, url: &str) {
        if self.order.len() >= URLS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.reported.remove(&oldest);
            self.known.clear();
        }
        if self.reported.insert(hash(url)) {
            self.order.push_back(hash(url));
        }
    }
}

fn hash(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}

impl State {
    /// Searches bytes that are about to be parsed for `://`.
    pub(super) fn scan_for_urls(&mut self, piece: &[u8]) {
        let urls = &mut self.urls;
        urls.tail.extend_from_slice(&piece[..piece.len().min(MARK.len() - 1)]);
        let found = memchr::memmem::find(&urls.tail, MARK).is_some() || memchr::memmem::find(piece, MARK).is_some();
        let kept = if piece.len() >= MARK.len() - 1 { piece } else { urls.tail.as_slice() };
        urls.tail = kept[kept.len().saturating_sub(MARK.len() - 1)..].to_vec();
        urls.due |= found;
        if urls.due {
            let cols = usize::from(self.size.cols());
            urls.scrolled += piece.split(|&byte| byte == b'\n').map(|line| 1 + line.len() / cols).sum::<usize>();
        }
    }

    /// Reads URLs from the cells, if the bytes had `://`.
    pub(super) fn find_urls(&mut self) {
        if !self.urls.due {
            return;
        }
        if self.events.is_full() {
            // A URL found now could not be reported. It is reported if it is printed again.
            self.urls.due = false;
            return;
        }
        let grid = self.grid();
        let first = -(grid.history_size().min(self.urls.scrolled) as i32);
        let mut found = Vec::new();
        let mut unfinished = false;
        let mut read_to = None;
        for line in first..grid.screen_lines() as i32 {
            let row = &grid[Line(line)][..];
            for (col, _) in row.iter().enumerate().filter(|(_, cell)| cell.c == ':') {
                let colon = CellPosition { line, col };
                // A URL inside another one is part of it; and no cell is read twice.
                if Some(colon) <= read_to {
                    continue;
                }
                let (url, last) = read_url(grid, colon);
                read_to = Some(last);
                match url {
                    FoundUrl::None => {}
                    FoundUrl::Complete(text) => found.push(text),
                    FoundUrl::Unfinished => unfinished = true,
                }
            }
        }
        // An unfinished URL is read again after the next output.
        self.urls.due = unfinished;
        self.urls.scrolled = 0;
        found.iter().for_each(|text| self.report_url(text));
    }

    /// Reports a URL, from cells or from a link, unless it was reported before.
    pub(super) fn report_url(&mut self, text: &str) {
        if self.urls.known.contains(&hash(text)) {
            return;
        }
        let Some(url) = Url::parse(text) else { return };
        if url.text.len() <= URL_MAX && self.urls.is_new(&url.text) && self.events.url(&url.text, url.is_login()) {
            self.urls.remember(&url.text);
            self.urls.known.insert(hash(text));
        }
    }
}
