//! Waiting for many descriptors and a deadline at once: a thin room around epoll and a timer.
//!
//! Deadlines mostly move away before they are reached (a key's acknowledgement leaves with its echo). So the timer is
//! set only when the next deadline is sooner than what it is set to; when it rings for one that has moved, it is set
//! again. A timeout for each wait would set and cancel a timer of the kernel's for each key.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Bytes to read.
    pub(crate) read: bool,
    /// Room to write.
    pub(crate) write: bool,
}

impl Interest {
    /// Reading only.
    pub(crate) const READ: Interest = Interest { read: true, write: false };
}

/// What a descriptor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The token it was added with.
    pub(crate) token: u64,
    /// Bytes to read, or its end.
    pub(crate) read: bool,
    /// Room to write.
    pub(crate) write: bool,
    /// The other side is gone.
    pub(crate) hung_up: bool,
}

/// The set of descriptors.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    timer: OwnedFd,
    /// When the timer rings.
    rings: Option<Instant>,
}

/// The timer's own token.
const TIMER: u64 = u64::MAX;

impl Poll {
    pub(crate) fn new() -> io::Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(Poll { epoll, events: Vec::with_capacity(256), timer, rings: None })
    }

    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
    }

    pub(crate) fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until something is ready or the deadline has come; sometimes a little longer than nothing for neither.
    pub(crate) fn wait(&mut self, deadline: Option<Instant>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        if let Some(deadline) = deadline
            && self.rings.is_none_or(|rings| deadline < rings)
        {
            self.ring_at(deadline)?;
        }
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if self.events.iter().any(|event| token(event) == TIMER) {
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
            self.rings = None;
        }
        ready.extend(self.events.iter().filter(|event| token(event) != TIMER).map(|event| {
            let flags = event.flags;
            Ready {
                token: token(event),
                read: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                write: flags.contains(EventFlags::OUT),
                hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
            }
        }));
        Ok(())
    }

    fn ring_at(&mut self, deadline: Instant) -> io::Result<()> {
        // A time of zero would stop the timer.
        let wait = deadline.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let (it_interval, it_value) = (Timespec { tv_sec: 0, tv_nsec: 0 }, wait.try_into().unwrap_or(FAR));
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        self.rings = Some(deadline);
        Ok(())
    }
}

/// For a deadline that no clock can tell.
const FAR: Timespec = Timespec { tv_sec: 3600, tv_nsec: 0 };

fn token(event: &epoll::Event) -> u64 {
    let data = event.data;
    data.u64()
}

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}
