//! What a walk lists, and what bounds it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A directory with these files. A name that ends with a slash is a folder.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    add(temp.path(), files);
    temp
}

fn add(dir: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let at = dir.join(path);
        if path.ends_with('/') {
            fs::create_dir_all(at).unwrap();
        } else {
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, content).unwrap();
        }
    }
}

fn read(dir: &Path, with_hidden: bool) -> Tree {
    walk_with(dir, with_hidden, RulesReader::new(None), &CancellationToken::new()).unwrap()
}

/// The paths in alphabetical order, those of folders with a slash.
fn paths(tree: &Tree) -> Vec<String> {
    let shown = |file: &TreeFile| match file.kind {
        FileKind::Folder => format!("{}/", file.path),
        FileKind::File | FileKind::Unknown => file.path.to_string(),
    };
    let mut paths: Vec<String> = tree.files.iter().map(shown).collect();
    paths.sort();
    paths
}

fn listed(dir: &Path) -> Vec<String> {
    let tree = read(dir, false);
    assert!(!tree.truncated);
    paths(&tree)
}

#[test]
fn files_and_folders_are_listed_those_near_the_top_first() {
    let temp = directory(&[("b/c/d", ""), ("a", ""), ("b/x", ""), ("empty/", "")]);
    let tree = read(temp.path(), false);
    let order: Vec<&str> = tree.files.iter().map(|file| &*file.path).collect();
    assert_eq!(order, ["a", "b", "empty", "b/c", "b/x", "b/c/d"]);
    assert_eq!(listed(temp.path()), ["a", "b/", "b/c/", "b/c/d", "b/x", "empty/"]);
}

/// The files are those of `git ls-files --others --exclude-standard`, besides hidden ones.
#[test]
fn what_git_ignores_is_left_out() {
    let temp = directory(&[
        (".git/info/exclude", "excluded\n"),
        (".gitignore", "# a comment\n*.o\n/target/\nbuild\n!keep.o\n[\nonly-dir/\n"),
        ("main.o", ""),
        ("keep.o", ""),
        ("target/debug/x", ""),
        ("src/target/kept", ""),
        ("src/build/x", ""),
        ("only-dir", ""),
        ("src/only-dir/x", ""),
        ("src/.gitignore", "*.tmp\n!main.o\n"),
        ("src/main.o", ""),
        ("src/other.o", ""),
        ("src/a.tmp", ""),
        ("src/deep/b.tmp", ""),
        ("a.tmp", ""),
        ("excluded", ""),
        ("user", ""),
    ]);
    let mut expected = vec!["a.tmp", "keep.o", "only-dir", "src/", "src/deep/", "src/main.o", "src/target/"];
    expected.extend(["src/target/kept", "user"]);
    assert_eq!(listed(temp.path()), expected);
    let global = temp.path().join("global");
    fs::write(&global, "user\nglobal\n!excluded\n").unwrap();
    let stop = CancellationToken::new();
    let tree = walk_with(temp.path(), false, RulesReader::new(Some(global)), &stop).unwrap();
    expected.pop();
    assert_eq!(paths(&tree), expected, "the rules of the repository come before those of the user");
}

#[test]
fn the_rules_above_the_directory_count_up_to_the_top_of_its_repository() {
    let temp = directory(&[
        (".gitignore", "outside\n"),
        ("repo/.git/", ""),
        ("repo/.gitignore", "*.log\n/sub/only-here\n"),
        ("repo/sub/x.log", ""),
        ("repo/sub/only-here", ""),
        ("repo/sub/outside", ""),
        ("repo/sub/deep/only-here", ""),
    ]);
    assert_eq!(listed(&temp.path().join("repo/sub")), ["deep/", "deep/only-here", "outside"]);
}

#[test]
fn a_repository_inside_of_another_directory_has_rules_of_its_own() {
    let temp = directory(&[
        (".git/", ""),
        (".gitignore", "*.o\nignored/\n"),
        ("ignored/repo/.git/", ""),
        ("inner/.git/info/exclude", "e\n"),
        ("inner/.gitignore", "*.x\n"),
        ("inner/a.o", ""),
        ("inner/a.x", ""),
        ("inner/e", ""),
        ("tree/.git", "gitdir: ../main/.git/worktrees/tree\n"),
        ("main/.git/worktrees/tree/commondir", "../..\n"),
        ("main/.git/info/exclude", "shared\n"),
        ("tree/shared", ""),
        ("tree/a", ""),
    ]);
    assert_eq!(listed(temp.path()), ["inner/", "inner/a.o", "main/", "tree/", "tree/a"]);
}

#[test]
fn outside_of_a_repository_nothing_is_ignored() {
    let temp = directory(&[(".gitignore", "*\n"), ("a", ""), ("b/.gitignore", "*\n"), ("b/c", "")]);
    assert_eq!(listed(temp.path()), ["a", "b/", "b/c"]);
}

#[test]
fn hidden_files_are_listed_on_request_and_the_repository_itself_never() {
    let files = [(".git/config", ""), (".github/workflows/ci.yml", ""), (".env", ""), ("a/.b/c", ""), ("a/.git", "x")];
    let temp = directory(&files);
    assert_eq!(listed(temp.path()), ["a/"]);
    let all = paths(&read(temp.path(), true));
    assert_eq!(all, [".env", ".github/", ".github/workflows/", ".github/workflows/ci.yml", "a/", "a/.b/", "a/.b/c"]);
}

#[test]
fn r52_no_link_is_followed() {
    let outside = directory(&[("secret/key", ""), (".gitignore", "*\n")]);
    let temp = directory(&[(".git/", ""), ("real/file", "")]);
    let link = |to: &Path, name: &str| symlink(to, temp.path().join(name)).unwrap();
    link(outside.path(), "out");
    link(&outside.path().join("secret/key"), "key");
    link(Path::new("real"), "inside");
    link(Path::new("."), "loop");
    link(Path::new("nowhere"), "dangling");
    link(&outside.path().join(".gitignore"), ".gitignore");
    assert_eq!(listed(temp.path()), ["dangling", "inside", "key", "loop", "out", "real/", "real/file"]);
    // The session may have been started by way of a link.
    assert_eq!(listed(&temp.path().join("inside")), ["file"]);
}

/// Between the moment when a folder is found and the one when it is opened.
#[test]
fn r52_a_folder_that_becomes_a_link_is_not_opened() {
    let outside = directory(&[("secret", "")]);
    let temp = directory(&[("a/b/c", "")]);
    let top = openat(CWD, temp.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let a = open_in(&top, "a").unwrap();
    assert!(open_in(&a, "b").is_ok());
    fs::rename(temp.path().join("a/b"), temp.path().join("moved")).unwrap();
    symlink(outside.path(), temp.path().join("a/b")).unwrap();
    assert!(open_in(&a, "b").is_err());
}

#[test]
fn r52_hostile_names_are_kept_as_they_are_or_left_out() {
    let names = ["a\nb", "\u{202e}gnp.exe", "\u{1b}[2J", " ", "-rf", "a\\b", "..."];
    let temp = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(temp.path().join(name), "").unwrap();
    }
    let not_text = temp.path().join(OsStr::from_bytes(b"\xff\xfe"));
    add(&not_text, &[("inside", "")]);
    rustix::fs::mknodat(CWD, temp.path().join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let mut expected = names.map(ToOwned::to_owned).to_vec();
    expected.sort();
    assert_eq!(paths(&read(temp.path(), true)), expected);
}

#[test]
fn r52_a_fifo_with_the_name_of_rules_does_not_block() {
    let temp = directory(&[(".git/", ""), ("a", "")]);
    rustix::fs::mknodat(CWD, temp.path().join(".gitignore"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(listed(temp.path()), ["a"]);
}

#[test]
fn r52_many_or_long_rules_do_not_count() {
    let temp = directory(&[(".git/", ""), ("a", ""), ("b", ""), ("sub/.gitignore", "c"), ("sub/c", "")]);
    let rules = temp.path().join(".gitignore");
    fs::write(&rules, format!("a\n{}", "#".repeat(300 << 10))).unwrap();
    assert_eq!(listed(temp.path()), ["a", "b", "sub/"]);
    fs::write(&rules, format!("a\n{}b\n", "x\n".repeat(4999))).unwrap();
    assert_eq!(listed(temp.path()), ["b", "sub/", "sub/c"], "there are no more than 5,000 in all");
}

#[test]
fn r52_a_huge_tree_is_read_in_bounded_time() {
    let temp = tempfile::tempdir().unwrap();
    for folder in 0..20 {
        let folder = temp.path().join(format!("folder{folder:02}"));
        fs::create_dir(&folder).unwrap();
        (0..1000).for_each(|n| drop(fs::write(folder.join(format!("file{n:04}.txt")), "")));
    }
    let begun = Instant::now();
    let tree = read(temp.path(), false);
    // A machine that is busy may not read all of it in time. Then the beginning is listed.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(tree.truncated || tree.files.len() == 20_020, "{}", tree.files.len());
    assert!(tree.files.len() >= 20 && &*tree.files[19].path == "folder19");
}

#[test]
fn r52_a_folder_with_more_names_than_are_read_is_listed_in_part() {
    let temp = tempfile::tempdir().unwrap();
    (0..MAX_NAMES + 10).for_each(|n| drop(fs::File::create(temp.path().join(n.to_string())).unwrap()));
    let tree = read(temp.path(), false);
    assert!(tree.truncated && !tree.files.is_empty() && tree.files.len() <= MAX_NAMES, "{}", tree.files.len());
}

#[test]
fn r52_a_deep_tree_ends_where_its_paths_are_too_long() {
    let temp = tempfile::tempdir().unwrap();
    let name = "d".repeat(100);
    let deep: Vec<&str> = std::iter::repeat_n(name.as_str(), 20).collect();
    fs::create_dir_all(temp.path().join(deep.join("/"))).unwrap();
    let tree = read(temp.path(), false);
    assert_eq!((tree.files.len(), tree.truncated), (10, false));
}

#[test]
fn r52_a_walk_that_no_caller_waits_for_ends() {
    let temp = directory(&[("a/b/c", "")]);
    let stop = CancellationToken::new();
    stop.cancel();
    let tree = walk_with(temp.path(), false, RulesReader::new(None), &stop).unwrap();
    assert!(tree.truncated && tree.files.is_empty());
}

#[test]
fn a_directory_that_is_gone_is_an_error_and_a_folder_is_left_out() {
    let temp = directory(&[("file", "")]);
    let stop = CancellationToken::new();
    for (path, kind) in [("gone", io::ErrorKind::NotFound), ("file", io::ErrorKind::NotADirectory)] {
        let error = walk(&temp.path().join(path), false, &stop).unwrap_err();
        assert_eq!(error.kind(), kind, "{path}");
    }
}
