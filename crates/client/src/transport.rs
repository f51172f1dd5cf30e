//! One connection that carries the link for a while, and the way to make another.
//!
//! The viewer knows connections only by these two traits, whether they are unix sockets or WebSockets. Nothing here
//! waits: a connection says when it can be read or written.

use std::os::fd::BorrowedFd;

use bowline_proto::close::Closed;
use bowline_proto::frame::Frame;
use bowline_proto::link::ClientTransmit;
use serde_json::Value;

/// A connection. All its methods return at once.
pub trait Transport {
    /// What to wait on.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Whether it is open yet; until then it only wants to be read, written and asked again.
    fn is_open(&self) -> bool;
    /// Whether it waits to be written.
    fn wants_write(&self) -> bool;
    /// Whether it may be given more to send.
    fn has_room(&self) -> bool;
    /// Queues a message. A close is for the caller, and is not sent.
    fn send(&mut self, transmit: &ClientTransmit);
    /// Writes what it can of what is queued.
    fn flush(&mut self) -> Result<(), Closed>;
    /// Reads once and gives each whole frame to `take`. Its end is an error that says how it ended; frames that came
    /// before it have been given.
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), Closed>;
    /// What the server said, in words, when it refused this connection by a status.
    fn refusal(&self) -> Option<&str> {
        None
    }
}

/// The way to a session.
pub trait Dial {
    /// Begins a connection. An error says why not, in the words of a close.
    fn dial(&mut self, fresh_ticket: bool) -> Result<Box<dyn Transport>, Closed>;

    /// A connection just ended. Whether the session is known to have ended too, so that there is nothing to wait for
    /// before dialling again to hear how.
    fn has_ended(&mut self) -> bool {
        false
    }

    /// Asks for the screen as it is now, for a window that is not of the session's size. One at a time.
    fn ask_screen(&mut self);

    /// The screen that was asked for, in the JSON form of `bowline screen`: none while it is on its way, none inside
    /// when it cannot be had.
    fn take_screen(&mut self) -> Option<Option<Value>>;

    /// The screen as the program left it, in the same form. None when it cannot be had.
    fn last_screen(&mut self) -> Option<Value>;
}
