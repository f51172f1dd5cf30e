//! Keeps the files of a few directories for a few seconds, so that not each key that a user types reads the disk.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::walk::Tree;

/// The trees that are kept. Another one replaces the oldest. Each takes at most 12 MiB.
const MAX_TREES: usize = 4;
/// How long a tree is kept: new files are listed after this time at the latest.
const KEEP_FOR: Duration = Duration::from_secs(5);

/// The trees that were read last. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees(Arc<Mutex<Vec<Kept>>>);

/// What a tree is kept under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeKey {
    pub(super) dir: PathBuf,
    /// Whether it has files whose names begin with a dot.
    pub(super) with_hidden: bool,
}

#[derive(Debug)]
struct Kept {
    key: TreeKey,
    tree: Arc<Tree>,
    since: Instant,
}

impl Trees {
    pub(super) fn get(&self, key: &TreeKey) -> Option<Arc<Tree>> {
        let kept = self.fresh();
        kept.iter().find(|kept| kept.key == *key).map(|kept| kept.tree.clone())
    }

    pub(super) fn put(&self, key: TreeKey, tree: Arc<Tree>) {
        let mut kept = self.fresh();
        kept.retain(|kept| kept.key != key);
        if kept.len() >= MAX_TREES {
            kept.remove(0);
        }
        kept.push(Kept { key, tree, since: Instant::now() });
    }

    /// Frees the memory of trees that are too old to be used.
    pub(crate) fn forget_old(&self) {
        drop(self.fresh());
    }

    /// Those that can be used.
    fn fresh(&self) -> MutexGuard<'_, Vec<Kept>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.since.elapsed() < KEEP_FOR);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(dir: &str) -> TreeKey {
        TreeKey { dir: dir.into(), with_hidden: false }
    }

    fn tree() -> Arc<Tree> {
        Arc::new(Tree { files: Vec::new(), truncated: false })
    }

    #[tokio::test(start_paused = true)]
    async fn a_tree_is_used_for_a_few_seconds_and_its_memory_is_freed() {
        let (trees, tree) = (Trees::default(), tree());
        trees.put(key("/a"), tree.clone());
        assert!(trees.get(&key("/b")).is_none() && trees.get(&TreeKey { with_hidden: true, ..key("/a") }).is_none());
        tokio::time::advance(KEEP_FOR - Duration::from_millis(1)).await;
        assert!(trees.get(&key("/a")).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(Arc::strong_count(&tree), 2, "kept until the next look");
        trees.forget_old();
        assert_eq!(Arc::strong_count(&tree), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn r52_few_trees_are_kept_and_the_oldest_goes_first() {
        let trees = Trees::default();
        for dir in ["/a", "/b", "/c", "/a", "/d", "/e"] {
            trees.put(key(dir), tree());
        }
        let kept: Vec<&str> =
            ["/a", "/b", "/c", "/d", "/e"].into_iter().filter(|dir| trees.get(&key(dir)).is_some()).collect();
        assert_eq!(kept, ["/a", "/c", "/d", "/e"]);
    }
}
