//! Addresses in the output: found in the cells, across wraps and styling, and reported once each.
//!
//! Looking at every character would cost more than drawing it, so the bytes are searched for `://` first, and only
//! what they drew is read.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;

use super::address::Address;
use super::limits::{URL_MAX, URLS_MAX};
use super::state::State;
use super::walk::{Place, Read, read_address};

const MARK: &[u8] = b"://";

/// What has been seen in the bytes, and what has been reported.
#[derive(Debug, Default)]
pub(super) struct Urls {
    /// There may be an address in the cells that has not been read.
    due: bool,
    /// The last bytes of the piece before, in which the mark may start.
    tail: Vec<u8>,
    /// Rows that may have scrolled off since the cells were read last.
    scrolled: usize,
    /// Hashes of texts that need no second look, since floods repeat themselves.
    known: HashSet<u64>,
    /// Hashes of what was reported, and the order of it.
    reported: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Urls {
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
    /// Notes bytes that are about to be drawn.
    pub(super) fn expect_urls(&mut self, piece: &[u8]) {
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

    /// Reads the cells that were drawn, if there may be an address in them.
    pub(super) fn find_urls(&mut self) {
        if !self.urls.due {
            return;
        }
        if self.events.is_full() {
            // What is found now could not be reported; it is when it is printed again.
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
                let colon = Place { line, col };
                // An address inside another is part of it; and no cell is read twice.
                if Some(colon) <= read_to {
                    continue;
                }
                let (read, last) = read_address(grid, colon);
                read_to = Some(last);
                match read {
                    Read::Nothing => {}
                    Read::Whole(text) => found.push(text),
                    Read::Unfinished => unfinished = true,
                }
            }
        }
        // What is still being printed is read again with the next output.
        self.urls.due = unfinished;
        self.urls.scrolled = 0;
        found.iter().for_each(|text| self.report_url(text));
    }

    /// Reports an address, from cells or from a link, unless it was already.
    pub(super) fn report_url(&mut self, text: &str) {
        if self.urls.known.contains(&hash(text)) {
            return;
        }
        let Some(address) = Address::parse(text) else { return };
        if address.url.len() <= URL_MAX
            && self.urls.is_new(&address.url)
            && self.events.url(&address.url, address.is_login())
        {
            self.urls.remember(&address.url);
            self.urls.known.insert(hash(text));
        }
    }
}
