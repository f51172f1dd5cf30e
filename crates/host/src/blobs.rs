//! `blobs/`: large output of an agent's tools, one file for each event that has only the beginning and the end of it.
//!
//! A file's name is the number of its event. The owner of the session's lock writes (`Blobs`), always before the event
//! is appended; any process may read ([`open`]).

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::files;
use crate::home::SessionDir;

/// The most bytes of a blob; the rest is left out.
pub const MAX_BLOB: usize = 16 << 20;
/// The most bytes of all blobs of a session. One that would take more is not written.
pub const MAX_BLOBS: u64 = 256 << 20;

/// The blobs of a session, opened for writing. Only the owner of the session's lock may have them.
#[derive(Debug)]
pub(crate) struct Blobs {
    path: PathBuf,
    /// The bytes of all of them.
    total: u64,
    /// [`MAX_BLOBS`], except in tests.
    pub(crate) limit: u64,
}

/// How much of a text a blob has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) truncated: bool,
}

impl Blobs {
    /// Counts the blobs, and removes those that no event has: of numbers from `end` on, which later events will get, and
    /// what an interrupted write left.
    pub(crate) fn open(dir: &SessionDir, end: u64) -> io::Result<Blobs> {
        let mut blobs = Blobs { path: dir.blobs(), total: 0, limit: MAX_BLOBS };
        if !is_dir(&blobs.path)? {
            return Ok(blobs);
        }
        for found in fs::read_dir(&blobs.path)? {
            let found = found?;
            let metadata = found.metadata()?;
            if metadata.is_dir() {
                continue; // not written by Bowline
            }
            match found.file_name().to_str().and_then(parse_seq) {
                Some(seq) if seq < end => blobs.total += if metadata.is_file() { metadata.len() } else { 0 },
                _ => fs::remove_file(found.path())?,
            }
        }
        Ok(blobs)
    }

    /// Writes a blob, in the place of one whose event could not be appended. When this returns, it survives a power cut.
    /// Returns `None`, and writes nothing, if there is no room for it.
    pub(crate) fn write(&mut self, seq: u64, text: &str) -> io::Result<Option<Written>> {
        let kept = text.get(..text.floor_char_boundary(MAX_BLOB)).unwrap_or_default();
        let bytes = kept.len() as u64;
        let path = self.path.join(seq.to_string());
        // It is counted already, if it could not be removed either.
        let replaced = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file).map_or(0, |found| found.len());
        let others = self.total.saturating_sub(replaced);
        if others.saturating_add(bytes) > self.limit {
            return Ok(None);
        }
        if !is_dir(&self.path)? {
            if fs::symlink_metadata(&self.path).is_ok() {
                files::set_aside(&self.path)?;
            }
            DirBuilder::new().mode(0o700).create(&self.path)?;
            // Without this, a power cut could take the directory with files that were synced. Without the directory, the
            // next attempt comes here again.
            let synced = self.path.parent().map_or(Ok(()), files::sync_dir);
            synced.inspect_err(|_| _ = fs::remove_dir(&self.path))?;
        }
        files::write_synced(&path, kept.as_bytes())?;
        // It counts from now on, even if the next line fails.
        self.total = others + bytes;
        files::sync_dir(&self.path)?;
        Ok(Some(Written { bytes, truncated: bytes < text.len() as u64 }))
    }

    /// Removes a blob whose event could not be appended.
    pub(crate) fn remove(&mut self, seq: u64, written: Written) {
        if fs::remove_file(self.path.join(seq.to_string())).is_ok() {
            self.total = self.total.saturating_sub(written.bytes);
        }
    }
}

/// Opens a blob for reading. A missing one, or anything but a regular file in its place, is an error of the kind
/// `NotFound`.
pub fn open(dir: &SessionDir, seq: u64) -> io::Result<File> {
    // A link in the place of the directory would lead elsewhere.
    if !is_dir(&dir.blobs())? {
        return Err(io::ErrorKind::NotFound.into());
    }
    files::open(&dir.blobs().join(seq.to_string())).map_err(|error| match files::is_damage(&error) {
        true => io::ErrorKind::NotFound.into(),
        false => error,
    })
}

/// The number of an event. Only one spelling: no sign and no leading zeros.
pub fn parse_seq(text: &str) -> Option<u64> {
    text.parse().ok().filter(|seq: &u64| seq.to_string() == text)
}

/// Whether there is a directory at this path, and not a link to one.
fn is_dir(path: &std::path::Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use bowline_proto::ids::SessionId;

    use super::*;
    use crate::home::Home;

    fn session(temp: &tempfile::TempDir) -> SessionDir {
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([1; 12]));
        fs::create_dir(dir.path()).unwrap();
        dir
    }

    fn read(dir: &SessionDir, seq: u64) -> String {
        let mut text = String::new();
        open(dir, seq).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn whole(text: &str) -> Option<Written> {
        Some(Written { bytes: text.len() as u64, truncated: false })
    }

    #[test]
    fn r51_a_blob_is_whole_and_owner_only() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let text = "caf\u{e9} \u{1f600}\0\r\n".repeat(5000);
        assert_eq!(Blobs::open(&dir, 0).unwrap().write(7, &text).unwrap(), whole(&text));
        assert_eq!(read(&dir, 7), text);
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(dir.blobs()), mode(dir.blobs().join("7"))), (0o700, 0o600));
        assert_eq!(open(&dir, 8).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn r52_blobs_have_a_limit_each_and_together() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let mut blobs = Blobs::open(&dir, 0).unwrap();
        // A character across the limit is left out as a whole.
        let long = format!("x{}", "\u{e9}".repeat(MAX_BLOB / 2));
        let written = blobs.write(1, &long).unwrap().unwrap();
        assert_eq!(written, Written { bytes: MAX_BLOB as u64 - 1, truncated: true });
        assert!(long.starts_with(&read(&dir, 1)));
        blobs.limit = MAX_BLOB as u64 + 10;
        assert_eq!(blobs.write(2, "too much for it").unwrap(), None);
        assert!(!dir.blobs().join("2").exists());
        assert_eq!(blobs.write(3, "it has room").unwrap(), whole("it has room"));
        blobs.remove(1, written);
        assert_eq!(blobs.write(4, "too much for it").unwrap(), whole("too much for it"));
        let total = blobs.total;
        assert_eq!(total, 26);
        assert_eq!(Blobs::open(&dir, 9).unwrap().total, total, "they are counted again");
    }

    /// When the disk fails, neither the event can be appended nor its blob be removed, and both are tried again.
    #[test]
    fn r40_a_blob_that_is_written_again_counts_once() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let mut blobs = Blobs::open(&dir, 0).unwrap();
        blobs.limit = 10;
        for text in ["12345678", "12345678", "1234567890", "12"] {
            assert_eq!(blobs.write(1, text).unwrap(), whole(text));
            assert_eq!((blobs.total, read(&dir, 1)), (text.len() as u64, text.to_owned()));
        }
        assert_eq!(blobs.write(2, "123456789").unwrap(), None);
    }

    /// After a crash, the journal may end before a blob. Its number is used again by an event that has nothing to do with
    /// it.
    #[test]
    fn r40_blobs_after_the_end_of_the_journal_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let mut blobs = Blobs::open(&dir, 0).unwrap();
        for seq in [4, 5, 6, 100] {
            blobs.write(seq, "text").unwrap();
        }
        for left_over in ["6.new", "05", "+5", "x"] {
            fs::write(dir.blobs().join(left_over), "part").unwrap();
        }
        symlink("/etc/hostname", dir.blobs().join("7")).unwrap();
        fs::create_dir(dir.blobs().join("8")).unwrap();
        let mut blobs = Blobs::open(&dir, 6).unwrap();
        assert_eq!(blobs.total, 8);
        let mut left: Vec<_> = fs::read_dir(dir.blobs()).unwrap().map(|found| found.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["4", "5", "8"]);
        blobs.write(8, "in the place of a directory").unwrap();
        assert_eq!(read(&dir, 8), "in the place of a directory");
    }

    #[test]
    fn r51_links_are_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let secret = temp.path().join("elsewhere");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("1"), "secret").unwrap();
        symlink(&secret, dir.blobs()).unwrap();
        assert_eq!(open(&dir, 1).unwrap_err().kind(), io::ErrorKind::NotFound, "a link in the place of the directory");
        Blobs::open(&dir, 0).unwrap().write(2, "text").unwrap();
        assert_eq!(read(&dir, 2), "text");
        assert_eq!(fs::read_dir(&secret).unwrap().count(), 1, "nothing was removed or written there");
        symlink(secret.join("1"), dir.blobs().join("3")).unwrap();
        assert_eq!(open(&dir, 3).unwrap_err().kind(), io::ErrorKind::NotFound, "a link in the place of a blob");
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!((parse_seq("0"), parse_seq("187")), (Some(0), Some(187)));
        for bad in ["", "-1", "+1", "01", "1 ", "1.new", "..", "x", "99999999999999999999"] {
            assert_eq!(parse_seq(bad), None, "{bad:?}");
        }
    }
}
