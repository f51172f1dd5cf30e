use std::os::unix::fs::symlink;

use bowline_proto::ids::SessionId;

use super::*;
use crate::home::Home;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nthe rest";

/// A session's directory, which is removed with the first of the two.
fn session() -> (tempfile::TempDir, SessionDir) {
    let temp = tempfile::tempdir().unwrap();
    let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
    let dir = home.session(&SessionId::from_random([1; 12]));
    fs::create_dir_all(dir.path()).unwrap();
    (temp, dir)
}

fn names(dir: &SessionDir) -> Vec<String> {
    let names = fs::read_dir(dir.uploads()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != LOCK).collect()
}

#[test]
fn r51_an_upload_is_stored_once_and_for_its_owner_only() {
    let (_temp, dir) = session();
    let first = store(&dir, "shot.png", PNG).unwrap();
    assert_eq!((first.media_type, first.is_new), (MediaType::Png, true));
    assert!(first.id.as_str().ends_with("-shot.png"), "{}", first.id);
    assert_eq!(store(&dir, "shot.png", PNG).unwrap(), Upload { is_new: false, ..first.clone() });
    assert_eq!(read(&dir, &first.id).unwrap(), (MediaType::Png, PNG.to_vec()));
    let open = open(&dir, &first.id).unwrap();
    assert_eq!((open.len, open.media_type), (PNG.len() as u64, MediaType::Png));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&dir.uploads()), mode(&path(&dir, &first.id).unwrap())), (0o700, 0o600));
    let other = store(&dir, "shot.png", b"a text").unwrap();
    assert!(other.id.as_str().ends_with("-shot.png.txt"), "{}", other.id);
    assert_eq!(names(&dir).len(), 2);
}

#[test]
fn r52_what_cannot_be_an_upload_is_refused_and_leaves_nothing() {
    let (_temp, dir) = session();
    let code = |name: &str, content: &[u8]| store(&dir, name, content).unwrap_err().code();
    assert_eq!(code("a.png", b""), Code::BadRequest);
    assert_eq!(code("a/b", PNG), Code::BadRequest);
    assert_eq!(code("a.png", b"\0\0"), Code::BadType);
    assert_eq!(code("a.txt", &vec![b'a'; MAX_UPLOAD as usize + 1]), Code::TooLarge);
    assert!(!dir.uploads().exists());
    assert!(store(&dir, "a.txt", &vec![b'a'; MAX_UPLOAD as usize]).is_ok());
    let missing = "0123456789abcdef-a.png".parse().unwrap();
    assert_eq!(read(&dir, &missing).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::remove_dir_all(dir.path()).unwrap();
    assert_eq!(code("a.png", PNG), Code::UnknownSession);
    assert!(!dir.path().exists(), "a forgotten session does not come back");
}

/// A client takes "unknown session" as the end of it.
#[test]
fn only_a_session_without_its_directory_is_gone() {
    let (_temp, dir) = session();
    let missing = || UploadError::Io(io::ErrorKind::NotFound.into());
    assert_eq!(gone_or(missing(), &dir).code(), Code::Unreachable);
    fs::remove_dir_all(dir.path()).unwrap();
    assert_eq!(gone_or(missing(), &dir).code(), Code::UnknownSession);
    assert_eq!(gone_or(UploadError::Io(io::ErrorKind::StorageFull.into()), &dir).code(), Code::NoSpace);
}

#[test]
fn r52_the_uploads_of_a_session_are_limited() {
    let (_temp, dir) = session();
    let kept = store(&dir, "kept.txt", b"kept").unwrap().id;
    for n in 1..MAX_UPLOADS {
        fs::write(dir.uploads().join(format!("{n:016x}-a.txt")), "").unwrap();
    }
    assert!(matches!(store(&dir, "b.txt", b"b"), Err(UploadError::TooMany)));
    assert!(!store(&dir, "kept.txt", b"kept").unwrap().is_new, "what is there is no more");
    fs::remove_file(dir.uploads().join(format!("{:016x}-a.txt", 1))).unwrap();
    let large = File::create(dir.uploads().join(format!("{:016x}-a.txt", 2))).unwrap();
    large.set_len(MAX_TOTAL - 5).unwrap();
    assert!(matches!(store(&dir, "b.txt", b"bb"), Err(UploadError::Full)));
    assert!(store(&dir, "b.txt", b"b").unwrap().is_new);
    assert!(read(&dir, &kept).is_ok());
}

#[test]
fn r52_a_file_that_a_crash_left_unfinished_is_removed_and_does_not_count() {
    let (_temp, dir) = session();
    let id = store(&dir, "a.txt", b"a").unwrap().id;
    let unfinished = dir.uploads().join("0123456789abcdef-b.png.new");
    File::create(&unfinished).unwrap().set_len(MAX_TOTAL).unwrap();
    assert!(!store(&dir, "a.txt", b"a").unwrap().is_new);
    assert!(store(&dir, "c.txt", b"c").unwrap().is_new);
    assert!(!unfinished.exists());
    assert!(read(&dir, &id).is_ok());
}

/// A phone that did not get the answer sends the file again, while the first attempt may still be written.
#[test]
fn r37_uploads_at_the_same_time_are_all_stored_and_the_same_one_once() {
    let (_temp, dir) = session();
    let content = vec![b'x'; 300_000];
    let stored: Vec<Upload> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12)
            .map(|n| {
                let (dir, content) = (&dir, &content);
                scope.spawn(move || store(dir, &format!("{}.txt", n % 3), content).unwrap())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(stored.iter().filter(|upload| upload.is_new).count(), 3);
    assert_eq!(names(&dir).len(), 3);
    assert!(stored.iter().all(|upload| read(&dir, &upload.id).unwrap().1 == content));
}

#[test]
fn r52_links_are_neither_followed_nor_kept() {
    let (temp, dir) = session();
    let secret = temp.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let id = store(&dir, "a.txt", b"secret").unwrap().id;
    let file = path(&dir, &id).unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    assert!(read(&dir, &id).is_err_and(|error| files::is_damage(&error)));
    assert!(open(&dir, &id).is_err_and(|error| files::is_damage(&error)));
    assert!(store(&dir, "a.txt", b"secret").unwrap().is_new, "the link is replaced");
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    let elsewhere = temp.path().join("elsewhere");
    fs::rename(dir.uploads(), &elsewhere).unwrap();
    symlink(&elsewhere, dir.uploads()).unwrap();
    assert!(read(&dir, &id).is_err_and(|error| files::is_damage(&error)));
    assert!(open(&dir, &id).is_err_and(|error| files::is_damage(&error)));
    assert_eq!(store(&dir, "b.txt", b"b").unwrap_err().code(), Code::Unreachable);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 2, "nothing is written where a link points");
}
