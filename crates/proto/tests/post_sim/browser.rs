//! A browser: tabs with a queue each, and the storage that they share.

use std::collections::{BTreeMap, BTreeSet};

use bowline_proto::post::{PostQueue, State};

/// A tab, as the driver of its queue.
pub(crate) struct Tab {
    /// Tells a tab from one that had the same place before a reload.
    pub(crate) number: u64,
    /// The number of the tab before its reloads.
    pub(crate) writer: u64,
    pub(crate) queue: PostQueue,
    /// When its timer fires, in true time.
    pub(crate) timer: Option<u64>,
    pub(crate) hidden: bool,
    pub(crate) offline: bool,
    /// When an entry began to wait for another try, in true time. Empty after anything that may try sooner.
    pub(crate) waits: BTreeMap<String, u64>,
    /// Requests that the queue dropped.
    pub(crate) dropped: BTreeSet<u64>,
    /// The ids of stored entries that did not fit into the queue.
    left_out: BTreeSet<String>,
}

impl Tab {
    /// Opens a tab, which takes over what is stored.
    pub(crate) fn open(number: u64, writer: u64, storage: &BTreeMap<String, String>, wall: u64) -> Tab {
        let mut queue = PostQueue::new();
        let left_out = queue.restore(storage.clone(), wall).into_iter().collect();
        Tab {
            number,
            writer,
            queue,
            timer: None,
            hidden: false,
            offline: false,
            waits: BTreeMap::new(),
            dropped: BTreeSet::new(),
            left_out,
        }
    }

    /// Takes over stored entries that did not fit before, as far as there is room. Returns how many.
    pub(crate) fn restore_left_out(&mut self, storage: &BTreeMap<String, String>, wall: u64) -> u64 {
        let before = std::mem::take(&mut self.left_out);
        let (stored, gone): (Vec<_>, Vec<_>) = before.iter().partition(|id| storage.contains_key(*id));
        gone.into_iter().for_each(|id| self.queue.handle_removed(id, wall));
        let entries = stored.iter().map(|id| ((*id).clone(), storage[*id].clone()));
        self.left_out = self.queue.restore(entries, wall).into_iter().collect();
        (stored.len() - self.left_out.len()) as u64
    }

    /// The ids of the entries in such a state.
    pub(crate) fn ids(&self, is_wanted: impl Fn(&State) -> bool) -> Vec<String> {
        self.queue.entries().filter(|entry| is_wanted(&entry.state)).map(|entry| entry.id.clone()).collect()
    }
}
