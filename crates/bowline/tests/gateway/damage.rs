//! Generated damage to every file of a session, living and ended: no call hangs or fails internally, and no other
//! session is affected. `BOWLINE_DAMAGE_SEED` chooses which bits are flipped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::Value;

use super::damaged::make_fifo;
use super::faults::Random;
use super::gateway::{World, wait_until};
use super::http::Response;
use super::viewer::{End, Viewer, contains};

const FILES: [&str; 7] = ["meta.json", "log", "events.jsonl", "head", "screen", "lock", "sock"];
/// A call that takes this long hangs.
const HANGS: Duration = Duration::from_secs(30);

/// What happens to a file.
#[derive(Clone, Debug)]
enum Damage {
    Remove,
    Zero,
    Truncate(usize),
    Flip(usize, u8),
    /// Far longer than any file that Bowline writes. It is sparse, so it takes no space.
    Lengthen,
    Directory,
    Fifo,
    Device,
}

impl Damage {
    /// Every kind of damage, at each offset of the file that matters.
    fn all(file: &str, content: &[u8], random: &mut Random) -> Vec<Damage> {
        let mut all = vec![Damage::Remove, Damage::Directory, Damage::Fifo, Damage::Device];
        if file == "sock" || file == "lock" {
            return all;
        }
        let end = content.len();
        let mut at: Vec<usize> = match file {
            // Its magic, the length of its ring, its start, its end, and the ring.
            "log" => vec![0, 8, 15, 16, 23, 24, 27, 31, 32, 4095, 4096],
            // Its magic, version, checksum, offset, size, and the length of the epoch.
            "screen" => vec![0, 4, 5, 12, 13, 20, 21, 23, 25, 28, 29],
            // Each line of an object.
            _ => content.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).step_by(3).collect(),
        };
        at.extend([0, end / 2, end.saturating_sub(1)]);
        at.retain(|at| *at < end);
        at.sort_unstable();
        at.dedup();
        all.extend([Damage::Zero, Damage::Lengthen]);
        all.extend(at.iter().map(|at| Damage::Truncate(*at)));
        all.extend(at.iter().map(|at| Damage::Flip(*at, 1 << random.below(8))));
        let anywhere =
            |random: &mut Random| Damage::Flip(random.below(end.max(1) as u64) as usize, 1 << random.below(8));
        if end > 0 {
            all.extend((0..4).map(|_| anywhere(random)));
        }
        all
    }

    fn apply(&self, path: &Path, content: &[u8]) {
        let mut content = content.to_vec();
        match self {
            Damage::Zero => content.fill(0),
            Damage::Truncate(at) => content.truncate(*at),
            Damage::Flip(at, bit) => content[*at] ^= bit,
            Damage::Lengthen => {
                let file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
                return file.set_len(1 << 40).unwrap();
            }
            Damage::Remove => return drop(fs::remove_file(path)),
            Damage::Directory | Damage::Fifo | Damage::Device => {
                // The process of a living session may put back what is removed, so it is replaced in one step.
                let new = path.with_extension("damage");
                match self {
                    Damage::Fifo => make_fifo(&new),
                    Damage::Device => symlink("/dev/zero", &new).unwrap(),
                    _ => fs::create_dir_all(new.join("full")).unwrap(),
                }
                return replace(path, &new);
            }
        }
        fs::write(path, content).unwrap();
    }
}

/// Puts `new` in the place of `path`, in one step. A plain rename does not put a directory in the place of a file.
fn replace(path: &Path, new: &Path) {
    match renameat_with(CWD, new, CWD, path, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT) => fs::rename(new, path).unwrap(),
        exchanged => {
            exchanged.unwrap();
            fs::remove_file(new).unwrap();
        }
    }
}

#[test]
fn r52_generated_damage_to_the_files_of_an_ended_session_is_contained() {
    let case = Case::new();
    let id = case.world.shell("echo its output; echo more of it");
    case.wait_for(&id, "exited");
    let dir = case.world.session_dir(&id);
    let ended = || assert_eq!(case.call("DELETE", &id, "?keep=true").status, 204);
    ended();
    let whole: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    let mut random = case.random();
    for file in FILES.into_iter().filter(|file| *file != "sock") {
        let path = dir.join(file);
        let content = whole.iter().find(|(found, _)| *found == path).map_or(&[][..], |(_, content)| content);
        for damage in Damage::all(file, content, &mut random) {
            damage.apply(&path, content);
            let what = format!("{}, an ended session, {file}: {damage:?}", case.seed);
            case.check_reads(&id, &what);
            case.check_attach(&id, &what);
            let restarted = case.call("POST", &id, "/restart");
            check_status(&restarted, &[200, 403, 404, 422, 426, 503], &what);
            let removed = case.call("DELETE", &id, "?grace=0");
            check_status(&removed, &[204, 403, 404, 503], &what);
            case.check_neighbours(&what);
            // As it was.
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir(&dir).unwrap();
            whole.iter().for_each(|(path, content)| fs::write(path, content).unwrap());
        }
    }
    case.wait_for(&id, "exited");
    ended();
}

#[test]
fn r52_generated_damage_to_the_files_of_a_living_session_is_contained() {
    let case = Case::new();
    let mut random = case.random();
    let start = |file: &str| {
        let id = case.world.shell("echo its output; exec cat");
        let saved =
            || fs::read(case.world.session_dir(&id).join("screen")).is_ok_and(|saved| contains(&saved, "its output"));
        wait_until("it has saved its screen", || (file != "screen" || saved()).then_some(()));
        id
    };
    for file in FILES {
        let mut id = start(file);
        let path = |id: &str| case.world.session_dir(id).join(file);
        let content = if file == "sock" { Vec::new() } else { fs::read(path(&id)).unwrap_or_default() };
        let all = Damage::all(file, &content, &mut random);
        // Its process has the files open, so most damage does not reach it.
        let some = all.into_iter().enumerate().filter(|(n, _)| *n < 6 || n % 5 == 0).map(|(_, damage)| damage);
        for damage in some {
            let content = if file == "sock" { Vec::new() } else { fs::read(path(&id)).unwrap_or_default() };
            damage_if_it_fits(&damage, &path(&id), &content);
            let what = format!("{}, a living session, {file}: {damage:?}", case.seed);
            case.check_reads(&id, &what);
            case.wait_for(&id, "running");
            let mut viewer = case.viewer(&id);
            wait_until(&what, || viewer.dial(HANGS).ok());
            viewer.type_in("typed\n");
            viewer.until("the echo", |viewer| contains(&viewer.output, "typed\r\ntyped"));
            assert_eq!(case.call("GET", &id, "/screen").status, 200, "{what}");
            let restarted = case.call("POST", &id, "/restart");
            assert_eq!((restarted.status, &restarted.json()["state"]), (200, &"running".into()), "{what}: not twice");
            drop(viewer);
            let removed = case.call("DELETE", &id, "?grace=0");
            assert_eq!(removed.status, 204, "{what}: {}", removed.text());
            assert!(!case.world.session_dir(&id).exists(), "{what}");
            case.check_neighbours(&what);
            id = start(file);
        }
        assert_eq!(case.call("DELETE", &id, "?grace=0").status, 204);
    }
}

/// Another session's file may be shorter than the one that the damage was generated for.
fn damage_if_it_fits(damage: &Damage, path: &Path, content: &[u8]) {
    match damage {
        Damage::Flip(at, _) if *at >= content.len() => {}
        damage => damage.apply(path, content),
    }
}

/// A gateway with a running and an ended session that must not be affected.
struct Case {
    world: World,
    seed: String,
    running: String,
    ended: String,
}

impl Case {
    fn new() -> Case {
        let seed = format!("BOWLINE_DAMAGE_SEED={}", seed());
        eprintln!("{seed}");
        let world = World::with(&[], "[gateway.limits]\nattach_rate = 100000\n");
        let (running, ended) = (world.shell("exec cat"), world.shell("echo the neighbour"));
        let case = Case { world, seed, running, ended };
        case.wait_for(&case.ended, "exited");
        case
    }

    fn random(&self) -> Random {
        Random::new(seed())
    }

    fn call(&self, method: &str, id: &str, rest: &str) -> Response {
        self.world.call(method, &format!("/v1/sessions/{id}{rest}"), &Value::Null)
    }

    #[track_caller]
    fn wait_for(&self, id: &str, state: &str) {
        wait_until(&format!("{id} is {state}"), || {
            let answer = self.call("GET", id, "");
            (answer.status == 200 && answer.json()["state"] == state).then_some(())
        });
    }

    fn viewer(&self, id: &str) -> Viewer {
        Viewer::new(self.world.address, &self.world.token, id, 1)
    }

    #[track_caller]
    fn check_reads(&self, id: &str, what: &str) {
        check_status(&self.call("GET", id, ""), &[200, 404, 503], what);
        check_status(&self.call("GET", id, "/screen"), &[200, 404, 410, 503], what);
        check_status(&self.call("GET", id, "/log"), &[200, 404, 410, 503], what);
    }

    /// Attaches to an ended session, to its end.
    #[track_caller]
    fn check_attach(&self, id: &str, what: &str) {
        let mut viewer = self.viewer(id);
        let end = match viewer.dial(HANGS) {
            Err(end) => end,
            Ok(()) => loop {
                if let Err(end) = viewer.step() {
                    break end;
                }
            },
        };
        let allowed = match &end {
            End::Closed(code, _) => [1000, 1013].contains(code),
            End::Refused(status) => [403, 404, 426, 503].contains(status),
            End::Cut => false,
        };
        assert!(allowed, "{what}: {end:?}");
    }

    #[track_caller]
    fn check_neighbours(&self, what: &str) {
        let list = self.world.call("GET", "/v1/sessions", &Value::Null);
        assert_eq!(list.status, 200, "{what}: {}", list.text());
        let sessions = list.json()["sessions"].as_array().unwrap().clone();
        assert!(sessions.iter().all(|session| session["offset"].as_u64().unwrap() < 1 << 53), "{what}: {sessions:?}");
        for (id, state) in [(&self.running, "running"), (&self.ended, "exited")] {
            let found = sessions.iter().find(|session| session["id"] == **id);
            assert_eq!(found.map(|session| &session["state"]), Some(&state.into()), "{what}");
        }
        assert_eq!(self.call("GET", &self.ended, "/screen").text(), "the neighbour\n", "{what}");
        assert_eq!(self.call("GET", &self.running, "/screen").status, 200, "{what}");
    }
}

fn seed() -> u64 {
    std::env::var("BOWLINE_DAMAGE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[track_caller]
fn check_status(answer: &Response, allowed: &[u16], what: &str) {
    assert!(allowed.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
}
