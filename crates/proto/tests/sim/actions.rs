//! The random actions and faults of a simulated world.

use std::time::Duration;

use bowline_proto::message::ServerMessage;

use super::viewer::random_size;
use super::world::World;

impl World {
    /// Lets something random happen in the session, at a viewer or on the network.
    pub(super) fn random_action(&mut self) {
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
            30 => self.viewers[i].frozen_until = now + Duration::from_millis(rng.between(10, 5000)),
            // The client dials again while its connection is open, so the server must choose the newer one.
            31..=32 if !self.viewers[i].has_ended() => self.viewers[i].reconnector.redial(now),
            33 => {
                self.viewers[i].reconnector.handle_wake(now);
                self.viewers[i].client.handle_wake(now);
            }
            34 => self.session.reading ^= true,
            35 => self.network_up ^= true,
            36 => {
                let title = format!("title {}", rng.below(100));
                self.session.title = Some(title.clone());
                self.session.server.handle_notice(ServerMessage::Title { title });
            }
            37 if rng.one_in(4) && self.viewers.iter().all(|viewer| !viewer.has_ended()) => {
                (0..self.wires.len()).for_each(|wire| self.cut(wire));
                for wire in &mut self.wires {
                    wire.open_at_server = false;
                    if wire.opens.is_none() {
                        wire.down.finish(now);
                    }
                }
                self.session.restart();
            }
            38 if rng.one_in(4) && self.session.exit.is_none() => self.session.end_program(rng),
            // The log is trimmed to just before, at, or just after a viewer's position.
            39 => {
                if let Some(terminal) = self.viewers[i].terminal {
                    let start = terminal.offset + rng.below(3);
                    self.session.trim_to(start, rng, now);
                }
            }
            // A viewer detaches for good; whether the server notices at once depends on the connection.
            40 if rng.one_in(2) && self.viewers.iter().filter(|viewer| !viewer.has_ended()).count() > 1 => {
                self.viewers[i].leave(now);
            }
            41 => {
                let pause = Duration::from_secs(rng.between(5, 70));
                self.run_for(pause);
            }
            42..=43 if self.viewers[i].is_up_to_date(now) => self.viewers[i].decide(rng, now),
            _ => {}
        }
    }

    /// Cuts a connection at any byte; each end may or may not notice.
    fn cut(&mut self, wire: usize) {
        let Some(wire) = self.wires.get_mut(wire) else { return };
        let silent = self.rng.one_in(3);
        wire.up.cut(silent, &mut self.rng, self.now);
        let silent = self.rng.one_in(3);
        wire.down.cut(silent, &mut self.rng, self.now);
    }

    /// Repairs everything, so that every viewer can become up to date.
    pub(super) fn stop_faults(&mut self) {
        (self.network_up, self.log_faults, self.session.reading) = (true, false, true);
        for wire in &mut self.wires {
            wire.up.heal();
            wire.down.heal();
        }
        for viewer in &mut self.viewers {
            viewer.frozen_until = Duration::ZERO;
            viewer.client.handle_wake(self.now);
            viewer.reconnector.handle_wake(self.now);
        }
    }
}
