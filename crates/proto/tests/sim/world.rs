//! The world of one seed: it lets things happen, moves the clock from one event to the next, and checks.

use std::time::Duration;

use bowline_proto::close::Closed;
use bowline_proto::frame::{self, Binary, Frame};
use bowline_proto::link::{Action, ClientEvent, ClientState, ClientTransmit, ConnId, ServerEvent, Status, Transmit};
use bowline_proto::message::{ClientMessage, Lag, ServerMessage, Verdict};

use super::rng::Rng;
use super::session::Session;
use super::typist::VIEWERS;
use super::viewer::{Viewer, random_size};
use super::wire::{Arrival, Wire};

/// After the faults stop, everybody must have caught up within this.
const LIVENESS: Duration = Duration::from_secs(90);
/// What a transport buffers before its driver stops polling.
const TRANSPORT_BUFFER: usize = 600;

pub(crate) struct World {
    rng: Rng,
    now: Duration,
    session: Session,
    viewers: Vec<Viewer>,
    wires: Vec<Wire>,
    conns: u64,
    network: bool,
    peaceful: bool,
}

/// What a run came across, to know that the faults really happen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) skips: u64,
    pub(crate) exacts: u64,
    pub(crate) grown: u64,
    pub(crate) refused: u64,
    pub(crate) resent: u64,
    pub(crate) bytes: u64,
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
            network: true,
            peaceful: false,
        }
    }

    /// Faults first, then peace, in which everything must come right.
    pub(crate) fn run(mut self) -> Tally {
        for _ in 0..self.rng.between(10, 80) {
            self.disturb();
            let pause = [0, 1, 20, 200, 3000][self.rng.below(5) as usize];
            let pause = Duration::from_millis(self.rng.between(0, pause));
            self.run_for(pause);
        }
        self.make_peace();
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

    fn disturb(&mut self) {
        let (rng, now) = (&mut self.rng, self.now);
        let i = rng.below(self.viewers.len() as u64) as usize;
        let wire = rng.below(self.wires.len().max(1) as u64) as usize;
        match rng.below(44) {
            0..=6 => {
                let len = rng.between(1, 40);
                self.session.print(len, rng, now);
            }
            7..=12 => {
                let len = rng.between(40, 6000);
                self.session.print(len, rng, now);
            }
            13..=17 => {
                let n = rng.between(1, 12);
                self.viewers[i].type_keys(n, now);
            }
            18..=19 => {
                let size = random_size(rng);
                self.viewers[i].window = size;
                self.viewers[i].client.handle_resize(size);
            }
            20 if !self.viewers[i].observe => {
                let window = self.viewers[i].window;
                self.viewers[i].client.claim_size(window);
            }
            21 => self.viewers[i].client.repaint(),
            22..=26 => self.cut(wire),
            27 => (0..self.wires.len()).for_each(|wire| self.cut(wire)),
            28..=29 => {
                let until = now + Duration::from_millis(rng.between(10, 20_000));
                if let Some(wire) = self.wires.get_mut(wire) {
                    if rng.one_in(2) { wire.up.stall(until) } else { wire.down.stall(until) }
                }
            }
            30 => self.viewers[i].frozen = now + Duration::from_millis(rng.between(10, 5000)),
            // The same client dials again while its connection lives: a race that fencing decides.
            31..=32 if !self.viewers[i].is_over() => self.viewers[i].reconnector.redial(now),
            33 => {
                self.viewers[i].reconnector.handle_wake(now);
                self.viewers[i].client.handle_wake(now);
            }
            34 => self.session.reading ^= true,
            35 => self.network ^= true,
            36 => {
                let title = format!("title {}", rng.below(100));
                self.session.title = Some(title.clone());
                self.session.server.handle_notice(ServerMessage::Title { title });
            }
            37 if rng.one_in(4) && self.viewers.iter().all(|viewer| !viewer.is_over()) => {
                (0..self.wires.len()).for_each(|wire| self.cut(wire));
                for wire in &mut self.wires {
                    wire.served = false;
                    if wire.opens.is_none() {
                        wire.down.finish(now);
                    }
                }
                self.session.restart();
            }
            38 if rng.one_in(4) && self.session.exit.is_none() => self.session.end_program(rng),
            // The log is trimmed to just before, at, or just after the place where a viewer is.
            39 => {
                if let Some(terminal) = self.viewers[i].terminal {
                    let start = terminal.offset + rng.below(3);
                    self.session.trim_to(start, rng, now);
                }
            }
            // Somebody leaves for good; whether the server notices at once depends on the wire.
            40 if rng.one_in(2) && self.viewers.iter().filter(|viewer| !viewer.is_over()).count() > 1 => {
                self.viewers[i].leave(now);
            }
            41 => {
                let pause = Duration::from_secs(rng.between(5, 70));
                self.run_for(pause);
            }
            42..=43 if self.viewers[i].has_shown_all(now) => self.viewers[i].decide(rng, now),
            _ => {}
        }
    }

    /// A connection breaks, at any byte; each end may or may not notice.
    fn cut(&mut self, wire: usize) {
        let Some(wire) = self.wires.get_mut(wire) else { return };
        let silent = self.rng.one_in(3);
        wire.up.cut(silent, &mut self.rng, self.now);
        let silent = self.rng.one_in(3);
        wire.down.cut(silent, &mut self.rng, self.now);
    }

    fn make_peace(&mut self) {
        (self.network, self.peaceful, self.session.reading) = (true, true, true);
        for wire in &mut self.wires {
            wire.up.heal();
            wire.down.heal();
        }
        for viewer in &mut self.viewers {
            viewer.frozen = Duration::ZERO;
            viewer.client.handle_wake(self.now);
            viewer.reconnector.handle_wake(self.now);
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        let mut stuck = 0;
        loop {
            self.settle();
            let next = self.next_at().filter(|at| *at <= end);
            stuck = if next.is_some_and(|at| at <= self.now) { stuck + 1 } else { 0 };
            assert!(stuck < 100, "a deadline passed, and nobody does anything about it");
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

    /// Everything that can happen now happens.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 2000, "it spins");
            let mut busy = false;
            if self.session.server.poll_timeout().is_some_and(|at| at <= self.now) {
                self.session.server.handle_timeout(self.now);
                busy = true;
            }
            busy |= self.session.run_jobs(&mut self.rng, self.now);
            for wire in 0..self.wires.len() {
                busy |= self.open(wire) | self.carry_up(wire) | self.carry_down(wire);
            }
            busy |= self.drive_server();
            for viewer in 0..self.viewers.len() {
                busy |= self.drive_viewer(viewer);
            }
            self.wires.retain(|wire| wire.opens.is_some() || wire.served || wire.viewed);
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
        if !self.network {
            let jitter = self.rng.jitter();
            viewer.reconnector.handle_closed(wire.generation, &Closed::Failed, jitter, self.now);
            return true;
        }
        (wire.served, wire.viewed) = (true, true);
        self.session.server.handle_open(wire.conn, self.now);
        viewer.reconnector.handle_opened(wire.generation);
        viewer.client.handle_connected(self.now);
        true
    }

    fn carry_up(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        match wire.up.receive(self.now) {
            Arrival::Nothing => false,
            Arrival::Bytes => {
                if wire.served {
                    let (server, mut acks) = (&mut self.session.server, Vec::new());
                    wire.up.frames(|frame| {
                        if let Frame::Text(text) = frame
                            && let Ok(ClientMessage::Ack { output }) = serde_json::from_str(text)
                        {
                            acks.push(output);
                        }
                        server.handle_frame(wire.conn, frame, self.now);
                    });
                    acks.into_iter().for_each(|output| wire.heard_ack(output));
                }
                true
            }
            Arrival::End => {
                if std::mem::take(&mut wire.served) {
                    self.session.server.handle_closed(wire.conn, self.now);
                }
                true
            }
        }
    }

    fn carry_down(&mut self, index: usize) -> bool {
        let wire = &mut self.wires[index];
        let viewer = &mut self.viewers[wire.viewer];
        match wire.down.receive(self.now) {
            Arrival::Nothing => false,
            Arrival::Bytes => {
                if wire.viewed {
                    wire.down.frames(|frame| viewer.client.handle_frame(frame, self.now));
                    self.show_events(index);
                }
                true
            }
            Arrival::End => {
                if std::mem::take(&mut wire.viewed) {
                    let code = wire.code.unwrap_or(1006);
                    let done = viewer.client.state() == ClientState::Ended;
                    let closed = Closed::Code { code, reason: String::new(), done };
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

    fn show_events(&mut self, index: usize) {
        let wire = &mut self.wires[index];
        let viewer = &mut self.viewers[wire.viewer];
        // A viewer that is busy takes some events now and the rest later, or never if it must dial again.
        viewer.behind = true;
        while viewer.frozen <= self.now && !self.rng.one_in(10) {
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
            viewer.show(event, &self.session, &mut self.rng, self.now);
        }
    }

    fn drive_server(&mut self) -> bool {
        let mut busy = false;
        while let Some(event) = self.session.poll_event() {
            busy = true;
            match event {
                ServerEvent::Resize(size) => self.session.resize(size, &mut self.rng, self.now),
                ServerEvent::NeedSnapshot { conn, .. } => self.session.snapshot(conn, &mut self.rng, self.now),
                ServerEvent::Theme(_)
                | ServerEvent::Command { .. }
                | ServerEvent::ClientsChanged(_)
                | ServerEvent::Closing { .. } => {}
            }
        }
        let waiting = self.session.server.input().len();
        if self.session.reading && waiting > 0 && self.session.exit.is_none() {
            busy = true;
            let n = self.rng.between(1, waiting as u64) as usize;
            for byte in &self.session.server.input()[..n] {
                self.viewers[usize::from(byte >> 6)].typist.read(*byte);
            }
            self.session.server.handle_input_written(n, self.now);
        }
        for wire in 0..self.wires.len() {
            let mut sent = 0;
            while self.wires[wire].served
                && self.wires[wire].down.held < TRANSPORT_BUFFER
                && let Some(transmit) = self.session.server.poll_transmit(self.wires[wire].conn, self.now)
            {
                busy = true;
                sent += 1;
                assert!(sent < 2000, "it spins");
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
                    ServerMessage::Attached(at) => wire.goes_on(at.offset, at.verdict == Verdict::Snapshot),
                    ServerMessage::Snapshot { offset, .. } => wire.goes_on(*offset, true),
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
                assert!(from >= self.session.start, "output that the log no longer has");
                // A log that cannot be read ends the connection.
                if !self.peaceful && self.rng.one_in(200) {
                    wire.down.finish(self.now);
                    wire.served = false;
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
                wire.served = false;
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
        if viewer.frozen <= self.now {
            busy |= viewer.run_emulator(self.now);
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
            self.show_events(wire);
            while self.wires[wire].viewed
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
                        wire.viewed = false;
                        // What it sent may still arrive, long after its successor's hello.
                        if self.rng.one_in(2) {
                            wire.up.finish(self.now);
                        }
                        self.viewers[index].client.handle_disconnected(self.now);
                    }
                }
                Action::Show(Status::Ended) => assert!(self.viewers[index].is_over(), "ended without an exit"),
                Action::Show(Status::Gone(why)) => panic!("an honest viewer is sent away: {why:?}"),
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
            ClientTransmit::Input { offset, bytes: typed } => {
                frame::put_binary(&mut bytes, &Binary::Input(offset, &typed));
                // A careless client, or a gateway in between, may say it again.
                if self.rng.one_in(4) {
                    let from = self.rng.below(typed.len() as u64);
                    frame::put_binary(&mut bytes, &Binary::Input(offset + from, &typed[from as usize..]));
                }
            }
            ClientTransmit::Close { code, reason } => {
                assert_eq!(code, 4408, "the server makes sense: {reason}");
                wire.viewed = false;
                wire.up.finish(self.now);
                let generation = wire.generation;
                let viewer = &mut self.viewers[wire.viewer];
                viewer.client.handle_disconnected(self.now);
                let jitter = self.rng.jitter();
                viewer.reconnector.handle_closed(generation, &Closed::Failed, jitter, self.now);
                return;
            }
        }
        wire.up.send(bytes, self.now);
    }

    /// The server holds only so much input that was not read, whatever happens. What it holds of snapshots is bounded by
    /// asking for one at a time, see [`Session::snapshot`].
    fn check_memory(&self) {
        let bound = 100 * self.viewers.len() * 20;
        let held = self.session.server.input().len();
        assert!(held <= bound, "the server holds {held} bytes of input, over {bound}");
    }

    fn is_settled(&self) -> bool {
        self.viewers.iter().all(|viewer| self.complaint(viewer).is_none())
    }

    fn check_settled(&self) {
        for (i, viewer) in self.viewers.iter().enumerate() {
            if let Some(complaint) = self.complaint(viewer) {
                panic!("viewer {i} ({:?}, {:?}): {complaint}", viewer.client.state(), viewer.reconnector.status());
            }
        }
    }

    /// What is not yet as it must be in the end.
    fn complaint(&self, viewer: &Viewer) -> Option<String> {
        let session = &self.session;
        if viewer.left || (viewer.exited && viewer.epoch.as_ref() != Some(&session.config.epoch)) {
            // It saw enough, or the end of an earlier life, and left.
            return None;
        }
        if session.exit.is_some() != viewer.exited {
            return Some(format!("exited is {}", viewer.exited));
        }
        let Some(terminal) = viewer.terminal else { return Some("no terminal".to_owned()) };
        if terminal != session.model {
            return Some(format!("its terminal is {terminal:?}, and the session's {:?}", session.model));
        }
        if session.exit.is_some() {
            return None;
        }
        if viewer.unpainted && viewer.lag == Lag::Skip {
            return Some("its width changed, and nobody painted it".to_owned());
        }
        if !viewer.typist.is_done() {
            return Some("something typed was neither read nor reported".to_owned());
        }
        if viewer.title.is_some() && session.title.is_some() && viewer.title != session.title {
            return Some("an old title".to_owned());
        }
        let present: Vec<_> = viewer.present.iter().map(|present| &present.client).collect();
        let here: Vec<_> = self.viewers.iter().filter(|viewer| !viewer.is_over()).map(|viewer| &viewer.id).collect();
        let everybody = here.iter().all(|other| present.contains(other));
        let owners = viewer.present.iter().filter(|present| present.size).count();
        if present.len() != here.len() || !everybody || owners > 1 {
            return Some(format!("presence is {:?}", viewer.present));
        }
        if viewer.client.you().size && session.model.size != viewer.window {
            return Some("it owns the size, and the size is another's".to_owned());
        }
        None
    }
}
