//! The simulated world of one seed: it delivers frames, advances the clock from one event to the next, and checks the
//! result.

use std::time::Duration;

use bowline_proto::close::ConnectionEnd;
use bowline_proto::frame::{self, Binary, Frame};
use bowline_proto::link::{Action, ClientEvent, ClientState, ClientTransmit, ConnId, ServerEvent, Status, Transmit};
use bowline_proto::message::{ClientMessage, Lag, ServerMessage, Verdict};

use super::input_check::VIEWERS;
use super::rng::Rng;
use super::session::Session;
use super::viewer::Viewer;
use super::wire::{Arrival, Wire};

/// How long after the last fault every viewer must be up to date.
const LIVENESS: Duration = Duration::from_secs(90);
/// How many bytes a connection buffers before its driver stops polling.
const TRANSPORT_BUFFER: usize = 600;

pub(crate) struct World {
    pub(super) rng: Rng,
    pub(super) now: Duration,
    pub(super) session: Session,
    pub(super) viewers: Vec<Viewer>,
    pub(super) wires: Vec<Wire>,
    conns: u64,
    pub(super) network_up: bool,
    /// Reading the log may fail.
    pub(super) log_faults: bool,
}

/// Counts of what happened in a run, to check that the faults really occur.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) skips: u64,
    pub(crate) exacts: u64,
    pub(crate) grown: u64,
    pub(crate) refused: u64,
    pub(crate) resent: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.skips += other.skips;
        self.exacts += other.exacts;
        self.grown += other.grown;
        self.refused += other.refused;
        self.resent += other.resent;
        self.bytes += other.bytes;
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let session = Session::new(&mut rng);
        let viewers = (0..rng.between(1, VIEWERS as u64)).map(|i| Viewer::new(i as usize, &mut rng)).collect();
        World {
            rng,
            now: Duration::ZERO,
            session,
            viewers,
            wires: Vec::new(),
            conns: 0,
            network_up: true,
            log_faults: true,
        }
    }

    /// Runs random actions and faults, then stops them and checks that every viewer becomes up to date.
    pub(crate) fn run(mut self) -> Tally {
        for _ in 0..self.rng.between(10, 80) {
            self.random_action();
            let pause = [0, 1, 20, 200, 3000][self.rng.below(5) as usize];
            let pause = Duration::from_millis(self.rng.between(0, pause));
            self.run_for(pause);
        }
        self.stop_faults();
        let end = self.now + LIVENESS;
        while self.now < end && !self.is_settled() {
            self.run_for(Duration::from_secs(1));
        }
        self.check_settled();
        Tally {
            skips: self.viewers.iter().map(|viewer| u64::from(viewer.skips)).sum(),
            exacts: self.viewers.iter().map(|viewer| u64::from(viewer.exacts)).sum(),
            grown: self.viewers.iter().map(|viewer| u64::from(viewer.grown)).sum(),
            refused: self.viewers.iter().map(|viewer| u64::from(viewer.refused)).sum(),
            resent: self.viewers.iter().map(|viewer| u64::from(viewer.resent)).sum(),
            bytes: self.session.end(),
        }
    }

    /// Advances the clock by `time`, handling each event when it is due.
    pub(super) fn run_for(&mut self, time: Duration) {
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
        let session = [self.session.server.poll_timeout(), self.session.next_job()];
        wires.chain(viewers).chain(session).flatten().min()
    }

    /// Handles everything that is due now.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 2000, "the state machines never become idle");
            let mut busy = false;
            if self.session.server.poll_timeout().is_some_and(|at| at <= self.now) {
                self.session.server.handle_timeout(self.now);
                busy = true;
            }
            busy |= self.session.run_jobs(&mut self.rng, self.now);
            for wire in 0..self.wires.len() {
                busy |= self.open(wire) | self.deliver_up(wire) | self.deliver_down(wire);
            }
            busy |= self.drive_server();
            for viewer in 0..self.viewers.len() {
                busy |= self.drive_viewer(viewer);
            }
            self.wires.retain(|wire| wire.opens.is_some() || wire.open_at_server || wire.open_at_client);
            self.check_memory();
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
        if wire.generation != viewer.reconnector.generation() {
            return true;
        }
        if !self.network_up {
            let jitter = self.rng.jitter();
            viewer.reconnector.handle_closed(wire.generation, &ConnectionEnd::Failed, jitter, self.now);
            return true;
        }
        (wire.open_at_server, wire.open_at_client) = (true, true);
        self.session.server.handle_open(wire.conn, self.now);
        viewer.reconnector.handle_opened(wire.generation);
        viewer.client.handle_connected(self.now);
        true
    }

    fn deliver_up(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        match wire.up.receive(self.now) {
            Arrival::Nothing => false,
            Arrival::Bytes => {
                if wire.open_at_server {
                    let (server, mut acks) = (&mut self.session.server, Vec::new());
                    wire.up.frames(|frame| {
                        if let Frame::Text(text) = frame
                            && let Ok(ClientMessage::Ack { output }) = serde_json::from_str(text)
                        {
                            acks.push(output);
                        }
                        server.handle_frame(wire.conn, frame, self.now);
                    });
                    acks.into_iter().for_each(|output| wire.handle_ack(output));
                }
                true
            }
            Arrival::End => {
                if std::mem::take(&mut wire.open_at_server) {
                    self.session.server.handle_closed(wire.conn, self.now);
                }
                true
            }
        }
    }

    fn deliver_down(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        let viewer = &mut self.viewers[wire.viewer];
        match wire.down.receive(self.now) {
            Arrival::Nothing => false,
            Arrival::Bytes => {
                if wire.open_at_client {
                    wire.down.frames(|frame| viewer.client.handle_frame(frame, self.now));
                    self.poll_client_events(index);
                }
                true
            }
            Arrival::End => {
                if std::mem::take(&mut wire.open_at_client) {
                    let code = wire.code.unwrap_or(1006);
                    let done = viewer.client.state() == ClientState::Ended;
                    let closed = ConnectionEnd::Code { code, reason: String::new(), done };
                    let generation = wire.generation;
                    wire.up.finish(self.now);
                    viewer.client.handle_disconnected(self.now);
                    let jitter = self.rng.jitter();
                    viewer.reconnector.handle_closed(generation, &closed, jitter, self.now);
                }
                true
            }
        }
    }

    fn poll_client_events(&mut self, index: usize) {
        let wire = &mut self.wires[index];
        let viewer = &mut self.viewers[wire.viewer];
        // A busy viewer polls some events now and the rest later, or never if it has to reconnect.
        viewer.behind = true;
        while viewer.frozen_until <= self.now && !self.rng.one_in(10) {
            let Some(event) = viewer.client.poll_event() else {
                viewer.behind = false;
                break;
            };
            if let ClientEvent::Closing { code, .. } = event {
                wire.code = Some(code);
            }
            if matches!(event, ClientEvent::Attached(_)) {
                viewer.reconnector.handle_attached(wire.generation, self.now);
            }
            viewer.apply(event, &self.session, &mut self.rng, self.now);
        }
    }

    fn drive_server(&mut self) -> bool {
        let mut busy = false;
        while let Some(event) = self.session.poll_event() {
            busy = true;
            match event {
                ServerEvent::Resize(size) => self.session.resize(size, &mut self.rng, self.now),
                ServerEvent::NeedSnapshot(kind) => self.session.snapshot(kind, &mut self.rng, self.now),
                ServerEvent::Theme(_)
                | ServerEvent::Command { .. }
                | ServerEvent::ClientsChanged(_)
                | ServerEvent::Closing { .. } => {}
            }
        }
        let queued = self.session.server.input().len();
        if self.session.reading && queued > 0 && self.session.exit.is_none() {
            busy = true;
            let n = self.rng.between(1, queued as u64) as usize;
            for byte in &self.session.server.input()[..n] {
                self.viewers[usize::from(byte >> 6)].input_check.handle_read(*byte);
            }
            self.session.server.handle_input_written(n, self.now);
        }
        for wire in 0..self.wires.len() {
            let mut sent = 0;
            while self.wires[wire].open_at_server
                && self.wires[wire].down.held < TRANSPORT_BUFFER
                && let Some(transmit) = self.session.server.poll_transmit(self.wires[wire].conn, self.now)
            {
                busy = true;
                sent += 1;
                assert!(sent < 2000, "the server never stops sending");
                self.transmit(wire, transmit);
            }
        }
        busy
    }

    fn transmit(&mut self, index: usize, transmit: Transmit) {
        let wire = &mut self.wires[index];
        let mut bytes = Vec::new();
        match transmit {
            Transmit::Text(message) => {
                match &message {
                    ServerMessage::Attached(at) => wire.handle_announced(at.offset, at.verdict == Verdict::Snapshot),
                    ServerMessage::Snapshot { offset, .. } => wire.handle_announced(*offset, true),
                    _ => {}
                }
                frame::put_text(&mut bytes, &serde_json::to_string(&message).unwrap());
            }
            Transmit::SnapshotPart(part) => {
                assert!(part.len() <= self.session.config.chunk);
                frame::put_binary(&mut bytes, &Binary::Snapshot(&part));
            }
            Transmit::Output { from, len } => {
                assert!(len > 0 && len <= self.session.config.chunk);
                assert!(from >= self.session.start, "the log has this output");
                // If the log cannot be read, the driver closes the connection.
                if self.log_faults && self.rng.one_in(200) {
                    wire.down.finish(self.now);
                    wire.open_at_server = false;
                    self.session.server.handle_closed(wire.conn, self.now);
                    return;
                }
                let in_flight = wire.acked.map_or(0, |acked| from + len as u64 - acked);
                assert!(in_flight <= self.session.config.window, "{in_flight} bytes in flight");
                let output = &self.session.log[from as usize..][..len];
                frame::put_binary(&mut bytes, &Binary::Output(from, output));
            }
            Transmit::Close { code, reason } => {
                let close = ServerMessage::Close { code, reason };
                frame::put_text(&mut bytes, &serde_json::to_string(&close).unwrap());
                wire.down.send(bytes, self.now);
                wire.down.finish(self.now);
                wire.open_at_server = false;
                self.session.server.handle_closed(wire.conn, self.now);
                return;
            }
        }
        wire.down.send(bytes, self.now);
    }

    fn drive_viewer(&mut self, index: usize) -> bool {
        let viewer = &mut self.viewers[index];
        let mut busy = false;
        if self.now == Duration::ZERO {
            viewer.reconnector.start(self.now);
        }
        if viewer.frozen_until <= self.now {
            busy |= viewer.run_terminal(self.now);
        }
        if viewer.client.poll_timeout().is_some_and(|at| at <= self.now) {
            viewer.client.handle_timeout(self.now);
            busy = true;
        }
        if viewer.reconnector.poll_timeout().is_some_and(|at| at <= self.now) {
            let jitter = self.rng.jitter();
            viewer.reconnector.handle_timeout(jitter, self.now);
            busy = true;
        }
        let generation = viewer.reconnector.generation();
        let wire = self.wires.iter().position(|wire| wire.generation == generation && wire.viewer == index);
        if let Some(wire) = wire {
            self.poll_client_events(wire);
            while self.wires[wire].open_at_client
                && self.wires[wire].up.held < TRANSPORT_BUFFER
                && let Some(transmit) = self.viewers[index].client.poll_transmit(self.now)
            {
                busy = true;
                self.transmit_up(wire, transmit);
            }
        }
        while let Some(action) = self.viewers[index].reconnector.poll_action() {
            busy = true;
            match action {
                Action::Dial { generation, .. } => {
                    self.conns += 1;
                    let opens = self.now + Duration::from_millis(self.rng.between(0, 200));
                    self.wires.push(Wire::new(ConnId(self.conns), index, generation, opens, &mut self.rng));
                }
                Action::Drop { generation } => {
                    let mine = |wire: &&mut Wire| wire.generation == generation && wire.viewer == index;
                    if let Some(wire) = self.wires.iter_mut().find(mine) {
                        wire.open_at_client = false;
                        // Its frames may still arrive, long after the hello of the next connection.
                        if self.rng.one_in(2) {
                            wire.up.finish(self.now);
                        }
                        self.viewers[index].client.handle_disconnected(self.now);
                    }
                }
                Action::Show(Status::Ended) => assert!(self.viewers[index].has_ended(), "ended without an exit"),
                Action::Show(Status::Gone(failure)) => panic!("a well-behaved viewer is refused: {failure:?}"),
                Action::Show(_) => {}
            }
        }
        busy
    }

    fn transmit_up(&mut self, index: usize, transmit: ClientTransmit) {
        let wire = &mut self.wires[index];
        let mut bytes = Vec::new();
        match transmit {
            ClientTransmit::Text(message) => frame::put_text(&mut bytes, &serde_json::to_string(&message).unwrap()),
            ClientTransmit::Input { offset, bytes: input } => {
                frame::put_binary(&mut bytes, &Binary::Input(offset, &input));
                // Another client implementation may send the same input twice.
                if self.rng.one_in(4) {
                    let from = self.rng.below(input.len() as u64);
                    frame::put_binary(&mut bytes, &Binary::Input(offset + from, &input[from as usize..]));
                }
            }
            ClientTransmit::Close { code, reason } => {
                assert_eq!(code, 4408, "the client accepts every frame of the server: {reason}");
                wire.open_at_client = false;
                wire.up.finish(self.now);
                let generation = wire.generation;
                let viewer = &mut self.viewers[wire.viewer];
                viewer.client.handle_disconnected(self.now);
                let jitter = self.rng.jitter();
                viewer.reconnector.handle_closed(generation, &ConnectionEnd::Failed, jitter, self.now);
                return;
            }
        }
        wire.up.send(bytes, self.now);
    }

    /// The server keeps a bounded amount of input and of snapshots, however little its viewers read.
    fn check_memory(&self) {
        let bound = 100 * self.viewers.len() * 20;
        let queued = self.session.server.input().len();
        assert!(queued <= bound, "the server queues {queued} bytes of input, over {bound}");
        let (kept, bound) = (self.session.kept_snapshots(), self.session.config.snapshots);
        assert!(kept <= bound, "the server keeps {kept} bytes of snapshots, over {bound}");
    }

    fn is_settled(&self) -> bool {
        self.viewers.iter().all(|viewer| self.mismatch(viewer).is_none())
    }

    fn check_settled(&self) {
        for (i, viewer) in self.viewers.iter().enumerate() {
            if let Some(mismatch) = self.mismatch(viewer) {
                panic!("viewer {i} ({:?}, {:?}): {mismatch}", viewer.client.state(), viewer.reconnector.status());
            }
        }
    }

    /// How a viewer differs from what it must be in the end.
    fn mismatch(&self, viewer: &Viewer) -> Option<String> {
        let session = &self.session;
        if viewer.left || (viewer.exited && viewer.epoch.as_ref() != Some(&session.config.epoch)) {
            // The user detached, or the viewer got the exit of an earlier epoch.
            return None;
        }
        if session.exit.is_some() != viewer.exited {
            return Some(format!("`exited` is {}", viewer.exited));
        }
        let Some(terminal) = viewer.terminal else { return Some("no terminal".to_owned()) };
        if terminal != session.model {
            return Some(format!("its terminal is {terminal:?}, the session's is {:?}", session.model));
        }
        if session.exit.is_some() {
            return None;
        }
        if viewer.needs_repaint && viewer.lag == Lag::Skip {
            return Some("no snapshot after a change of width".to_owned());
        }
        if !viewer.input_check.is_done() {
            return Some("typed bytes were neither read nor reported unsent".to_owned());
        }
        if viewer.title.is_some() && session.title.is_some() && viewer.title != session.title {
            return Some("an old title".to_owned());
        }
        let present: Vec<_> = viewer.present.iter().map(|present| &present.client).collect();
        let attached: Vec<_> =
            self.viewers.iter().filter(|viewer| !viewer.has_ended()).map(|viewer| &viewer.id).collect();
        // A viewer finds itself by its own id, and the ids of others are not theirs.
        let known = present.iter().filter(|present| attached.contains(present)).count();
        let complete = present.contains(&&viewer.id) && known == 1;
        let owners = viewer.present.iter().filter(|present| present.size).count();
        if present.len() != attached.len() || !complete || owners > 1 {
            return Some(format!("presence is {:?}", viewer.present));
        }
        if viewer.client.permissions().size && session.model.size != viewer.window {
            return Some("it owns the size, but the terminal has another size".to_owned());
        }
        None
    }
}
