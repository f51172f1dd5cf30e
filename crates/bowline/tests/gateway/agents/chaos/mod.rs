//! Six writers and two users who answer the same approvals, over a network that refuses, repeats and loses requests, while
//! the gateway is killed. Followers of every kind see the same events, each once.

mod followers;
mod network;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bowline_client::local::LocalDialer;
use bowline_client::post::{Change, Poster};
use bowline_client::remote::{Gateway, RemoteDialer};
use bowline_host::home::Home;
use bowline_proto::backoff::Backoff;
use bowline_proto::post::{Delivery, State, WaitReason};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::super::faults::Random;
use super::super::gateway::{PATIENCE, World, wait_until};
use super::{
    assert_contiguous, assert_each_approval_has_one_outcome, assert_each_run_ends_once, assert_same_events, world_with,
};
use followers::GatewayState;
use network::ChaosNetwork;

const WRITERS: u64 = 6;
const PROMPTS: u64 = 5;
const KILLS: u64 = 4;
/// The id of the last command. Followers stop after its run.
const THE_END: &str = "the-end";

/// What every client needs to know.
#[derive(Clone)]
struct Journey {
    session: String,
    epoch: String,
    token: String,
    /// The network through which clients reach the gateway.
    network: SocketAddr,
    gateway: GatewayState,
    backoff: Backoff,
}

#[test]
fn r37_every_prompt_runs_once_and_every_follower_sees_the_same_over_a_bad_network() {
    let seed = std::env::var("BOWLINE_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("BOWLINE_CHAOS_SEED={seed}");
    let mut world = world_with(&[("FAKE_AGENT_LOG", "received")]);
    let session = world.agent();
    let network = ChaosNetwork::new(world.address, seed);
    let journey = Journey {
        epoch: world.describe(&session)["epoch"].as_str().unwrap().to_owned(),
        session: session.clone(),
        token: world.token.clone(),
        network: network.address,
        gateway: GatewayState::default(),
        backoff: Backoff { base: Duration::from_millis(20), cap: Duration::from_millis(200), tries: None },
    };
    journey.gateway.set(true);
    let followers = start_followers(&world, &journey, seed);
    let writers: Vec<_> = (0..WRITERS).map(|writer| spawn(&journey, move |journey| write(&journey, writer))).collect();
    kill_gateways(&mut world, &journey, seed);
    for (writer, thread) in writers.into_iter().enumerate() {
        thread.join().unwrap_or_else(|_| panic!("writer {writer}, seed {seed}"));
    }
    let all = (WRITERS * PROMPTS) as usize;
    wait_until("all runs have ended", || (world.events_of(&session, "complete").len() == all).then_some(()));
    world.run_prompt(&session, THE_END, &["say the end"]);

    let journal = world.journal(&session);
    let Followers { streams, answers } = followers;
    for (name, thread) in streams {
        let records = thread.join().unwrap_or_else(|_| panic!("follower by {name}, seed {seed}"));
        assert_same_events(&records, &journal);
    }
    assert_contiguous(&journal);
    assert_each_run_ends_once(&journal);
    assert_each_approval_has_one_outcome(&journal);
    check_prompts(&world, &session);
    check_answers(&world, &session, answers.map(|thread| thread.join().expect("an approver panicked")));
    let faults = network.faults();
    eprintln!("{} events, {faults:?}", journal.len());
    for kind in ["TooMany", "Unavailable", "LostRequest", "LostResponse", "Duplicate", "cut sse", "cut websocket"] {
        assert!(faults.contains_key(kind) || seed != 1, "the network had too few faults for a test: {faults:?}");
    }
}

type Thread<T> = std::thread::JoinHandle<T>;
/// How the answers of one user were settled, by approval.
type Answers = BTreeMap<String, Delivery>;

fn spawn<T: Send + 'static>(journey: &Journey, run: impl FnOnce(Journey) -> T + Send + 'static) -> Thread<T> {
    let journey = journey.clone();
    std::thread::spawn(move || run(journey))
}

struct Followers {
    streams: Vec<(&'static str, Thread<Vec<Value>>)>,
    /// Those of the two users.
    answers: [Thread<Answers>; 2],
}

/// Starts one follower of each kind. The one on the session's own machine tells the approvers what to answer.
fn start_followers(world: &World, journey: &Journey, seed: u64) -> Followers {
    let ([approvals, same_approvals], answers) = approvers(journey);
    let home = Home::new(world.state(), world.path().join("r")).unwrap();
    let local = spawn(journey, move |journey| {
        let dir = home.session(&journey.session.parse().unwrap());
        let dial = || Box::new(LocalDialer::new(home.clone(), dir.clone())) as _;
        followers::by_attach(&journey, dial, Random::new(seed ^ 1), move |event| {
            if event["type"] == "approval_requested" {
                let id = event["approval"]["id"].as_str().unwrap();
                approvals.send(id.to_owned()).unwrap();
                same_approvals.send(id.to_owned()).unwrap();
            }
        })
    });
    let remote = spawn(journey, move |journey| {
        let id = journey.session.parse().unwrap();
        let dial = || Box::new(RemoteDialer::new(gateway(&journey), &id)) as _;
        followers::by_attach(&journey, dial, Random::new(seed ^ 2), |_| {})
    });
    let sse = spawn(journey, |journey| followers::by_sse(&journey));
    let websocket = spawn(journey, |journey| followers::by_websocket(&journey));
    let streams = vec![("local attach", local), ("remote attach", remote), ("SSE", sse), ("WebSocket", websocket)];
    Followers { streams, answers }
}

/// Two users who answer every approval: one allows, the other denies.
fn approvers(journey: &Journey) -> ([Sender<String>; 2], [Thread<Answers>; 2]) {
    let start = |kind: &'static str| {
        let (sender, receiver) = channel();
        (sender, spawn(journey, move |journey| answer_all(&journey, kind, &receiver)))
    };
    let ((first, allows), (second, denies)) = (start("approve"), start("deny"));
    ([first, second], [allows, denies])
}

/// A client of the gateway, through the bad network.
fn gateway(journey: &Journey) -> Gateway {
    let address = format!("http://{}", journey.network).parse().unwrap();
    Gateway::new(address, &journey.token).unwrap()
}

/// Sends the prompts of a writer at once, and waits until all are delivered.
fn write(journey: &Journey, writer: u64) {
    let poster = Poster::start(gateway(journey)).unwrap();
    for n in 0..PROMPTS {
        // Every third one needs an answer.
        let ask = if (writer + n).is_multiple_of(3) { format!("ask t{writer}-{n} deploy\n") } else { String::new() };
        let command = json!({"type": "prompt", "text": format!("{ask}say {writer}-{n}")});
        poster.send_with_id(&journey.session, &format!("w{writer}-{n}"), command).unwrap();
    }
    let mut delivered = 0;
    while delivered < PROMPTS {
        if let Some(delivery) = next_settled(&poster).1 {
            assert!(matches!(delivery, Delivery::Accepted { .. }), "{delivery:?}");
            delivered += 1;
        }
    }
}

/// Answers each approval, and returns how that ended.
fn answer_all(journey: &Journey, kind: &str, approvals: &Receiver<String>) -> Answers {
    let poster = Poster::start(gateway(journey)).unwrap();
    let mut settled = Answers::new();
    for approval in approvals {
        let id = format!("{kind}-{approval}");
        poster.send_with_id(&journey.session, &id, json!({"type": kind, "approval": approval})).unwrap();
        let delivery = loop {
            if let (changed, Some(delivery)) = next_settled(&poster)
                && changed == id
            {
                break delivery;
            }
        };
        settled.insert(approval, delivery);
    }
    settled
}

/// Waits for the next entry that changes. Returns its id, and how it was settled, if it was.
fn next_settled(poster: &Poster) -> (String, Option<Delivery>) {
    loop {
        match poster.poll_change() {
            Some(Change::Shown(entry)) => {
                return match entry.state {
                    State::Delivered(delivery) => (entry.id, Some(delivery)),
                    State::Failed(_) | State::Waiting { why: WaitReason::Login } => panic!("{entry:?}"),
                    State::Waiting { .. } | State::Sending { .. } | State::Retrying { .. } => (entry.id, None),
                };
            }
            Some(Change::Hidden(_)) => {}
            None => {
                let within = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
                let changed = poll(&mut [PollFd::from_borrowed_fd(poster.fd(), PollFlags::IN)], Some(&within));
                assert_ne!(changed, Ok(0), "no entry changes");
            }
        }
    }
}

/// Kills the gateway each time that the journal has come so far.
fn kill_gateways(world: &mut World, journey: &Journey, seed: u64) {
    let mut random = Random::new(seed ^ 3);
    let mut at: Vec<u64> = (0..KILLS).map(|_| 5 + random.below(WRITERS * PROMPTS * 3)).collect();
    at.sort_unstable();
    for at in at {
        wait_until("the journal goes on", || (world.journal(&journey.session).len() as u64 >= at).then_some(()));
        journey.gateway.set(false);
        world.kill_gateway();
        world.start_gateway();
        journey.gateway.set(true);
    }
}

/// Each prompt reached the agent once, and each writer's in their order.
fn check_prompts(world: &World, session: &str) {
    let log = std::fs::read_to_string(world.file("received")).unwrap();
    let prompts = world.events_of(session, "prompt");
    for writer in 0..WRITERS {
        for n in 0..PROMPTS {
            assert_eq!(log.matches(&format!("say {writer}-{n}")).count(), 1, "sent to the agent once: {writer}-{n}");
        }
        let is_own = |command: &&str| command.starts_with(&format!("w{writer}-"));
        let order: Vec<&str> = prompts.iter().filter_map(|event| event["command"].as_str()).filter(is_own).collect();
        assert_eq!(order, (0..PROMPTS).map(|n| format!("w{writer}-{n}")).collect::<Vec<_>>());
    }
}

/// Of each pair of answers, one was accepted and decided the outcome, and the other user was told which.
fn check_answers(world: &World, session: &str, answers: [Answers; 2]) {
    let resolved = world.events_of(session, "approval_resolved");
    assert_eq!(
        resolved.len(),
        (0..WRITERS * PROMPTS).filter(|n| (n / PROMPTS + n % PROMPTS).is_multiple_of(3)).count()
    );
    for event in resolved {
        let approval = event["approval"].as_str().unwrap();
        let [allowed, denied] = &answers;
        let (winner, loser, kind) = match event["outcome"].as_str().unwrap() {
            "allowed" => (&allowed[approval], &denied[approval], "approve"),
            "denied" => (&denied[approval], &allowed[approval], "deny"),
            other => panic!("{approval}: {other}"),
        };
        assert_eq!(event["command"], format!("{kind}-{approval}"));
        assert!(matches!(winner, Delivery::Accepted { .. }), "{approval}: {winner:?}");
        let Delivery::AlreadyAnswered { outcome, .. } = loser else { panic!("{approval}: {loser:?}") };
        assert_eq!(json!(outcome), event["outcome"]);
    }
}
