//! Paths of callers that start with `~`, the home directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A path starts with `~`, and cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadTilde {
    #[error("~ cannot be used in a path here, because HOME is not set to an absolute path")]
    NoHome,
    #[error("~ can only be followed by a slash; give the home directory of another user by its absolute path")]
    OtherUser,
}

/// The home directory of an environment.
pub(crate) fn home(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let home = environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
    home.filter(|home| home.is_absolute())
}

/// The path with the home directory in place of a `~` at its beginning.
pub(crate) fn expand(path: &Path, home: Option<&Path>) -> Result<PathBuf, BadTilde> {
    if let Ok(rest) = path.strip_prefix("~") {
        let home = home.ok_or(BadTilde::NoHome)?;
        // Joining nothing would add a slash.
        return Ok(if rest.as_os_str().is_empty() { home.to_owned() } else { home.join(rest) });
    }
    match path.as_os_str().as_encoded_bytes().first() {
        Some(b'~') => Err(BadTilde::OtherUser),
        _ => Ok(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_at_the_beginning_is_the_home_directory() {
        let expanded = |path: &str| expand(Path::new(path), Some(Path::new("/home/me"))).map(PathBuf::into_os_string);
        for (path, expected) in [
            ("~", "/home/me"),
            ("~/", "/home/me"),
            ("~/a b/~", "/home/me/a b/~"),
            ("~//etc", "/home/me/etc"),
            ("/srv/~", "/srv/~"),
            ("a/~", "a/~"),
            ("", ""),
        ] {
            assert_eq!(expanded(path), Ok(expected.into()), "{path}");
        }
        assert_eq!(expanded("~other/x"), Err(BadTilde::OtherUser));
        assert_eq!(expand(Path::new("~/x"), None), Err(BadTilde::NoHome));
    }

    #[test]
    fn a_home_directory_that_is_not_absolute_is_none() {
        let home = |value: &str| home(&[("HOME".into(), value.into())]);
        assert_eq!((home("/home/me"), home("me"), home("")), (Some("/home/me".into()), None, None));
    }
}
