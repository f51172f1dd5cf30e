//! Which folders are listed, and that nothing outside of the roots is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A home with some folders, and a directory next to it.
fn machine() -> (TempDir, PathBuf, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    let (home, outside) = (top.join("home"), top.join("outside"));
    for folder in ["home/src/bowline/.git", "home/Docs", "home/.config/x", "home/apps/tree", "outside/secret"] {
        fs::create_dir_all(top.join(folder)).unwrap();
    }
    fs::write(home.join("apps/tree/.git"), "gitdir: x").unwrap();
    fs::write(home.join("file"), "").unwrap();
    (temp, home, outside)
}

fn names(list: &FolderList) -> Vec<&str> {
    list.folders.iter().map(|folder| folder.name.as_str()).collect()
}

fn refused(roots: &Roots, path: &Path) -> (Code, String) {
    let problem = roots.list(Some(path), false).unwrap_err();
    (problem.code(), problem.loggable_detail().to_owned())
}

#[test]
fn folders_are_listed_by_name_from_the_first_root_on() {
    let (_temp, home, _) = machine();
    let roots = Roots::open(&[home.clone(), home.join("nowhere"), home.clone()]);
    let top = roots.list(None, false).unwrap();
    let text = home.to_str().unwrap();
    assert_eq!((top.path.as_str(), &top.parent, top.roots.as_slice()), (text, &None, &[text.to_owned()][..]));
    assert_eq!((names(&top), top.truncated), (vec!["apps", "Docs", "src"], false));
    assert_eq!(names(&roots.list(None, true).unwrap()), [".config", "apps", "Docs", "src"]);
    let src = roots.list(Some(&home.join("src")), false).unwrap();
    assert_eq!(src.parent.as_deref(), Some(text));
    assert_eq!(src.folders, [FolderEntry { name: "bowline".into(), git: true }]);
    let apps = roots.list(Some(&home.join("apps")), false).unwrap();
    assert_eq!(apps.folders, [FolderEntry { name: "tree".into(), git: true }], "a worktree");
    assert!(!top.folders[2].git);
    let both = Roots::open(&[home.clone(), home.join("src")]);
    assert_eq!(both.list(Some(&home.join("src")), false).unwrap().parent.as_deref(), Some(text), "a root in a root");
    let all = Roots::open(&["/".into()]).list(None, false).unwrap();
    assert_eq!((all.path.as_str(), all.parent), ("/", None));
}

#[test]
fn r52_nothing_outside_of_the_roots_is_listed_or_told() {
    let (_temp, home, outside) = machine();
    let link = |to: &Path, name: &str| symlink(to, home.join(name)).unwrap();
    link(&outside, "out");
    link(&outside.join("secret"), "secret");
    link(&outside.join("missing"), "missing");
    link(&home.join("src"), "work");
    let roots = Roots::open(std::slice::from_ref(&home));
    let paths = [
        outside.clone(),
        outside.join("secret"),
        outside.join("missing"),
        home.join(".."),
        home.join("../outside"),
        home.join("src/../../outside/missing"),
        home.join("out"),
        home.join("out/secret"),
        home.join("out/missing"),
        home.join("out/missing/deeper"),
        home.join("secret"),
        home.join("missing"),
        home.join("missing/deeper"),
        home.join("out/.."),
        "/".into(),
        "/missing".into(),
        PathBuf::from(format!("{}-other", home.display())),
    ];
    for path in &paths {
        let (code, detail) = refused(&roots, path);
        assert_eq!(code, Code::NotAllowed, "{path:?}");
        let expected = format!("only what is below {} can be listed; `gateway.roots` in", home.display());
        assert!(detail.contains(&expected), "{detail}");
    }
    assert_eq!(names(&roots.list(None, false).unwrap()), ["apps", "Docs", "src", "work"], "and no link that leads out");
    let work = roots.list(Some(&home.join("work")), false).unwrap();
    assert_eq!(Path::new(&work.path), home.join("src"), "a link that stays inside leads to the folder itself");
    let around = roots.list(Some(&home.join("src/../Docs/.")), false).unwrap();
    assert_eq!(Path::new(&around.path), home.join("Docs"));
}

#[test]
fn a_folder_below_a_root_that_cannot_be_listed_says_why() {
    let (_temp, home, _) = machine();
    symlink("loop", home.join("loop")).unwrap();
    let roots = Roots::open(std::slice::from_ref(&home));
    for (path, expected) in
        [("nothing", "there is no folder"), ("src/nothing/x", "there is no folder"), ("file", "is not a folder")]
    {
        let (code, detail) = refused(&roots, &home.join(path));
        assert_eq!(code, Code::NotFound, "{path}");
        assert!(detail.contains(expected) && detail.contains(path), "{detail}");
    }
    assert_eq!(refused(&roots, &home.join("loop")).0, Code::NotAllowed, "it cannot be told where it leads");
    assert_eq!(refused(&roots, &home.join("x".repeat(300))).0, Code::NotFound);
    let (code, detail) = refused(&Roots::open(&[home.join("nowhere")]), &home);
    assert!(code == Code::NotAllowed && detail.contains("none of the folders that may be listed exists"), "{detail}");
    assert!(Roots::open(&[]).list(None, false).is_err());
}

/// What is listed is the folder that was opened, wherever its path leads by then.
#[test]
fn r52_a_folder_that_is_replaced_meanwhile_shows_nothing_else() {
    let (_temp, home, outside) = machine();
    let roots = Roots::open(std::slice::from_ref(&home));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = openat(CWD, home.join("src"), flags, Mode::empty()).unwrap();
    fs::rename(home.join("src"), home.join("moved")).unwrap();
    symlink(&outside, home.join("src")).unwrap();
    assert_eq!(real_path(open.as_fd()).unwrap(), home.join("moved"));
    let (folders, _) = roots.read(&open, false).unwrap();
    assert_eq!(folders, [FolderEntry { name: "bowline".into(), git: true }]);
    fs::remove_dir_all(home.join("moved")).unwrap();
    assert!(real_path(open.as_fd()).is_err(), "it was deleted");
}

#[test]
fn r52_hostile_names_are_kept_as_they_are_or_left_out_and_there_are_not_too_many() {
    let (_temp, home, _) = machine();
    let many = home.join("many");
    for name in ["a\nb", "\u{202e}gnp", "z"] {
        fs::create_dir_all(many.join(name)).unwrap();
    }
    fs::create_dir(many.join(OsStr::from_bytes(b"\xff"))).unwrap();
    rustix::fs::mknodat(CWD, many.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let roots = Roots::open(std::slice::from_ref(&home));
    assert_eq!(names(&roots.list(Some(&many), false).unwrap()), ["a\nb", "z", "\u{202e}gnp"]);
    (0..2000).for_each(|n| fs::create_dir(many.join(format!("{n:04}"))).unwrap());
    let list = roots.list(Some(&many), false).unwrap();
    assert_eq!((list.folders.len(), list.truncated, names(&list)[1999]), (2000, true, "1999"));
}

#[test]
fn a_path_is_absolute_or_starts_with_the_home_directory() {
    let home = Some(Path::new("/home/me"));
    for (path, expected) in [("~", "/home/me"), ("~/src/", "/home/me/src"), ("/a//b/./", "/a/b"), ("/a/..", "/a/..")] {
        assert_eq!(wanted(path, home).unwrap().as_os_str(), expected);
    }
    for path in ["", "src", "./src", "../x", "~other", "/a\0b"] {
        assert_eq!(wanted(path, home).unwrap_err().code(), Code::BadRequest, "{path:?}");
    }
    assert_eq!(wanted("~", None).unwrap_err().code(), Code::BadRequest);
}
