//! Uploads: the files that prompts of an agent session attach, in the directory `uploads` of the session.
//!
//! The id of an upload is the name of its file. A file is written under another name and renamed, so a prompt never names
//! one that is not whole. Files are only added, until the session is forgotten.

mod id;
mod media_type;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_proto::problem::Code;

pub use self::id::{BadName, UploadId, check_name};
pub use self::media_type::MediaType;
use crate::files;
use crate::home::SessionDir;
use crate::lock::Lock;

/// The longest upload in bytes; a longer one is refused with `too_large`.
pub const MAX_UPLOAD: u64 = 10 << 20;
/// The bytes of all uploads of a session; one more is refused with `no_space`.
pub const MAX_TOTAL: u64 = 256 << 20;
/// The uploads of a session; one more is refused with `no_space`.
pub const MAX_UPLOADS: usize = 1000;
/// How long an upload waits for another one of the same session to be written.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The lock of the directory. It is no id, because those begin with a digit or a letter.
const LOCK: &str = ".lock";

/// A file that was uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    pub id: UploadId,
    pub media_type: MediaType,
    /// It was not there before.
    pub is_new: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error(transparent)]
    Name(#[from] BadName),
    #[error("the file is empty")]
    Empty,
    #[error("the file has more than {MAX_UPLOAD} bytes")]
    TooLarge,
    #[error("the file is neither a PNG, JPEG, GIF or WebP image, nor a PDF, nor a text in UTF-8")]
    Type,
    #[error("the session has {MAX_UPLOADS} uploads already; start a new session")]
    TooMany,
    #[error("the uploads of the session would have more than {} MiB; start a new session", MAX_TOTAL >> 20)]
    Full,
    #[error("another upload of this session takes too long; try again")]
    Busy,
    #[error("the session was forgotten")]
    Gone,
    #[error("cannot store the file: {0}")]
    Io(#[from] io::Error),
}

impl UploadError {
    /// The problem code of the protocol for this error.
    pub fn code(&self) -> Code {
        match self {
            UploadError::Name(_) | UploadError::Empty => Code::BadRequest,
            UploadError::TooLarge => Code::TooLarge,
            UploadError::Type => Code::BadType,
            UploadError::TooMany | UploadError::Full => Code::NoSpace,
            UploadError::Busy => Code::Unreachable,
            UploadError::Gone => Code::UnknownSession,
            UploadError::Io(error) => files::code(error),
        }
    }
}

/// Stores a file. When this returns, it survives a power cut. The same content under the same name is stored once.
pub fn store(dir: &SessionDir, name: &str, content: &[u8]) -> Result<Upload, UploadError> {
    try_store(dir, name, content).map_err(|error| gone_or(error, dir))
}

/// The error, unless the session's directory is missing: then that is why.
fn gone_or(error: UploadError, dir: &SessionDir) -> UploadError {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match &error {
        UploadError::Io(cause)
            if is_missing(cause) && fs::symlink_metadata(dir.path()).is_err_and(|e| is_missing(&e)) =>
        {
            UploadError::Gone
        }
        _ => error,
    }
}

fn try_store(dir: &SessionDir, name: &str, content: &[u8]) -> Result<Upload, UploadError> {
    if content.is_empty() {
        return Err(UploadError::Empty);
    }
    if content.len() as u64 > MAX_UPLOAD {
        return Err(UploadError::TooLarge);
    }
    let media_type = MediaType::of(content).ok_or(UploadError::Type)?;
    let id = UploadId::new(name, media_type, content)?;
    let folder = make_folder(dir)?;
    // The limits hold for all uploads together, so they are stored one after another.
    let _lock = Lock::wait(&folder.join(LOCK), LOCK_TIMEOUT)?.ok_or(UploadError::Busy)?;
    let path = folder.join(id.as_str());
    // The digest tells the content. Anything else in its place, such as a link, is replaced.
    if files::open(&path).and_then(|file| file.metadata()).is_ok_and(|found| found.len() == content.len() as u64) {
        return Ok(Upload { id, media_type, is_new: false });
    }
    let Usage { count, bytes } = tidy(&folder)?;
    if count >= MAX_UPLOADS {
        return Err(UploadError::TooMany);
    }
    if bytes + content.len() as u64 > MAX_TOTAL {
        return Err(UploadError::Full);
    }
    files::write_durable(&path, content)?;
    Ok(Upload { id, media_type, is_new: true })
}

/// An upload that is open for reading.
#[derive(Debug)]
pub struct OpenUpload {
    pub file: File,
    pub len: u64,
    pub media_type: MediaType,
}

/// Opens an upload. A missing one is an error of the kind `NotFound`; what is not a regular file, of the kind
/// `InvalidData`.
pub fn open(dir: &SessionDir, id: &UploadId) -> io::Result<OpenUpload> {
    let file = files::open(&path(dir, id)?)?;
    let len = file.metadata()?.len();
    if len > MAX_UPLOAD {
        return Err(files::damage(&format!("longer than {MAX_UPLOAD} bytes")));
    }
    let mut beginning = Vec::new();
    (&file).take(MediaType::BEGINNING as u64).read_to_end(&mut beginning)?;
    // Only texts have no beginning of their own.
    let media_type = MediaType::of_beginning(&beginning).unwrap_or(MediaType::Text);
    Ok(OpenUpload { file, len, media_type })
}

/// Reads a whole upload. Errors as for [`open`]; also `InvalidData` for what could not have been uploaded.
pub fn read(dir: &SessionDir, id: &UploadId) -> io::Result<(MediaType, Vec<u8>)> {
    let content = files::read(&path(dir, id)?, MAX_UPLOAD)?;
    let media_type = MediaType::of(&content).ok_or_else(|| files::damage("not of a type that is accepted"))?;
    Ok((media_type, content))
}

/// The path of an upload, whether it exists or not.
pub fn path(dir: &SessionDir, id: &UploadId) -> io::Result<PathBuf> {
    let folder = dir.uploads();
    match fs::symlink_metadata(&folder)?.is_dir() {
        true => Ok(folder.join(id.as_str())),
        false => Err(files::damage("the uploads of the session are not a directory")),
    }
}

/// Creates the directory, owner-only, unless it exists.
fn make_folder(dir: &SessionDir) -> io::Result<PathBuf> {
    let folder = dir.uploads();
    match DirBuilder::new().mode(0o700).create(&folder) {
        // Without this, a power cut could take the directory with files that were synced.
        Ok(()) => File::open(dir.path())?.sync_all()?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() {
        return Err(files::damage("the uploads of the session are not a directory"));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(folder)
}

/// What the uploads of a session take.
struct Usage {
    count: usize,
    bytes: u64,
}

/// Counts the uploads, and removes unfinished files that a crash left. The caller holds the lock, so no other upload is
/// being written.
fn tidy(folder: &Path) -> io::Result<Usage> {
    let mut usage = Usage { count: 0, bytes: 0 };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(id::UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        } else if name.parse::<UploadId>().is_ok() {
            let found = match entry.metadata() {
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found?,
            };
            usage.count += 1;
            usage.bytes += found.len();
        }
    }
    Ok(usage)
}

#[cfg(test)]
mod tests;
