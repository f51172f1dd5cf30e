//! The traits of a connection that carries the link, and of a dialer that makes one.
//!
//! The viewer uses unix sockets and WebSockets only through these two traits. No method of a connection blocks; the
//! viewer polls its descriptor.

use std::os::fd::BorrowedFd;

use bowline_proto::Offset;
use bowline_proto::close::ConnectionEnd;
use bowline_proto::frame::Frame;
use bowline_proto::message::ClientMessage;
use serde_json::Value;

/// A connection. None of its methods block.
pub trait Transport {
    /// The descriptor to poll.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Whether it is open. Until then, call `receive` and `flush` when the descriptor is ready, and check again.
    fn is_open(&self) -> bool;
    /// Whether to poll for writing.
    fn wants_write(&self) -> bool;
    /// Whether [`Transport::send`] and [`Transport::send_input`] may be called.
    fn has_room(&self) -> bool;
    /// Queues a message.
    fn send(&mut self, message: &ClientMessage);
    /// Queues typed bytes, of which the first has this position.
    fn send_input(&mut self, offset: Offset, bytes: &[u8]);
    /// Writes queued bytes, as far as the socket accepts them.
    fn flush(&mut self) -> Result<(), ConnectionEnd>;
    /// Reads once and passes each whole frame to `take`. The end of the connection is an error; frames received before
    /// it are passed first.
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), ConnectionEnd>;
    /// The server's message, if it refused the connection with an HTTP status.
    fn refusal(&self) -> Option<&str> {
        None
    }
}

/// Dials one session, again and again, and fetches its screen.
pub trait Dialer {
    /// Starts a connection.
    fn dial(&mut self, fresh_ticket: bool) -> Result<Box<dyn Transport>, ConnectionEnd>;

    /// Called after a connection has ended. Returns whether the session is known to have ended too, so that the viewer
    /// can dial again at once to get its exit status.
    fn has_ended(&mut self) -> bool {
        false
    }

    /// Requests the current screen, to mirror it in a window of another size. Only one request may be pending.
    fn request_screen(&mut self);

    /// Takes the requested screen, in the JSON form of `bowline screen`: `None` while it is pending, `Some(None)` if it
    /// could not be fetched.
    fn take_screen(&mut self) -> Option<Option<Value>>;

    /// The screen that the program left behind, in the same form. `None` if it could not be fetched.
    fn last_screen(&mut self) -> Option<Value>;
}
