//! The log of a terminal's output: a ring in a file of fixed size, addressed by an offset that never wraps.
//!
//! The file is one header page, then the ring. The header holds the end of the log and is written after the bytes, so
//! that a killed process leaves a log that is consistent up to its header. The ring is [`SLACK`] longer than the log's
//! size: bytes written but not yet in the header only overwrite bytes that were already trimmed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_proto::Offset;

use crate::files::{self, damage};

/// The size of a log unless configured, in bytes.
pub const DEFAULT_SIZE: u64 = 8 << 20;
/// The smallest log. The emulator may lag by half of it, and one more append must not overtake it.
pub const MIN_SIZE: u64 = 256 << 10;
pub const MAX_SIZE: u64 = 64 << 30;
/// The largest offset. No log gets so far, and JavaScript can represent all up to it, so a larger one is damage.
pub const MAX_OFFSET: Offset = (1 << 53) - 1;
/// The most bytes per append.
pub const SLACK: u64 = 64 << 10;

const PAGE: u64 = 4096;
const MAGIC: &[u8; 8] = b"bowlog1\n";
/// The offset of the log's end in the header.
const END_AT: u64 = 24;

/// A session's log. One thread appends; any number of threads read.
#[derive(Debug)]
pub struct Log {
    store: RwLock<Store>,
    /// The offset of the first byte ever written to this file.
    base: Offset,
    /// The length of the ring: the log's size plus [`SLACK`].
    ring: u64,
    end: AtomicU64,
}

#[derive(Debug)]
enum Store {
    File(File),
    /// The same ring in memory, after a write error.
    Memory(Vec<u8>),
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The number of bytes read.
    Data(usize),
    /// The offset is the end of the log.
    CaughtUp,
    /// The offset is before the oldest byte.
    Trimmed { oldest: Offset },
    /// The offset is past the end of the log.
    Ahead { end: Offset },
}

impl Log {
    /// Creates a log that keeps `size` bytes and begins at the offset `base`. Reserves the space at once, so that a full
    /// disk is an error now.
    pub fn create(path: &Path, size: u64, base: Offset) -> io::Result<Log> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let log = Log { store: RwLock::new(Store::File(file)), base, ring: size + SLACK, end: AtomicU64::new(base) };
        let written = log.with_file(|file| {
            reserve(file, PAGE + log.ring)?;
            file.write_all_at(&log.header(), 0)
        });
        match written {
            Ok(()) => Ok(log),
            Err(error) => {
                let _ = fs::remove_file(path); // without its header, it would be found as a damaged log
                Err(error)
            }
        }
    }

    /// Opens an existing log for appending, or only for reading if it is not writable.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = files::open_with(path, OpenOptions::new().read(true).write(true)).or_else(|_| files::open(path))?;
        let mut header = [0; 32];
        file.read_exact_at(&mut header, 0)?;
        let number = |at: usize| header[at..at + 8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let (ring, base, end) = (number(8), number(16), number(END_AT as usize));
        if &header[..8] != MAGIC || !(MIN_SIZE + SLACK..=MAX_SIZE + SLACK).contains(&ring) {
            return Err(damage("not a bowline log"));
        }
        let log = Log { store: RwLock::new(Store::Memory(Vec::new())), base, ring, end: AtomicU64::new(end) };
        log.check_end(&file, end)?;
        *log.write_store() = Store::File(file);
        Ok(log)
    }

    /// A log without any bytes, in place of one that cannot be read.
    pub fn empty(at: Offset) -> Log {
        let store = RwLock::new(Store::Memory(Vec::new()));
        Log { store, base: at, ring: MIN_SIZE + SLACK, end: AtomicU64::new(at) }
    }

    /// Reserves the space again that [`Log::shrink`] released.
    pub fn reserve(&self) -> io::Result<()> {
        self.with_file(|file| reserve(file, PAGE + self.ring))
    }

    /// Releases disk space that was never used.
    pub fn shrink(&self) -> io::Result<()> {
        self.with_file(|file| file.set_len(PAGE + self.used(self.end())))
    }

    /// The length of the part of the ring that a log with this end has written to.
    fn used(&self, end: Offset) -> u64 {
        let has_wrapped = end / self.ring > self.base / self.ring;
        if has_wrapped { self.ring } else { end % self.ring }
    }

    /// The offset of the oldest byte.
    pub fn start(&self) -> Offset {
        self.start_for(self.end())
    }

    /// The offset of the oldest byte once the log has grown to `end`.
    pub fn start_for(&self, end: Offset) -> Offset {
        end.saturating_sub(self.size()).max(self.base)
    }

    /// One past the newest byte.
    pub fn end(&self) -> Offset {
        self.end.load(Ordering::Acquire)
    }

    /// How many bytes the log keeps.
    pub fn size(&self) -> u64 {
        self.ring - SLACK
    }

    /// Appends at most [`SLACK`] bytes. On an error of the file, the log continues in memory, with these bytes; the
    /// caller must report that it is degraded.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(bytes.len() as u64 <= SLACK);
        let (from, end) = (self.end(), self.end() + bytes.len() as u64);
        // Appending to the file only needs the read lock: readers never touch the bytes being written.
        let written = match &*self.read_store() {
            Store::File(file) => Some(self.write_to(file, from, bytes)),
            Store::Memory(_) => None,
        };
        let written = written.unwrap_or_else(|| {
            if let Store::Memory(ring) = &mut *self.write_store() {
                self.put(ring, from, bytes);
            }
            Ok(())
        });
        if written.is_err() {
            let mut store = self.write_store();
            if let Store::File(file) = &*store {
                *store = Store::Memory(self.rescue(file, from, bytes));
            }
        }
        self.end.store(end, Ordering::Release);
        written
    }

    /// Reads from `from` on, as many bytes as the log has and `buf` holds.
    pub fn read(&self, from: Offset, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        let (start, end) = (self.start(), self.end());
        if from < start {
            return Ok(ReadOutcome::Trimmed { oldest: start });
        }
        if from > end {
            return Ok(ReadOutcome::Ahead { end });
        }
        let len = buf.len().min((end - from) as usize);
        if len == 0 {
            return Ok(ReadOutcome::CaughtUp);
        }
        match &*self.read_store() {
            Store::File(file) => {
                self.spans(from, len).try_for_each(|(at, range)| file.read_exact_at(&mut buf[range], PAGE + at))?
            }
            Store::Memory(ring) => {
                for (at, range) in self.spans(from, len) {
                    let at = at as usize;
                    buf[range.clone()].copy_from_slice(&ring[at..at + range.len()]);
                }
            }
        }
        Ok(ReadOutcome::Data(len))
    }

    /// Reads the header again, for a reader in another process than the writer. After a read, call this and check
    /// [`Log::start`] to make sure that the bytes had not been overwritten meanwhile.
    pub fn refresh(&self) -> io::Result<()> {
        self.with_file(|file| {
            let mut end = [0; 8];
            file.read_exact_at(&mut end, END_AT)?;
            let end = u64::from_be_bytes(end);
            self.check_end(file, end)?;
            self.end.store(end, Ordering::Release);
            Ok(())
        })
    }

    /// Checks that the file can hold a log that ends here.
    fn check_end(&self, file: &File, end: Offset) -> io::Result<()> {
        let used = PAGE + self.used(end);
        let fits = (used..=PAGE + self.ring).contains(&file.metadata()?.len());
        match fits && (self.base..=MAX_OFFSET).contains(&end) {
            true => Ok(()),
            false => Err(damage("the header of the log does not match its size")),
        }
    }

    fn write_to(&self, file: &File, from: Offset, bytes: &[u8]) -> io::Result<()> {
        self.spans(from, bytes.len()).try_for_each(|(at, range)| file.write_all_at(&bytes[range], PAGE + at))?;
        file.write_all_at(&(from + bytes.len() as u64).to_be_bytes(), END_AT)
    }

    /// The one or two spans of the ring that hold `len` bytes from `from`: index in the ring, range of the bytes.
    fn spans(&self, from: Offset, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + use<> {
        let at = from % self.ring;
        let first = len.min((self.ring - at) as usize);
        [(at, 0..first), (0, first..len)].into_iter().filter(|(_, range)| !range.is_empty())
    }

    fn put(&self, ring: &mut [u8], from: Offset, bytes: &[u8]) {
        for (at, range) in self.spans(from, bytes.len()) {
            ring[at as usize..at as usize + range.len()].copy_from_slice(&bytes[range]);
        }
    }

    /// Copies the ring to memory, and adds the bytes that could not be written.
    fn rescue(&self, file: &File, from: Offset, bytes: &[u8]) -> Vec<u8> {
        let mut ring = vec![0; self.ring as usize];
        let start = self.start_for(from);
        for (at, range) in self.spans(start, (from - start) as usize) {
            // Unreadable bytes stay zero: the session continues, and is reported as degraded.
            let _ = file.read_exact_at(&mut ring[at as usize..at as usize + range.len()], PAGE + at);
        }
        self.put(&mut ring, from, bytes);
        ring
    }

    fn header(&self) -> [u8; 32] {
        let mut header = [0; 32];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.ring.to_be_bytes());
        header[16..24].copy_from_slice(&self.base.to_be_bytes());
        header[24..].copy_from_slice(&self.end().to_be_bytes());
        header
    }

    fn with_file<T: Default>(&self, act: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        match &*self.read_store() {
            Store::File(file) => act(file),
            Store::Memory(_) => Ok(T::default()),
        }
    }

    fn read_store(&self) -> std::sync::RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write_store(&self) -> std::sync::RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Reserves `len` bytes on disk for `file`, by writing zeros if the file system cannot reserve otherwise.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            let zeros = vec![0; 64 << 10]; // on the stack, it would stay in the memory of every session process
            let mut at = file.metadata()?.len();
            while at < len {
                let n = zeros.len().min((len - at) as usize);
                file.write_all_at(&zeros[..n], at)?;
                at += n as u64;
            }
            Ok(())
        }
        other => other.map_err(io::Error::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn temp_log(size: u64) -> (tempfile::TempDir, std::path::PathBuf, Log) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::create(&path, size, 0).unwrap();
        (dir, path, log)
    }

    fn read_all(log: &Log) -> Vec<u8> {
        let mut out = vec![0; (log.end() - log.start()) as usize];
        if !out.is_empty() {
            assert_eq!(log.read(log.start(), &mut out).unwrap(), ReadOutcome::Data(out.len()));
        }
        out
    }

    #[test]
    fn a_read_reports_each_outcome() {
        let (_dir, _path, log) = temp_log(MIN_SIZE);
        let mut buf = [0; 8];
        assert_eq!(log.read(0, &mut buf).unwrap(), ReadOutcome::CaughtUp);
        assert_eq!(log.read(1, &mut buf).unwrap(), ReadOutcome::Ahead { end: 0 });
        for _ in 0..6 {
            log.append(&[7; SLACK as usize]).unwrap();
        }
        let oldest = 6 * SLACK - MIN_SIZE;
        assert_eq!(log.read(oldest - 1, &mut buf).unwrap(), ReadOutcome::Trimmed { oldest });
        assert_eq!(log.read(oldest, &mut buf).unwrap(), ReadOutcome::Data(8));
    }

    /// A log that replaces a damaged one begins where that ended.
    #[test]
    fn a_log_that_begins_late_releases_what_it_does_not_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let base = 10 * (MIN_SIZE + SLACK) + 5;
        let log = Log::create(&path, MIN_SIZE, base).unwrap();
        log.append(b"output").unwrap();
        log.shrink().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), PAGE + 5 + 6);
        let again = Log::open(&path).unwrap();
        assert_eq!(((again.start(), again.end()), read_all(&again)), ((base, base + 6), b"output".to_vec()));
        again.reserve().unwrap();
        (0..6).for_each(|_| again.append(&[7; SLACK as usize]).unwrap());
        again.shrink().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), PAGE + MIN_SIZE + SLACK, "it has wrapped");
        assert!(Log::open(&path).is_ok());
    }

    #[test]
    fn a_log_that_cannot_be_created_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        // No file can have this size, so reserving it fails, as it does on a full disk.
        assert!(Log::create(&path, 1 << 63, 0).is_err());
        assert!(!path.exists());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_ring_holds_the_tail_of_all_appends(sizes in prop::collection::vec(0usize..=SLACK as usize, 0..12)) {
            let (_dir, path, log) = temp_log(MIN_SIZE);
            let mut all = Vec::new();
            for (n, size) in sizes.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..size).map(|i| (i * 31 + n * 7) as u8).collect();
                log.append(&bytes).unwrap();
                all.extend_from_slice(&bytes);
            }
            let tail = &all[all.len().saturating_sub(MIN_SIZE as usize)..];
            prop_assert_eq!(log.end(), all.len() as u64);
            prop_assert!(read_all(&log) == tail);
            log.shrink().unwrap();
            let again = Log::open(&path).unwrap();
            prop_assert!(read_all(&again) == tail);
            again.reserve().unwrap();
            again.append(b"more").unwrap();
            prop_assert!(read_all(&again).ends_with(b"more"));
        }
    }

    /// A disk that fills up under a running session must not lose a byte: the log continues in memory.
    #[test]
    fn a_write_error_moves_the_log_to_memory() {
        let (_dir, path, log) = temp_log(MIN_SIZE);
        log.append(b"before ").unwrap();
        *log.write_store() = Store::File(File::open(&path).unwrap()); // read-only: every write fails
        assert!(log.append(b"during ").is_err());
        log.append(b"after").unwrap();
        assert_eq!(read_all(&log), b"before during after");
    }

    #[test]
    fn r52_a_damaged_header_is_an_error() {
        let (_dir, path, log) = temp_log(MIN_SIZE);
        log.append(b"some output").unwrap();
        log.shrink().unwrap();
        let number = |n: u64| n.to_be_bytes();
        let ring = MIN_SIZE + SLACK;
        for (at, value, what) in [
            (0, *b"bowlog2\n", "another magic"),
            (8, number(1), "a tiny ring"),
            (8, number(u64::MAX), "a huge ring"),
            (16, number(12), "a start past the end"),
            (END_AT, number(12), "more bytes than the file has"),
            (END_AT, number(ring + 1), "a whole ring in a short file"),
            (END_AT, number(1 << 60), "an end that no log reaches"),
        ] {
            let copy = path.with_extension("bad");
            std::fs::copy(&path, &copy).unwrap();
            OpenOptions::new().write(true).open(&copy).unwrap().write_all_at(&value, at).unwrap();
            let opened = Log::open(&copy);
            assert!(opened.as_ref().is_err_and(files::is_damage), "{what}: {opened:?}");
        }
        // A full ring could hold any end, so only an impossible one is found.
        (0..6).for_each(|_| log.append(&[7; SLACK as usize]).unwrap());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let reader = Log::open(&path).unwrap();
        file.write_all_at(&number(1 << 60), END_AT).unwrap();
        assert!(reader.refresh().is_err_and(|error| files::is_damage(&error)), "a reader checks it each time");
        assert_eq!(reader.end(), 6 * SLACK + 11);
        file.write_all_at(&number(6 * SLACK + 11), END_AT).unwrap();
        reader.refresh().unwrap();
        file.set_len(PAGE + ring + 1).unwrap();
        assert!(Log::open(&path).is_err_and(|error| files::is_damage(&error)), "longer than its ring");
    }

    #[test]
    fn a_new_log_continues_at_an_offset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::create(&path, MIN_SIZE, 1_000_000).unwrap();
        log.append(b"continued").unwrap();
        assert_eq!((log.start(), log.end(), read_all(&log)), (1_000_000, 1_000_009, b"continued".to_vec()));
        log.shrink().unwrap();
        assert_eq!(read_all(&Log::open(&path).unwrap()), b"continued");
    }
}
