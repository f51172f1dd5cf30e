//! Finds a program where `exec` looks for it, and says in words why it cannot be run.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where `exec` looks for programs if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// Why a program cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It does not exist.
    Missing,
    /// It is a link to a file that does not exist.
    DanglingLink,
    Directory,
    /// It is not executable, or is in a directory that cannot be searched.
    NotExecutable,
    /// It is a script, and the program that its first line names does not exist. Only `exec` finds this out.
    NoInterpreter,
    /// The system refuses to execute it, or its interpreter. Only `exec` finds this out.
    Refused,
}

impl Unusable {
    /// Why `exec` failed with a program that [`find`] has found. `None` if that says nothing about the
    /// program.
    pub fn of_exec(error: io::ErrorKind) -> Option<Unusable> {
        match error {
            io::ErrorKind::NotFound => Some(Unusable::NoInterpreter),
            io::ErrorKind::PermissionDenied => Some(Unusable::Refused),
            _ => None,
        }
    }

    /// The reason, for a message that begins with the program.
    pub fn reason(self) -> &'static str {
        match self {
            Unusable::Missing => "no such program",
            Unusable::DanglingLink => "a link to a file that does not exist",
            Unusable::Directory => "is a directory",
            Unusable::NotExecutable => "not executable",
            Unusable::NoInterpreter => "the program that should interpret it does not exist",
            Unusable::Refused => "may not be executed",
        }
    }

    /// A sentence about the program of an agent. It has no path: those of the server are not for every caller.
    pub fn explain(self, program: &OsStr) -> String {
        let name = Path::new(program).file_name().unwrap_or(program).display();
        let place = match is_path(program) {
            true => "there is no file at its configured path",
            false => "it was not found in PATH",
        };
        match self {
            Unusable::Missing => format!("`{name}` is not installed: {place}"),
            Unusable::DanglingLink => format!("`{name}` cannot be run: it is a link to a file that does not exist"),
            Unusable::Directory => format!("`{name}` cannot be run: it is a directory"),
            Unusable::NotExecutable => format!("`{name}` cannot be run: it is not executable"),
            Unusable::NoInterpreter => {
                format!("`{name}` cannot be run: the program that should interpret it does not exist")
            }
            Unusable::Refused => format!("`{name}` cannot be run: it may not be executed"),
        }
    }
}

/// Looks for a program in the places where `exec` looks: a path in `cwd`, a name in the directories of `path`.
pub fn find(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, Unusable> {
    let candidates: Vec<PathBuf> = match is_path(program) {
        true => vec![cwd.join(program)],
        false => {
            let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
            std::env::split_paths(path).map(|dir| cwd.join(dir).join(program)).collect()
        }
    };
    let can_run = |path: &&PathBuf| path.is_file() && rustix::fs::access(*path, rustix::fs::Access::EXEC_OK).is_ok();
    if let Some(found) = candidates.iter().find(can_run) {
        return Ok(found.clone());
    }
    let is_hidden = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let exists = |path: &PathBuf| path.metadata().map_or_else(is_hidden, |_| true);
    Err(match () {
        () if candidates.iter().any(|path| path.is_dir()) => Unusable::Directory,
        () if candidates.iter().any(exists) => Unusable::NotExecutable,
        () if candidates.iter().any(|path| path.is_symlink()) => Unusable::DanglingLink,
        () => Unusable::Missing,
    })
}

fn is_path(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_first_program_that_can_be_run_is_found_and_otherwise_the_reason() {
        let temp = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| temp.path().join(name));
        for dir in [&first, &second] {
            fs::create_dir(dir).unwrap();
        }
        let file = |path: &Path, mode| {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        file(&first.join("plain"), 0o600);
        file(&first.join("both"), 0o600);
        file(&second.join("both"), 0o700);
        fs::create_dir(first.join("folder")).unwrap();
        symlink("nowhere", first.join("link")).unwrap();
        let path = std::env::join_paths([&first, &second]).unwrap();
        let find = |program: &str| find(program.as_ref(), temp.path(), Some(&path));
        assert_eq!(find("both"), Ok(second.join("both")));
        assert_eq!(find("second/both"), Ok(second.join("both")), "a path is not looked for in PATH");
        assert_eq!(find("plain"), Err(Unusable::NotExecutable));
        assert_eq!(find("folder"), Err(Unusable::Directory));
        assert_eq!(find("link"), Err(Unusable::DanglingLink));
        assert_eq!(find("none"), Err(Unusable::Missing));
        assert_eq!(find("first/none"), Err(Unusable::Missing));
    }

    #[test]
    fn an_explanation_names_the_program_and_no_path() {
        let explain = |why: Unusable, program: &str| why.explain(program.as_ref());
        assert_eq!(explain(Unusable::Missing, "claude"), "`claude` is not installed: it was not found in PATH");
        let configured = "`qwen` is not installed: there is no file at its configured path";
        assert_eq!(explain(Unusable::Missing, "/opt/secret/qwen"), configured);
        assert_eq!(explain(Unusable::NotExecutable, "a/b"), "`b` cannot be run: it is not executable");
    }
}
