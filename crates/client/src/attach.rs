//! Attaching: what the caller asks for, and how it ended.

use std::io;

use bowline_proto::backoff::Backoff;
use bowline_proto::close::Permanent;
use bowline_proto::ids::ClientId;
use bowline_proto::session::ExitStatus;

use crate::display::{Display, Leave};
use crate::keys::Prefix;
use crate::signals::Signals;
use crate::transport::Dial;
use crate::tty::{Tty, TtyError};
use crate::viewer::Viewer;

/// How to attach.
#[derive(Clone, Debug)]
pub struct Options {
    /// The detach key; none to send every key to the program.
    pub prefix: Option<Prefix>,
    /// Look only: nothing typed is sent, and the size is left alone.
    pub observe: bool,
    /// Let this window decide the session's size, also when another viewer does.
    pub claim: bool,
    /// Lines of history to bring into the terminal's own scrollback.
    pub scrollback: u32,
    /// When to dial again, and when to stop.
    pub backoff: Backoff,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            prefix: Some(Prefix::default()),
            observe: false,
            claim: false,
            scrollback: 1000,
            backoff: Backoff::NATIVE,
        }
    }
}

/// How an attach ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The user left; the session lives on.
    Detached {
        /// Typed bytes that the session is not known to have taken.
        unsent: usize,
    },
    /// The program ended.
    Exited(ExitStatus),
    /// The session's process is gone, and nobody saw how the program ended.
    Lost,
    /// It will never work.
    Refused {
        /// Which kind.
        why: Permanent,
        /// In the server's words.
        reason: String,
    },
    /// The same viewer attached again elsewhere.
    Dropped,
    /// The server does not know who this is, or no longer.
    NeedsLogin {
        /// In the server's words.
        reason: String,
    },
    /// This process was asked to end by a signal, or its terminal is gone.
    Signalled(i32),
}

/// Why an attach could not begin.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no terminal to attach.
    #[error(transparent)]
    Tty(#[from] TtyError),
    /// The operating system refused.
    #[error("cannot attach: {0}")]
    Io(#[from] io::Error),
}

/// Shows a session on the terminal of this process until the user leaves or it ends. The terminal is then as it was.
pub fn attach(dial: Box<dyn Dial>, options: &Options) -> Result<Outcome, AttachError> {
    let signals = Signals::listen()?;
    let tty = Tty::open()?;
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(io::Error::from)?;
    let display = Display::enter(tty);
    let mut viewer = Viewer::new(dial, options, ClientId::from_random(random), display, signals);
    let outcome = viewer.run();
    viewer.leave(match outcome {
        Ok(Outcome::Exited(_)) => Leave::AfterOutput,
        _ => Leave::Below,
    });
    Ok(outcome?)
}
