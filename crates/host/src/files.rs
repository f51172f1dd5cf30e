//! Replaces files atomically: a crash leaves the old content or the new, never a mix.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes an owner-only file. Readers see the old content or the new, never a part.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, |_| Ok(()))
}

/// Like [`write_whole`], but syncs the content before the rename: after a power cut, the old file or the new one is
/// there, whole.
pub fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, File::sync_all)
}

/// Like [`write_synced`], but also syncs the rename: when this returns, the new content survives a power cut.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    write_synced(path, content)?;
    // The rename is stored in the directory; unless that is synced, the name may still refer to the old content.
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// Like [`write_whole`], for a file that several processes may write at once: the last write wins.
pub fn write_shared(path: &Path, content: &[u8]) -> io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let count = WRITES.fetch_add(1, Ordering::Relaxed);
    replace_via(&with_suffix(path, &format!(".{}-{count}.new", std::process::id())), path, content, |_| Ok(()))
}

fn replace(path: &Path, content: &[u8], sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    replace_via(&with_suffix(path, ".new"), path, content, sync)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn replace_via(temp: &Path, path: &Path, content: &[u8], sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temp)?;
    let written = file.write_all(content).and_then(|()| sync(&file));
    written.and_then(|()| fs::rename(temp, path)).inspect_err(|_| {
        let _ = fs::remove_file(temp);
    })
}
