//! The random actions and faults of a simulated world.

use std::time::Duration;

use super::world::World;

impl World {
    /// Lets something random happen to the journal, at a viewer or on the network.
    pub(super) fn random_action(&mut self) {
        let (rng, now) = (&mut self.rng, self.now);
        let i = rng.below(self.viewers.len() as u64) as usize;
        let wire = rng.below(self.wires.len().max(1) as u64) as usize;
        match rng.below(36) {
            0..=7 => self.append_some(4),
            8..=11 => self.append_some(40),
            12..=16 => self.cut(wire),
            17 => (0..self.wires.len()).for_each(|wire| self.cut(wire)),
            18..=19 => {
                let until = now + Duration::from_millis(rng.between(10, 20_000));
                if let Some(wire) = self.wires.get_mut(wire) {
                    if rng.one_in(2) { wire.up.stall(until) } else { wire.down.stall(until) }
                }
            }
            20..=21 => self.viewers[i].frozen_until = now + Duration::from_millis(rng.between(10, 5000)),
            // The client dials again while its connection is open, so the server must choose the newer one.
            22..=23 if !self.viewers[i].has_ended() => self.viewers[i].reconnector.redial(now),
            24 => {
                self.viewers[i].reconnector.handle_wake(now);
                self.viewers[i].client.handle_wake(now);
            }
            25..=26 => self.restart(),
            27..=28 => self.repair_at_restart(),
            29..=30 => self.repair_while_running(),
            31 => self.begin_epoch_while_running(),
            32 if rng.one_in(4) => self.exit(),
            _ => {}
        }
    }

    fn append_some(&mut self, most: u64) {
        if !self.exited {
            let count = self.rng.between(1, most);
            self.journal.append(count);
            self.server.handle_end(self.journal.end());
        }
    }

    fn repair_while_running(&mut self) {
        if !self.exited {
            let count = self.rng.between(0, 12);
            let start = self.journal.repair(count, false);
            self.server.handle_epoch(start);
            self.server.handle_end(self.journal.end());
        }
    }

    fn begin_epoch_while_running(&mut self) {
        if !self.exited {
            let start = self.journal.begin("repaired");
            self.server.handle_epoch(start);
            self.server.handle_end(self.journal.end());
        }
    }

    fn repair_at_restart(&mut self) {
        if !self.exited {
            let count = self.rng.between(0, 12);
            let forget = self.rng.one_in(2);
            self.journal.repair(count, forget);
            self.restart();
        }
    }

    /// The session process ends, and another one serves the same journal.
    fn restart(&mut self) {
        if self.exited {
            return;
        }
        (0..self.wires.len()).for_each(|wire| self.cut(wire));
        for wire in &mut self.wires {
            wire.open_at_server = false;
            if wire.opens.is_none() {
                wire.down.finish(self.now);
            }
        }
        self.journal.begin("started");
        let more = self.rng.below(3);
        self.journal.append(more);
        self.server = World::server(&self.journal);
    }

    fn exit(&mut self) {
        if !self.exited {
            self.exited = true;
            self.journal.append(1);
            self.server.handle_end(self.journal.end());
            self.server.handle_exit(Default::default());
        }
    }

    fn cut(&mut self, index: usize) {
        let Some(wire) = self.wires.get_mut(index).filter(|wire| wire.opens.is_none()) else { return };
        let silent = self.rng.one_in(3);
        wire.up.cut(silent, &mut self.rng, self.now);
        wire.down.cut(silent, &mut self.rng, self.now);
    }

    /// From now on, nothing is lost or delayed for long.
    pub(super) fn stop_faults(&mut self) {
        self.read_faults = false;
        for wire in &mut self.wires {
            wire.up.heal();
            wire.down.heal();
        }
        for viewer in &mut self.viewers {
            viewer.frozen_until = Duration::ZERO;
        }
    }
}
