//! The simulated world of one seed: it delivers frames, advances the clock from one event to the next, and checks the
//! result.

use std::time::Duration;

use bowline_proto::close::ConnectionEnd;
use bowline_proto::follow::{
    ClientEvent, ClientState, ClientTransmit, FollowConfig, FollowMessage, Server, ServerEvent, Transmit,
};
use bowline_proto::frame;
use bowline_proto::link::{Action, ConnId};
use serde::Serialize;
use serde_json::json;

use super::journal::Journal;
use super::rng::Rng;
use super::viewer::Viewer;
use super::wire::{Arrival, Wire};

/// How long after the last fault every viewer must be up to date.
const LIVENESS: Duration = Duration::from_secs(120);
/// How many bytes a connection buffers before its driver stops polling.
const TRANSPORT_BUFFER: usize = 600;

/// Counts of what happened in a run, to check that the faults really occur.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) merged: u64,
    pub(crate) exacts: u64,
    pub(crate) fresh: u64,
    pub(crate) unknown_epochs: u64,
    pub(crate) ahead: u64,
    /// Connections closed because events that were sent on them were cut.
    pub(crate) cut: u64,
    pub(crate) lost: u64,
    pub(crate) exits: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.events += other.events;
        self.merged += other.merged;
        self.exacts += other.exacts;
        self.fresh += other.fresh;
        self.unknown_epochs += other.unknown_epochs;
        self.ahead += other.ahead;
        self.cut += other.cut;
        self.lost += other.lost;
        self.exits += other.exits;
    }
}

pub(crate) struct World {
    pub(super) rng: Rng,
    pub(super) now: Duration,
    pub(super) journal: Journal,
    pub(super) server: Server,
    pub(super) viewers: Vec<Viewer>,
    pub(super) wires: Vec<Wire>,
    conns: u64,
    pub(super) exited: bool,
    /// Reading the journal may fail.
    pub(super) read_faults: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let journal = Journal::new();
        let viewers = (0..rng.between(1, 4)).map(|i| Viewer::new(i as usize, &journal, &mut rng)).collect();
        World {
            rng,
            now: Duration::ZERO,
            server: World::server(&journal),
            journal,
            viewers,
            wires: Vec::new(),
            conns: 0,
            exited: false,
            read_faults: true,
        }
    }

    /// A server of this journal, as a session process that starts has it.
    pub(super) fn server(journal: &Journal) -> Server {
        let info = json!({
            "id": "k3v9x0q2m7aa", "name": null, "kind": "agent", "state": "running", "created": "", "cwd": "/",
            "epoch": journal.epoch(), "version": "0.1.0", "agent": "claude",
        });
        let info = serde_json::from_value(info).unwrap();
        Server::new(FollowConfig::default(), info, journal.epochs.clone(), journal.end())
    }

    /// Runs random actions and faults, then stops them and checks that every viewer becomes up to date.
    pub(crate) fn run(mut self) -> Tally {
        for _ in 0..self.rng.between(10, 60) {
            self.random_action();
            let pause = [0, 1, 20, 200, 3000][self.rng.below(5) as usize];
            let pause = Duration::from_millis(self.rng.between(0, pause));
            self.run_for(pause);
        }
        self.stop_faults();
        let end = self.now + LIVENESS;
        let settled = |world: &World| world.viewers.iter().all(|v| v.is_up_to_date(&world.journal, world.exited));
        while self.now < end && !settled(&self) {
            self.run_for(Duration::from_secs(1));
        }
        assert!(settled(&self), "a follower stays behind");
        // One whose connection was cut a moment ago may have noticed or not.
        assert!(self.server.clients() as usize <= self.viewers.len(), "a client counts only once");
        let mut tally = Tally::default();
        self.viewers.iter().for_each(|viewer| tally.add(&viewer.tally));
        tally
    }

    /// Advances the clock by `time`, handling each event when it is due.
    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        let mut stuck = 0;
        loop {
            self.settle();
            let next = self.next_at().filter(|at| *at <= end);
            stuck = if next.is_some_and(|at| at <= self.now) { stuck + 1 } else { 0 };
            assert!(stuck < 100, "a deadline has passed, and nothing handles it");
            self.now = next.map_or(end, |at| at.max(self.now));
            if next.is_none() {
                return;
            }
        }
    }

    fn next_at(&self) -> Option<Duration> {
        let wires = self.wires.iter().flat_map(|wire| match wire.opens {
            Some(at) => [Some(at), None],
            None => [wire.up.next_at(), wire.down.next_at()],
        });
        let viewers = self.viewers.iter().map(|viewer| viewer.next_at(self.now));
        wires.chain(viewers).chain([self.server.poll_timeout()]).flatten().min()
    }

    /// Handles everything that is due now.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 2000, "the state machines never become idle");
            let mut busy = false;
            if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
                self.server.handle_timeout(self.now);
                busy = true;
            }
            for wire in 0..self.wires.len() {
                busy |= self.open(wire) | self.deliver_up(wire) | self.deliver_down(wire);
            }
            busy |= self.drive_server();
            for viewer in 0..self.viewers.len() {
                busy |= self.drive_viewer(viewer);
            }
            self.wires.retain(|wire| wire.opens.is_some() || wire.open_at_server || wire.open_at_client);
            if !busy {
                return;
            }
        }
    }

    fn open(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        if wire.opens.is_none_or(|at| at > self.now) {
            return false;
        }
        wire.opens = None;
        let viewer = &mut self.viewers[wire.viewer];
        if wire.generation == viewer.reconnector.generation() && !viewer.has_ended() {
            (wire.open_at_server, wire.open_at_client) = (true, true);
            self.server.handle_open(wire.conn, self.now);
            viewer.reconnector.handle_opened(wire.generation);
            viewer.client.handle_open(self.now);
        }
        true
    }

    fn deliver_up(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        match wire.up.receive(self.now) {
            Arrival::Nothing => return false,
            Arrival::Bytes if wire.open_at_server => {
                wire.up.frames(|frame| self.server.handle_frame(wire.conn, frame, self.now));
            }
            Arrival::Bytes => {}
            Arrival::End => {
                if std::mem::take(&mut wire.open_at_server) {
                    self.server.handle_closed(wire.conn, self.now);
                }
            }
        }
        true
    }

    fn deliver_down(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        let viewer = &mut self.viewers[wire.viewer];
        match wire.down.receive(self.now) {
            Arrival::Nothing => return false,
            Arrival::Bytes if wire.open_at_client => {
                wire.down.frames(|frame| viewer.client.handle_frame(frame, self.now));
                viewer.behind = true;
            }
            Arrival::Bytes => {}
            Arrival::End => {
                if wire.open_at_client {
                    let code = wire.code.unwrap_or(1006);
                    self.close_at_client(index, |done| ConnectionEnd::Code { code, reason: String::new(), done });
                }
            }
        }
        true
    }

    fn close_at_client(&mut self, index: usize, end: impl FnOnce(bool) -> ConnectionEnd) {
        let wire = &mut self.wires[index];
        let viewer = &mut self.viewers[wire.viewer];
        wire.open_at_client = false;
        wire.up.finish(self.now);
        viewer.client.handle_closed(self.now);
        let end = end(viewer.client.state() == ClientState::Ended);
        viewer.reconnector.handle_closed(wire.generation, &end, self.rng.jitter(), self.now);
    }

    fn drive_server(&mut self) -> bool {
        let mut busy = false;
        while let Some(event) = self.server.poll_event() {
            busy = true;
            assert!(!matches!(event, ServerEvent::Command { .. }), "followers send no commands");
        }
        for wire in 0..self.wires.len() {
            while self.wires[wire].open_at_server
                && self.wires[wire].down.held < TRANSPORT_BUFFER
                && let Some(transmit) = self.server.poll_transmit(self.wires[wire].conn, self.now)
            {
                busy = true;
                self.transmit(wire, transmit);
            }
        }
        busy
    }

    fn transmit(&mut self, index: usize, transmit: Transmit) {
        let wire = &mut self.wires[index];
        match transmit {
            Transmit::Text(message) => wire.down.send(text(&message), self.now),
            // If the journal cannot be read, the driver closes the connection.
            Transmit::Events { .. } if self.read_faults && self.rng.one_in(100) => {
                wire.down.finish(self.now);
                wire.open_at_server = false;
                self.server.handle_closed(wire.conn, self.now);
            }
            Transmit::Events { from, to } => {
                let (messages, next) = self.journal.read(from, to, &mut self.rng);
                messages.iter().for_each(|message| wire.down.send(text(message), self.now));
                self.server.handle_sent(wire.conn, next);
            }
            Transmit::Close { code, reason } => {
                wire.down.send(text(&FollowMessage::Close { code, reason }), self.now);
                wire.down.finish(self.now);
                wire.open_at_server = false;
                self.server.handle_closed(wire.conn, self.now);
            }
        }
    }

    fn drive_viewer(&mut self, index: usize) -> bool {
        let viewer = &mut self.viewers[index];
        let mut busy = false;
        if self.now == Duration::ZERO {
            viewer.reconnector.start(self.now);
        }
        if viewer.client.poll_timeout().is_some_and(|at| at <= self.now) {
            viewer.client.handle_timeout(self.now);
            viewer.behind = true;
            busy = true;
        }
        if viewer.reconnector.poll_timeout().is_some_and(|at| at <= self.now) {
            viewer.reconnector.handle_timeout(self.rng.jitter(), self.now);
            busy = true;
        }
        busy |= self.poll_client_events(index);
        while let Some(action) = self.viewers[index].reconnector.poll_action() {
            busy = true;
            self.act(index, action);
        }
        let open = self.wires.iter().position(|wire| wire.viewer == index && wire.open_at_client);
        if let Some(wire) = open {
            while self.wires[wire].open_at_client
                && self.wires[wire].up.held < TRANSPORT_BUFFER
                && let Some(transmit) = self.viewers[index].client.poll_transmit(self.now)
            {
                busy = true;
                match transmit {
                    ClientTransmit::Text(message) => self.wires[wire].up.send(text(&message), self.now),
                    ClientTransmit::Close { .. } => self.close_at_client(wire, |_| ConnectionEnd::Failed),
                }
            }
        }
        busy
    }

    fn poll_client_events(&mut self, index: usize) -> bool {
        let mut busy = false;
        // A busy viewer polls some events now and the rest later, or never if it has to reconnect.
        while self.viewers[index].behind && self.viewers[index].frozen_until <= self.now {
            busy = true;
            let viewer = &mut self.viewers[index];
            let Some(event) = viewer.client.poll_event() else {
                viewer.behind = false;
                break;
            };
            viewer.apply(&event, &self.journal);
            let wire = self.wires.iter().position(|wire| wire.viewer == index && wire.open_at_client);
            let Some(wire) = wire else { continue };
            match event {
                ClientEvent::Attached(_) => viewer.reconnector.handle_attached(self.wires[wire].generation, self.now),
                ClientEvent::Closing { code, .. } => self.wires[wire].code = Some(code),
                ClientEvent::Lost { .. } => self.close_at_client(wire, |_| ConnectionEnd::Failed),
                _ => {}
            }
            if self.rng.one_in(20) {
                self.viewers[index].frozen_until = self.now + Duration::from_millis(self.rng.between(1, 50));
            }
        }
        busy
    }

    fn act(&mut self, viewer: usize, action: Action) {
        match action {
            Action::Dial { generation, .. } => {
                self.conns += 1;
                let opens = self.now + Duration::from_millis(self.rng.between(0, 300));
                let conn = ConnId(self.conns);
                self.wires.push(Wire::new(conn, viewer, generation, opens, &mut self.rng));
            }
            Action::Drop { generation } => {
                for wire in self.wires.iter_mut().filter(|wire| wire.viewer == viewer && wire.generation == generation)
                {
                    if std::mem::take(&mut wire.open_at_client) {
                        wire.up.finish(self.now);
                        self.viewers[viewer].client.handle_closed(self.now);
                    }
                }
            }
            Action::Show(_) => {}
        }
    }
}

fn text(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put_text(&mut bytes, &serde_json::to_string(message).unwrap());
    bytes
}
