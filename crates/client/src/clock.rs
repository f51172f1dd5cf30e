//! The time since the attach began, including time asleep, and random jitter for the link's state machines.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A suspend of at least this long counts as sleep.
const MIN_SLEEP: Duration = Duration::from_secs(5);

/// A clock that keeps running while the machine is suspended.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Duration,
    /// Total time suspended since boot, as of the last call to [`Clock::take_slept`].
    asleep: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin: read(ClockId::Boottime), asleep: slept_so_far() }
    }

    pub(crate) fn now(&self) -> Duration {
        read(ClockId::Boottime).saturating_sub(self.origin)
    }

    /// Whether the machine slept since the last call.
    pub(crate) fn take_slept(&mut self) -> bool {
        let asleep = slept_so_far();
        let slept = asleep.saturating_sub(self.asleep) >= MIN_SLEEP;
        self.asleep = asleep;
        slept
    }

    /// A random number in [-1, 1].
    pub(crate) fn jitter(&self) -> f64 {
        jitter()
    }
}

/// A random number in [-1, 1].
pub(crate) fn jitter() -> f64 {
    let mut random = [0; 4];
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX) * 2.0 - 1.0
}

fn slept_so_far() -> Duration {
    read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic))
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
