//! The response bodies of the calls that list files and folders.

use serde::{Deserialize, Serialize};

/// Files and folders below the directory of a session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FileList {
    /// The best matches first.
    pub files: Vec<FileEntry>,
    /// There are more matches, or the directory was too large to be searched as a whole.
    pub truncated: bool,
}

/// A file or folder below the directory of a session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FileEntry {
    /// Relative to the directory of the session, with `/` between the names.
    pub path: String,
    pub kind: FileKind,
}

/// Whether an entry is a file or a folder.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    File,
    Folder,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// The folders in a folder that sessions may be started in.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FolderList {
    /// The absolute path of the folder, without symbolic links.
    pub path: String,
    /// The folder that contains it; null if that may not be listed.
    pub parent: Option<String>,
    /// The folders whose contents may be listed.
    pub roots: Vec<String>,
    /// Sorted by name.
    pub folders: Vec<FolderEntry>,
    /// There are more folders than are listed.
    pub truncated: bool,
}

/// A folder in a folder.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FolderEntry {
    pub name: String,
    /// Whether it is a Git repository or worktree.
    pub git: bool,
}
