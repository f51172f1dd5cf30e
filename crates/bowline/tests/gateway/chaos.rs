//! The gateway is killed again and again while many viewers watch and type over a bad network. No byte is lost or
//! repeated.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::faults::{Network, Random};
use super::gateway::{PATIENCE, World, wait_until};
use super::viewer::{End, Viewer};

const SESSIONS: u64 = 40;
const KILLS: u64 = 25;
/// The number of sessions with three clients instead of one.
const SHARED: u64 = 10;
/// Lines that each client types.
const LINES: u64 = 12;
/// Lines that a client has in flight at a time, each in its own frame.
const IN_FLIGHT: u64 = 5;
/// A client drops a connection that is silent for this long.
const SILENCE: Duration = Duration::from_millis(1500);

/// Prints a numbered block with its checksum for each line that it reads; the line `end` makes it exit with status 7.
const PROGRAM: &str = r#"stty -echo; echo ready; while read -r word; do
case $word in end) exit 7;; esac
block=$(seq -f "$word %.0f abcdefghijklmnopqrstuvwxyz 0123456789" 1 200)
printf 'got %s\n%s\nsum %s %s\n' "$word" "$block" "$word" "$(printf %s "$block" | cksum)"
done"#;

/// The progress of all clients together.
#[derive(Default)]
struct Progress {
    bytes: AtomicU64,
    dials: AtomicU64,
    /// How connections ended, and how often.
    ends: Mutex<BTreeMap<String, u64>>,
    /// Tells all clients to stop, so that a failure can name the client that is stuck.
    stop: AtomicBool,
}

#[test]
fn r19_kill_9_under_load_loses_and_repeats_nothing() {
    let seed = std::env::var("BOWLINE_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("BOWLINE_CHAOS_SEED={seed}");
    let mut random = Random::new(seed);
    let mut world = World::new();
    let ids: Vec<String> = (0..SESSIONS).map(|_| world.shell(PROGRAM)).collect();
    for id in &ids {
        wait_until("the program is ready", || world.ok(&["screen", id]).contains("ready").then_some(()));
    }
    let network = Network::faulty(world.address, seed);
    let progress = Arc::new(Progress::default());
    let clients: Vec<_> = ids
        .iter()
        .enumerate()
        .flat_map(|(at, id)| {
            let clients = if (at as u64) < SHARED { 3 } else { 1 };
            (0..clients).map(move |n| (at as u64 * 10 + n, id.clone()))
        })
        .map(|(number, id)| {
            let mut viewer = Viewer::new(network.address, &world.token, &id, number);
            viewer.repeats = true;
            let (progress, random) = (progress.clone(), Random::new(seed ^ (number + 1) << 20));
            std::thread::spawn(move || (number, id, watch(viewer, number, &progress, random)))
        })
        .collect();

    let mut ended = 0;
    for kill in 0..KILLS {
        // Each kill comes at a different moment: after a random number of bytes, or when there is no more output.
        let goal = progress.bytes.load(Ordering::SeqCst) + random.below(400_000);
        let deadline = Instant::now() + Duration::from_millis(500);
        while progress.bytes.load(Ordering::SeqCst) < goal && Instant::now() < deadline {
            std::thread::yield_now();
        }
        // In the last third, sessions are ended while there is no gateway, with the local command line.
        let ending = if kill < KILLS * 2 / 3 { &[] } else { &ids[ended..(ended + 5).min(ids.len())] };
        for id in ending {
            wait_until("the program has printed all of its input", || is_done(&world, id).then_some(()));
        }
        world.kill_gateway();
        for id in ending {
            world.ok(&["send", id, "end", "--enter"]);
        }
        ended += ending.len();
        world.start_gateway();
    }
    for id in &ids[ended..] {
        wait_until("the program has printed all of its input", || is_done(&world, id).then_some(()));
        world.ok(&["send", id, "end", "--enter"]);
    }

    let deadline = Instant::now() + PATIENCE;
    while clients.iter().any(|client| !client.is_finished()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    progress.stop.store(true, Ordering::SeqCst);
    eprintln!("{:#?}", progress.ends.lock().unwrap());
    for client in clients {
        let (number, id, viewer) = client.join().expect("a client panicked");
        check(&world, number, &id, &viewer);
    }
    for id in &ids {
        check_input(&world, id);
    }
    let dials = progress.dials.load(Ordering::SeqCst);
    let faults = network.faults.load(Ordering::SeqCst);
    eprintln!("{dials} dials, {faults} faults of the network, {KILLS} kills");
    assert!(faults > 0 && dials > KILLS, "the network had too few faults for a test");
}

/// Watches a session to its end, over as many connections as it takes, and types its lines.
fn watch(mut viewer: Viewer, number: u64, progress: &Progress, mut random: Random) -> Viewer {
    let mut lines = 0;
    while viewer.exit.is_none() && !progress.stop.load(Ordering::SeqCst) {
        progress.dials.fetch_add(1, Ordering::SeqCst);
        let mut end = viewer.dial(SILENCE);
        while end.is_ok() && !progress.stop.load(Ordering::SeqCst) {
            if lines < LINES && viewer.unacknowledged_lines() < IN_FLIGHT as usize {
                viewer.type_in(&format!("c{number}-{lines}\n"));
                lines += 1;
            }
            let before = viewer.output.len();
            end = viewer.step();
            progress.bytes.fetch_add((viewer.output.len() - before) as u64, Ordering::SeqCst);
        }
        let kind = format!("{:.60}", format!("{end:?}"));
        *progress.ends.lock().unwrap().entry(kind).or_default() += 1;
        match end {
            Err(End::Closed(code, reason)) => {
                let expected = [1000, 1001, 1011, 1013, 4408, 4409];
                assert!(expected.contains(&code), "client {number}: closed {code} {reason}");
            }
            Err(End::Refused(status)) => assert_eq!(status, 503, "client {number}"),
            Err(End::Cut) | Ok(()) => {}
        }
        if viewer.exit.is_none() {
            std::thread::sleep(Duration::from_millis(5 + random.below(40)));
        }
    }
    viewer
}

/// Whether the program has printed everything that its clients type.
fn is_done(world: &World, id: &str) -> bool {
    let log = String::from_utf8_lossy(&world.log_of(id)).into_owned();
    let last = format!("-{} ", LINES - 1);
    let sums = log.lines().filter(|line| line.starts_with("sum ") && line.contains(&last)).count();
    let clients = log.lines().filter(|line| line.starts_with("got ") && line.trim_end().ends_with("-0")).count();
    clients > 0 && sums == clients && (clients == 3 || !is_shared(&log))
}

/// Whether the session has three clients.
fn is_shared(log: &str) -> bool {
    let numbers = log.lines().filter_map(|line| line.strip_prefix("got c")?.split('-').next()?.parse::<u64>().ok());
    numbers.max().is_some_and(|number| number < SHARED * 10)
}

/// Checks that the client received exactly the session's output and its exit status.
fn check(world: &World, number: u64, id: &str, viewer: &Viewer) {
    let exit = viewer.exit.as_ref().unwrap_or_else(|| panic!("client {number} of {id} received no exit"));
    assert_eq!(exit["code"], 7, "client {number}");
    assert!(viewer.verdicts[1..].iter().all(|verdict| verdict == "exact"), "client {number}: {:?}", viewer.verdicts);
    let log = world.log_of(id);
    let tail = &log[log.len() - viewer.output.len().min(log.len())..];
    assert!(
        tail == viewer.output,
        "client {number} of {id}: received {} bytes, the log has {}",
        viewer.output.len(),
        log.len()
    );
    assert_eq!(viewer.first + viewer.output.len() as u64, exit["offset"].as_u64().unwrap(), "client {number}");
}

/// Checks that the program read every typed line once, in each client's order, and printed every block.
fn check_input(world: &World, id: &str) {
    let log = String::from_utf8(world.log_of(id)).unwrap().replace('\r', "");
    let mut lines_read: BTreeMap<u64, u64> = BTreeMap::new();
    for word in log.lines().filter_map(|line| line.strip_prefix("got ")) {
        let (client, line) = word.strip_prefix('c').and_then(|word| word.split_once('-')).expect("a typed line");
        let next = lines_read.entry(client.parse().unwrap()).or_default();
        assert_eq!(line.parse::<u64>().unwrap(), *next, "session {id}, client {client}");
        *next += 1;
    }
    assert!(lines_read.values().all(|lines| *lines == LINES), "session {id}: {lines_read:?}");
    let blocks = log.lines().filter(|line| line.starts_with("sum ")).count() as u64;
    assert_eq!(blocks, LINES * lines_read.len() as u64, "session {id}");
}
