//! Sends one command, and waits until it is settled.

use std::io;
use std::time::{Duration, Instant};

use bowline_proto::post::{Delivery, Entry, Failure, FailureReason, SendError, State, WaitReason};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use super::{Change, Deliver, Poster};

/// Why a command was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error(transparent)]
    Refused(#[from] SendError),
    #[error("{}", .0.message)]
    Failed(Failure),
    /// The token or login is not valid. Nothing changes that while the command waits.
    #[error("the server does not accept the token or login")]
    NeedsLogin,
    /// The deadline passed. The command may have been delivered.
    #[error("no response within {} s; the command may have been received{}", within.as_secs(), describe(last_error))]
    TimedOut {
        within: Duration,
        /// Why the last try failed; empty if none did.
        last_error: String,
    },
    #[error("cannot send commands: {0}")]
    Io(#[from] io::Error),
}

fn describe(last_error: &str) -> String {
    if last_error.is_empty() { String::new() } else { format!(" ({last_error})") }
}

/// Sends one command and waits until it is settled, for at most `within`. `show` gets the entry each time that its state changes,
/// to report for example that it is sent again.
pub fn send_and_wait(
    deliver: impl Deliver,
    session: &str,
    id: &str,
    command: Value,
    within: Duration,
    show: impl FnMut(&Entry),
) -> Result<Delivery, DeliveryError> {
    send_with(&Poster::start(deliver)?, session, id, command, within, show)
}

pub(super) fn send_with(
    poster: &Poster,
    session: &str,
    id: &str,
    command: Value,
    within: Duration,
    mut show: impl FnMut(&Entry),
) -> Result<Delivery, DeliveryError> {
    poster.send_with_id(session, id, command)?;
    let (deadline, mut last_error) = (Instant::now() + within, String::new());
    loop {
        while let Some(change) = poster.poll_change() {
            let Change::Shown(entry) = change else { continue };
            show(&entry);
            match entry.state {
                State::Delivered(delivery) => return Ok(delivery),
                // The ten minutes of the queue are over, but not the caller's time.
                State::Failed(Failure { reason: FailureReason::Expired | FailureReason::Old, .. }) => {
                    poster.send_again(id);
                }
                State::Failed(failure) => return Err(DeliveryError::Failed(failure)),
                State::Waiting { why: WaitReason::Login } => return Err(DeliveryError::NeedsLogin),
                State::Retrying { message, .. } => last_error = message,
                State::Waiting { .. } | State::Sending { .. } => {}
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(DeliveryError::TimedOut { within, last_error });
        }
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&poster.fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(DeliveryError::Io(error.into())),
        }
    }
}
