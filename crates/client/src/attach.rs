//! Attaches the terminal of this process to a session.

use std::io;

use bowline_proto::backoff::Backoff;
use bowline_proto::close::PermanentFailure;
use bowline_proto::ids::ClientId;
use bowline_proto::session::ExitStatus;

use crate::display::{Display, LeavePosition};
use crate::keys::DetachKey;
use crate::signals::Signals;
use crate::transport::Dialer;
use crate::tty::{Tty, TtyError};
use crate::viewer::Viewer;

#[derive(Clone, Debug)]
pub struct Options {
    /// The detach key; with `None`, every key goes to the program.
    pub detach_key: Option<DetachKey>,
    /// Read-only: no input is sent, and the window does not affect the session's size.
    pub observe: bool,
    /// Make this viewer the size owner, even if another viewer is.
    pub claim: bool,
    /// Lines of history to print into the terminal's own scrollback.
    pub scrollback: u32,
    pub backoff: Backoff,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            detach_key: Some(DetachKey::default()),
            observe: false,
            claim: false,
            scrollback: 1000,
            backoff: Backoff::NATIVE,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The user detached; the session keeps running.
    Detached {
        /// Typed bytes that the session has not acknowledged.
        unsent: usize,
    },
    Exited(ExitStatus),
    /// The session process ended without recording an exit status.
    Lost,
    /// The server refused for good; retrying does not help.
    Refused {
        why: PermanentFailure,
        /// The server's message; may be empty.
        reason: String,
    },
    /// Another connection of the same client took over.
    Dropped,
    /// The server does not accept the token, or no longer does.
    NeedsLogin {
        /// The server's message; may be empty.
        reason: String,
    },
    /// This process received a signal that ends it. A terminal that went away counts as SIGHUP.
    Signalled(i32),
}

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error(transparent)]
    Tty(#[from] TtyError),
    #[error("cannot attach: {0}")]
    Io(#[from] io::Error),
}

/// Shows a session on the terminal of this process until the user detaches or the session ends, then restores the
/// terminal.
pub fn attach(dial: Box<dyn Dialer>, options: &Options) -> Result<Outcome, AttachError> {
    let signals = Signals::listen()?;
    let tty = Tty::open()?;
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(io::Error::from)?;
    let display = Display::enter(tty);
    let mut viewer = Viewer::new(dial, options, ClientId::from_random(random), display, signals);
    let outcome = viewer.run();
    viewer.leave(match outcome {
        Ok(Outcome::Exited(_)) => LeavePosition::AfterOutput,
        _ => LeavePosition::Below,
    });
    Ok(outcome?)
}
