//! The simulated world of one seed: users act, requests travel, clocks jump, and the result is checked.

mod result;

use std::collections::{BTreeMap, BTreeSet};

use bowline_proto::post::{
    Action, Delivery, Lane, MAX_SESSION_ENTRIES, Response, ResponseClass, SEND_WITHIN, State, WaitReason,
    classify_response,
};
use serde_json::{Value, json};

use super::browser::Tab;
use super::network::RequestFate;
use super::rng::Rng;
use super::server::Server;

/// How long the faults last, in milliseconds of true time.
const FAULTS: u64 = 120_000;
/// More requests than this in one seed mean that something spins.
const MAX_REQUESTS: u64 = 5_000;
/// The shortest time between two tries, in milliseconds: 0.5 s less 20 %.
const MIN_DELAY: u64 = 400;
const SESSIONS: [&str; 2] = ["k3v9x0q2m7aa", "bbbbbbbbbbbb"];

/// Counts of what happened, to check that the faults really occur.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) requests: u64,
    pub(crate) duplicates: u64,
    pub(crate) by_event: u64,
    pub(crate) late_proofs: u64,
    pub(crate) failed: u64,
    pub(crate) reloads: u64,
    pub(crate) jumps: u64,
    pub(crate) removed: u64,
    pub(crate) refused: u64,
    pub(crate) left_out: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.sent += other.sent;
        self.requests += other.requests;
        self.duplicates += other.duplicates;
        self.by_event += other.by_event;
        self.late_proofs += other.late_proofs;
        self.failed += other.failed;
        self.reloads += other.reloads;
        self.jumps += other.jumps;
        self.removed += other.removed;
        self.refused += other.refused;
        self.left_out += other.left_out;
    }
}

/// Something on its way.
enum InTransit {
    Request {
        tab: u64,
        session: String,
        id: String,
        attempt: u64,
        command: Value,
        back: Option<u64>,
        silent: bool,
    },
    Response {
        tab: u64,
        id: String,
        attempt: u64,
        response: Response,
    },
    /// One event of a session's journal, on an event stream.
    Event {
        tab: u64,
        session: String,
        seq: u64,
        id: String,
    },
    /// Another tab removed the entry from the storage.
    Removed {
        tab: u64,
        id: String,
    },
}

/// A command that a user sent.
struct SentCommand {
    id: String,
    session: &'static str,
    lane: Lane,
    writer: u64,
}

pub(crate) struct World {
    rng: Rng,
    now: u64,
    /// The wall clock is ahead of the true time by this much.
    ahead: u64,
    server: Server,
    tabs: Vec<Tab>,
    tab_count: u64,
    storage: BTreeMap<String, String>,
    in_transit: BTreeMap<(u64, u64), InTransit>,
    transit_count: u64,
    /// About one request in this many goes wrong; 0 for none.
    faults: u64,
    /// In the order of sending.
    sent: Vec<SentCommand>,
    discarded: BTreeSet<String>,
    settled: BTreeSet<String>,
    tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let faults = rng.between(1, 4);
        World {
            rng,
            now: 0,
            ahead: 1_700_000_000_000,
            server: Server::default(),
            tabs: Vec::new(),
            tab_count: 0,
            storage: BTreeMap::new(),
            in_transit: BTreeMap::new(),
            transit_count: 0,
            faults,
            sent: Vec::new(),
            discarded: BTreeSet::new(),
            settled: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    pub(crate) fn run(mut self) -> Tally {
        self.open_tab();
        while self.now < FAULTS {
            let until = self.now + self.rng.between(1, 4_000);
            self.run_until(until);
            self.act();
        }
        self.recover();
        self.check();
        self.tally
    }

    fn wall(&self) -> u64 {
        self.now + self.ahead
    }

    fn open_tab(&mut self) {
        self.tab_count += 1;
        self.tabs.push(Tab::open(self.tab_count, self.tab_count, &self.storage, self.wall()));
        self.work(self.tabs.len() - 1);
    }

    fn post(&mut self, after: u64, item: InTransit) {
        self.transit_count += 1;
        self.in_transit.insert((self.now + after, self.transit_count), item);
    }

    /// Delivers what is in transit, and fires timers until this time.
    fn run_until(&mut self, until: u64) {
        loop {
            let arrival = self.in_transit.first_key_value().map(|(key, _)| key.0).filter(|at| *at <= until);
            let timer = self.tabs.iter().filter_map(|tab| tab.timer).min().filter(|at| *at <= until);
            match (arrival, timer) {
                (Some(at), timer) if timer.is_none_or(|timer| at <= timer) => {
                    self.now = self.now.max(at);
                    let (_, item) = self.in_transit.pop_first().unwrap();
                    self.deliver(item);
                }
                (_, Some(at)) => {
                    self.now = self.now.max(at);
                    let tab = self.tabs.iter().position(|tab| tab.timer == Some(at)).unwrap();
                    let (jitter, wall) = (self.rng.jitter(), self.wall());
                    self.tabs[tab].timer = None;
                    self.tabs[tab].queue.handle_timeout(jitter, wall);
                    let next = self.tabs[tab].queue.poll_timeout();
                    assert!(next.is_none_or(|next| next > wall), "a timer fires again at once");
                    self.work(tab);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// Does what the queue of a tab wants.
    fn work(&mut self, tab: usize) {
        while let Some(action) = self.tabs[tab].queue.poll_action() {
            let (number, entry) = (self.tabs[tab].number, &self.tabs[tab].queue);
            match action {
                Action::Send { id, attempt } => {
                    let Some(entry) = entry.entry(&id) else { continue };
                    let (session, command) = (entry.session.clone(), entry.command.clone());
                    let is_stored = self.storage.contains_key(&id) || self.server.has_run(&id);
                    assert!(
                        is_stored || self.settled.contains(&id) || self.discarded.contains(&id),
                        "sent before stored"
                    );
                    assert!(
                        entry.made + SEND_WITHIN.as_millis() as u64 > self.wall(),
                        "{id} is sent after its ten minutes"
                    );
                    let since = self.tabs[tab].waits.remove(&id);
                    assert!(since.is_none_or(|since| self.now >= since + MIN_DELAY), "{id} is sent again too soon");
                    self.send(number, session, id, attempt, command);
                }
                Action::Drop { attempt, .. } => drop(self.tabs[tab].dropped.insert(attempt)),
                Action::Store { id } => {
                    let Some(entry) = entry.entry(&id) else { continue };
                    self.tally.failed += u64::from(matches!(entry.state, State::Failed(_)));
                    self.storage.insert(id, entry.to_stored());
                }
                Action::Unstore { id } => {
                    if self.storage.remove(&id).is_some() {
                        let others: Vec<_> =
                            self.tabs.iter().map(|tab| tab.number).filter(|other| *other != number).collect();
                        for tab in others {
                            let after = self.rng.between(1, 3_000);
                            self.post(after, InTransit::Removed { tab, id: id.clone() });
                        }
                    }
                    let wall = self.wall();
                    self.tally.left_out += self.tabs[tab].restore_left_out(&self.storage, wall);
                }
                Action::Show { id } => self.check_state(tab, &id),
                Action::Hide { .. } => {}
            }
        }
        let (now, wall) = (self.now, self.wall());
        let tab = &mut self.tabs[tab];
        tab.timer = tab.queue.poll_timeout().map(|at| now + at.saturating_sub(wall));
    }

    fn check_state(&mut self, tab: usize, id: &str) {
        let Some(entry) = self.tabs[tab].queue.entry(id) else { return };
        if let State::Delivered(delivery) = &entry.state {
            if matches!(delivery, Delivery::Accepted { .. }) {
                assert!(self.server.has_run(id), "{id} is shown as delivered, but was not run");
            }
            self.settled.insert(id.to_owned());
        }
    }

    fn send(&mut self, tab: u64, session: String, id: String, attempt: u64, command: Value) {
        self.tally.requests += 1;
        assert!(self.tally.requests < MAX_REQUESTS, "too many requests: something spins");
        let offline = self.tabs.iter().any(|other| other.number == tab && other.offline);
        let mut fate = match self.faults {
            0 => RequestFate::good(&mut self.rng),
            faults => RequestFate::faulty(&mut self.rng, faults),
        };
        if offline {
            let response = Response::Missing { why: "offline".to_owned() };
            fate = RequestFate { arrivals: vec![], back: None, instead: Some((5, response)) };
        }
        for (i, after) in fate.arrivals.iter().enumerate() {
            let (session, id, command) = (session.clone(), id.clone(), command.clone());
            // The response to a doubled request goes nowhere.
            let silent = i > 0 || fate.instead.is_some();
            self.post(*after, InTransit::Request { tab, session, id, attempt, command, back: fate.back, silent });
        }
        if let Some((after, response)) = fate.instead {
            self.post(after, InTransit::Response { tab, id, attempt, response });
        }
    }

    fn deliver(&mut self, item: InTransit) {
        let wall = self.wall();
        let place = |tabs: &[Tab], number| tabs.iter().position(|tab| tab.number == number);
        match item {
            InTransit::Request { tab, session, id, attempt, command, back, silent } => {
                let response = self.server.handle(&session, &id, &command, self.now);
                self.tally.duplicates += u64::from(matches!(response, Response::Http { status: 200, .. }));
                if let Some(back) = back.filter(|_| !silent) {
                    self.post(back, InTransit::Response { tab, id, attempt, response });
                }
            }
            InTransit::Response { tab, id, attempt, response } => {
                let Some(tab) = place(&self.tabs, tab) else { return };
                let was_dropped = self.tabs[tab].dropped.contains(&attempt);
                // Most drivers cannot tell the queue about dropped requests, but one may.
                if was_dropped && self.rng.one_in(2) {
                    return;
                }
                let (jitter, queue) = (self.rng.jitter(), &mut self.tabs[tab].queue);
                let before = queue.entry(&id).map(|entry| entry.state.clone());
                queue.handle_response(&id, attempt, &response, jitter, wall);
                let class = classify_response(&id, &response);
                let is_proof = matches!(class, ResponseClass::Delivered(Delivery::Accepted { .. }));
                if was_dropped && !is_proof {
                    let after = queue.entry(&id).map(|entry| entry.state.clone());
                    assert_eq!(after, before, "the response to a dropped request changes {id}");
                }
                match (before, queue.entry(&id).map(|entry| &entry.state)) {
                    (Some(State::Sending { .. }), Some(State::Retrying { .. })) => {
                        self.tabs[tab].waits.insert(id, self.now);
                    }
                    (Some(State::Delivered(_)), _) => {}
                    (_, Some(State::Delivered(_))) => self.tally.late_proofs += u64::from(was_dropped),
                    _ => {}
                }
                self.work(tab);
            }
            InTransit::Event { tab, session, seq, id } => {
                let Some(tab) = place(&self.tabs, tab) else { return };
                let queue = &mut self.tabs[tab].queue;
                queue.handle_recorded(&session, &id, seq, None, wall);
                let state = queue.entry(&id).map(|entry| &entry.state);
                assert!(state.is_none_or(|state| matches!(state, State::Delivered(_))), "an event proves nothing");
                self.tally.by_event += 1;
                self.work(tab);
            }
            InTransit::Removed { tab, id } => {
                let Some(tab) = place(&self.tabs, tab) else { return };
                self.tally.removed += u64::from(self.tabs[tab].queue.entry(&id).is_some());
                self.tabs[tab].queue.handle_removed(&id, wall);
                self.work(tab);
            }
        }
    }

    /// A user, a device or a server does something.
    fn act(&mut self) {
        let tab = self.rng.below(self.tabs.len() as u64) as usize;
        let (wall, choice) = (self.wall(), self.rng.below(30));
        // Only these can make a try come sooner than its timer.
        if matches!(choice, 9 | 13 | 14 | 16 | 17 | 19 | 20 | 23) {
            self.tabs.iter_mut().for_each(|tab| tab.waits.clear());
        }
        let queue = &mut self.tabs[tab].queue;
        match choice {
            0..=8 => self.user_sends(tab, 1),
            9 => {
                let failed = self.tabs[tab].ids(|state| matches!(state, State::Failed(_)));
                for id in failed {
                    assert!(self.tabs[tab].queue.send_again(&id, wall));
                }
            }
            10 => {
                let waiting = self.tabs[tab].ids(|state| !matches!(state, State::Delivered(_)));
                if let Some(id) = waiting.get(self.rng.below(3) as usize) {
                    self.discarded.insert(id.clone());
                    assert!(self.tabs[tab].queue.discard(id, wall));
                }
            }
            11 => {
                let delivered = self.tabs[tab].ids(|state| matches!(state, State::Delivered(_)));
                delivered.iter().for_each(|id| assert!(self.tabs[tab].queue.dismiss(id)));
            }
            12 => (self.tabs[tab].hidden, _) = (true, queue.handle_hidden(wall)),
            13 | 14 => (self.tabs[tab].hidden, _) = (false, queue.handle_wake(wall)),
            15 => (self.tabs[tab].offline, _) = (true, queue.handle_offline(wall)),
            16 | 17 => (self.tabs[tab].offline, _) = (false, queue.handle_online(wall)),
            18 => self.server.logged_out = true,
            19 | 20 => return self.log_in(),
            21 => self.reload(tab),
            22 => match self.tabs.len() {
                1 => return self.open_tab(),
                _ => drop(self.tabs.remove(tab)),
            },
            23 => {
                // Hours, minutes, or milliseconds; in both directions.
                let jump = [3 * 3_600_000, 300_000, 20][self.rng.below(3) as usize];
                let (back, from) = (self.rng.one_in(2), self.ahead);
                self.ahead = if back { from - self.rng.below(jump) } else { from + self.rng.below(jump) };
                self.tally.jumps += 1;
            }
            24 => self.session(|session| session.ended = true),
            25 | 26 => self.session(|session| session.ended = false),
            27 => {
                let until = self.now + self.rng.between(1, 30_000);
                self.session(|session| session.busy_until = until);
            }
            28 => return self.send_events(tab),
            _ if self.rng.one_in(4) => self.user_sends(tab, 70),
            _ => {}
        }
        if tab < self.tabs.len() {
            self.work(tab);
        }
    }

    fn session(&mut self, change: impl FnOnce(&mut super::server::Session)) {
        let session = SESSIONS[self.rng.below(2) as usize];
        change(self.server.sessions.entry(session.to_owned()).or_default());
    }

    fn user_sends(&mut self, tab: usize, count: u64) {
        for _ in 0..count {
            let (id, session) = (format!("c{:04}", self.sent.len()), SESSIONS[self.rng.below(2) as usize]);
            let command = match self.rng.below(8) {
                0 => json!({"type": "abort", "run": if self.rng.one_in(2) { "over" } else { "r0" }}),
                1 => json!({"type": "approve", "approval": format!("a{}", self.rng.below(6))}),
                2 => json!({"type": "set", "mode": "plan"}),
                _ => json!({"type": "prompt", "text": id}),
            };
            let lane = Lane::of(&command);
            let wall = self.wall();
            match self.tabs[tab].queue.send(session, &id, command, wall) {
                Ok(()) => self.sent.push(SentCommand { id, session, lane, writer: self.tabs[tab].writer }),
                Err(_) => self.tally.refused += 1,
            }
            self.tally.sent += 1;
            for lane in [Lane::Ordered, Lane::Urgent] {
                let entries = self.tabs[tab].queue.entries();
                let count = entries.filter(|entry| entry.session == session && entry.lane() == lane).count();
                assert!(count <= MAX_SESSION_ENTRIES);
            }
            self.work(tab);
        }
    }

    fn log_in(&mut self) {
        self.server.logged_out = false;
        for tab in 0..self.tabs.len() {
            let wall = self.wall();
            self.tabs[tab].queue.handle_login(wall);
            let waits = |state: &State| matches!(state, State::Waiting { why: WaitReason::Login });
            assert!(self.tabs[tab].ids(waits).is_empty(), "an entry still waits for the login");
            self.work(tab);
        }
    }

    fn reload(&mut self, tab: usize) {
        self.tally.reloads += 1;
        self.tab_count += 1;
        self.tabs[tab] = Tab::open(self.tab_count, self.tabs[tab].writer, &self.storage, self.wall());
    }

    /// An event stream catches up.
    fn send_events(&mut self, tab: usize) {
        let number = self.tabs[tab].number;
        let mut events = Vec::new();
        for session in SESSIONS {
            let Some(state) = self.server.sessions.get(session) else { continue };
            for (seq, (id, _)) in state.journal.iter().enumerate() {
                events.push(InTransit::Event {
                    tab: number,
                    session: session.to_owned(),
                    seq: seq as u64,
                    id: id.clone(),
                });
            }
        }
        for event in events {
            self.post(10, event);
        }
    }
}
