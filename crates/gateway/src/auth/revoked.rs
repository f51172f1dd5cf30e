//! `auth.revoked`: the ids of tokens and logins that are revoked although `auth.json` still lists them.
//!
//! An attacker with a leaked token can fill the disk, and replacing `auth.json` needs space. This file has all of its
//! space from the start and is overwritten in place. It has a slot of one line for every possible token and login.
//! An id stays in it until `auth.json` has been written without it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bowline_host::files::{self, write_durable};
use bowline_host::home::Home;
use bowline_proto::ids::SessionId;

use super::records::{MAX_LOGINS, MAX_TOKENS};

/// A slot without an id.
const FREE: &str = "------------\n";
const SLOTS: usize = MAX_TOKENS + MAX_LOGINS;
/// The size of the file.
pub(super) const SIZE: usize = SLOTS * FREE.len();

#[derive(Debug)]
pub(super) struct RevokedFile(PathBuf);

impl RevokedFile {
    pub(super) fn new(home: &Home) -> RevokedFile {
        RevokedFile(home.state().join("auth.revoked"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether the file has its space. Without it, revoking needs free space.
    pub(super) fn is_reserved(&self) -> bool {
        fs::symlink_metadata(&self.0).is_ok_and(|found| found.is_file() && found.len() == SIZE as u64)
    }

    /// The slots. The rest of a longer file is ignored, and what is not a file has none.
    fn read(&self) -> io::Result<Vec<u8>> {
        match files::open(&self.0) {
            Ok(file) => read_slots(&file),
            Err(error) if files::is_damage(&error) || error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Writes the file in its full size, and keeps the ids that it may have. Needs the lock.
    pub(super) fn reserve(&self) -> io::Result<()> {
        write_durable(&self.0, &format(&parse(&self.read()?))?)
    }

    /// Adds ids, in place. Needs the lock.
    pub(super) fn add(&self, ids: &BTreeSet<String>) -> io::Result<()> {
        if !self.is_reserved() {
            self.reserve()?;
        }
        let old = self.read()?;
        let mut all = parse(&old);
        all.extend(ids.iter().cloned());
        self.overwrite(&old, &format(&all)?)
    }

    /// Frees all slots, in place. Needs the lock.
    pub(super) fn clear(&self) -> io::Result<()> {
        let old = self.read()?;
        self.overwrite(&old, &format(&BTreeSet::new())?)
    }

    /// Writes the slots that differ.
    fn overwrite(&self, old: &[u8], new: &[u8]) -> io::Result<()> {
        let file = files::open_with(&self.0, OpenOptions::new().write(true))?;
        let before = file.metadata()?.modified()?;
        for (number, slot) in new.chunks(FREE.len()).enumerate() {
            let offset = number * FREE.len();
            if old.get(offset..offset + slot.len()) != Some(slot) {
                file.write_all_at(slot, offset as u64)?;
            }
        }
        set_later(&file, before)?;
        file.sync_all()
    }
}

/// Sets a modification time that differs from the one before. Other processes notice the write by it, and the kernel's
/// clock may not have moved on.
fn set_later(file: &File, before: SystemTime) -> io::Result<()> {
    file.set_modified(SystemTime::now().max(before + Duration::from_nanos(1)))
}

/// Reads the slots of the open file.
pub(super) fn read_slots(file: &File) -> io::Result<Vec<u8>> {
    let mut slots = Vec::new();
    file.take(SIZE as u64).read_to_end(&mut slots)?;
    Ok(slots)
}

/// The ids in the slots. Anything else is ignored.
pub(super) fn parse(content: &[u8]) -> BTreeSet<String> {
    let slots = content.chunks(FREE.len()).take(SLOTS).filter_map(|slot| str::from_utf8(slot).ok());
    slots.map(str::trim_end).filter(|slot| slot.parse::<SessionId>().is_ok()).map(str::to_owned).collect()
}

fn format(ids: &BTreeSet<String>) -> io::Result<Vec<u8>> {
    if ids.len() > SLOTS || ids.iter().any(|id| id.parse::<SessionId>().is_err()) {
        return Err(io::Error::other("it has no room for the ids of these tokens and logins"));
    }
    let used = ids.iter().map(|id| format!("{id}\n"));
    Ok(used.chain(std::iter::repeat(FREE.to_owned())).take(SLOTS).collect::<String>().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn the_file_keeps_its_size_and_ids_that_are_added_in_place() {
        let temp = tempfile::tempdir().unwrap();
        let file = RevokedFile(temp.path().join("auth.revoked"));
        let read = || fs::read(&file.0).unwrap();
        file.add(&ids(&["aaaaaaaaaaaa"])).unwrap();
        let modified = || fs::metadata(&file.0).unwrap().modified().unwrap();
        for id in ["cccccccccccc", "bbbbbbbbbbbb", "000000000000"] {
            let before = modified();
            file.add(&ids(&[id])).unwrap();
            assert!(modified() > before, "every write can be noticed");
            assert!(parse(&read()).contains(id) && parse(&read()).contains("aaaaaaaaaaaa"));
            assert_eq!(read().len(), SIZE);
        }
        let many = (0..SLOTS).map(|n| format!("{n:012}")).collect();
        assert!(file.add(&many).is_err(), "four more than there are slots, of which one is the same");
        assert_eq!(parse(&read()).len(), 4);
        file.clear().unwrap();
        assert!(parse(&read()).is_empty() && read().len() == SIZE);
        file.add(&many).unwrap();
        assert_eq!(parse(&read()), many);
    }

    #[test]
    fn r52_a_cut_or_foreign_file_is_repaired_with_the_ids_that_it_has() {
        let temp = tempfile::tempdir().unwrap();
        let file = RevokedFile(temp.path().join("auth.revoked"));
        for content in ["", "aaaaaaaaaaaa\nbbb", "aaaaaaaaaaaa\n\0\0\0\0\u{ff}", "aaaaaaaaaaaa\n../../../../\n"] {
            fs::write(&file.0, content).unwrap();
            let kept = parse(content.as_bytes());
            file.add(&ids(&["dddddddddddd"])).unwrap();
            let found = parse(&fs::read(&file.0).unwrap());
            assert!(found.is_superset(&kept) && found.contains("dddddddddddd"), "{content:?}");
            assert!(file.is_reserved() && found.len() == kept.len() + 1);
        }
    }
}
