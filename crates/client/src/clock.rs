//! Time for the machines: since the attach began, through sleep, and some randomness for their jitter.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Waking up this much later than expected means that the machine slept.
const NAP: Duration = Duration::from_secs(5);

/// A clock that goes on while the machine sleeps.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Duration,
    /// How far the clock that stops in sleep was behind, at the last look.
    asleep: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin: read(ClockId::Boottime), asleep: slept_so_far() }
    }

    /// Since the start.
    pub(crate) fn now(&self) -> Duration {
        read(ClockId::Boottime).saturating_sub(self.origin)
    }

    /// Whether the machine slept since the last call.
    pub(crate) fn slept(&mut self) -> bool {
        let asleep = slept_so_far();
        let slept = asleep.saturating_sub(self.asleep) >= NAP;
        self.asleep = asleep;
        slept
    }

    /// Somewhere in [-1, 1].
    pub(crate) fn jitter(&self) -> f64 {
        let mut random = [0; 4];
        let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX) * 2.0 - 1.0
    }
}

fn slept_so_far() -> Duration {
    read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic))
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
