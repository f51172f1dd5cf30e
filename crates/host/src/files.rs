//! Opens and replaces files.
//!
//! Whatever is found at a path, opening it never blocks, and only a regular file is read. A file is replaced
//! atomically: a crash leaves the old content or the new, never a mix.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_proto::problem::Code;
use rustix::fs::OFlags;

/// Opens a regular file. Anything else, such as a FIFO, a directory or a link, is an error of the kind `InvalidData`.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Like [`open`], with these options.
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without `NONBLOCK`, a FIFO would block until another process opens it.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    match options.custom_flags(flags.bits().cast_signed()).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Err(error) if fs::symlink_metadata(path).map_or(true, |found| found.is_file()) => Err(error),
        Ok(_) | Err(_) => Err(damage("not a regular file")),
    }
}

/// Reads a regular file of at most `max` bytes. A longer one is an error of the kind `InvalidData`.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_open(&open(path)?, max)
}

/// Reads an open file from its current position on.
pub fn read_open(file: &File, max: u64) -> io::Result<Vec<u8>> {
    // The length is only a hint: it saves growing the buffer in small steps. Files in /proc have none.
    let len = file.metadata()?.len().min(max);
    let mut content = Vec::with_capacity(len as usize + 1);
    if file.take(max + 1).read_to_end(&mut content)? as u64 > max {
        return Err(damage(&format!("longer than {max} bytes")));
    }
    Ok(content)
}

/// The error for a file whose content is not what Bowline wrote.
pub fn damage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Whether an error says that a file's content, or what is at its path, is not what Bowline wrote. Other errors may be
/// temporary.
pub fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// The problem code for a file that cannot be read or written.
pub fn code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Code::NoSpace,
        _ => Code::Unreachable,
    }
}

/// The most files that [`set_aside`] keeps of one path. Of more, each replaces the one before.
const MAX_ASIDE: usize = 4;

/// Writes a part of a damaged file to where [`set_aside`] would move the whole.
pub fn write_aside(path: &Path, content: &[u8]) -> io::Result<()> {
    write_whole(&aside(path), content)
}

/// The path with `.damaged` appended, or `.damaged2` and so on if there is one already: the first may be the one that the
/// user needs.
fn aside(path: &Path) -> PathBuf {
    let mut aside = with_suffix(path, ".damaged");
    for n in 2..=MAX_ASIDE {
        if fs::symlink_metadata(&aside).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            break;
        }
        aside = with_suffix(path, &format!(".damaged{n}"));
    }
    aside
}

/// Moves what is at a path out of the way, to the same path with `.damaged` appended.
pub fn set_aside(path: &Path) -> io::Result<()> {
    let aside = aside(path);
    let removed = match fs::symlink_metadata(&aside) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&aside),
        Ok(_) => fs::remove_file(&aside),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(path, &aside),
    }
}

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
    path.parent().map_or(Ok(()), sync_dir)
}

/// Makes the names in a directory survive a power cut.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
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
    // An interrupted write may have left it. A new file is never a FIFO, on which opening or writing could block.
    match fs::remove_file(temp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temp)?;
    let written = file.write_all(content).and_then(|()| sync(&file));
    let renamed = written.and_then(|()| match fs::rename(temp, path) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            set_aside(path)?;
            fs::rename(temp, path)
        }
        renamed => renamed,
    });
    renamed.inspect_err(|_| {
        let _ = fs::remove_file(temp);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn r52_only_a_regular_file_of_a_bounded_size_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        fs::write(path("file"), "1234").unwrap();
        fs::create_dir(path("directory")).unwrap();
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink("/dev/zero", path("device")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        assert_eq!(read(&path("file"), 4).unwrap(), b"1234");
        assert!(read(&path("file"), 3).is_err_and(|error| is_damage(&error)), "too long");
        assert_eq!(read(&path("missing"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        for name in ["directory", "fifo", "link", "device", "socket"] {
            assert!(read(&path(name), 4).is_err_and(|error| is_damage(&error)), "{name}");
            let mut options = OpenOptions::new();
            let opened = open_with(&path(name), options.read(true).append(true).create(true));
            assert!(opened.is_err_and(|error| is_damage(&error)), "{name}, for writing");
        }
    }

    #[test]
    fn what_was_set_aside_first_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        for n in 1..=6 {
            fs::write(&path, n.to_string()).unwrap();
            set_aside(&path).unwrap();
        }
        let kept =
            ["", "2", "3", "4"].map(|n| fs::read_to_string(temp.path().join(format!("log.damaged{n}"))).unwrap());
        assert_eq!(kept, ["1", "2", "3", "6"]);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 4, "they are bounded");
    }

    #[test]
    fn what_is_in_the_way_of_a_file_is_set_aside() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("screen");
        for content in ["one", "two"] {
            let _ = fs::remove_file(&path);
            fs::create_dir_all(path.join("full")).unwrap();
            write_whole(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert!(path.with_extension("damaged").join("full").is_dir());
        }
        mknodat(CWD, temp.path().join("screen.new"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        write_whole(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three", "a FIFO in the place of the new file does not block");
    }
}
