//! Waits for many descriptors and a deadline at once, with epoll and a timerfd.
//!
//! Most deadlines are moved before they are reached: the acknowledgement of a key, for example, is sent
//! with its echo. So the timer is set only if the next deadline is earlier than the one it is set to; if it
//! fires for a deadline that has moved, it is set again. With a timeout for each wait, the kernel would set
//! and cancel a timer for each key.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// What to wait for on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Interest = Interest { read: true, write: false };
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    /// There are bytes to read, or end of file.
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// The other side has closed, or the descriptor has an error.
    pub(crate) hung_up: bool,
}

pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    timer: OwnedFd,
    /// When the timer fires, if it is set.
    timer_at: Option<Instant>,
}

/// The token of `Poll::timer`.
const TIMER: u64 = u64::MAX;

impl Poll {
    pub(crate) fn new() -> io::Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(Poll { epoll, events: Vec::with_capacity(256), timer, timer_at: None })
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

    /// Waits until a descriptor is ready or the deadline is reached. May return early with nothing ready.
    pub(crate) fn wait(&mut self, deadline: Option<Instant>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        if let Some(deadline) = deadline
            && self.timer_at.is_none_or(|at| deadline < at)
        {
            self.set_timer(deadline)?;
        }
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if self.events.iter().any(|event| token(event) == TIMER) {
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
            self.timer_at = None;
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

    fn set_timer(&mut self, deadline: Instant) -> io::Result<()> {
        // Zero would disarm the timer.
        let wait = deadline.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let (it_interval, it_value) = (Timespec { tv_sec: 0, tv_nsec: 0 }, wait.try_into().unwrap_or(FAR));
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        self.timer_at = Some(deadline);
        Ok(())
    }
}

/// For a deadline too far away for a `Timespec`; the timer is then set again.
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
