//! Sends commands to sessions until each is settled, beside what else the process does.
//!
//! [`Poster`] runs the state machine of [`bowline_proto::post`] on a thread of its own, so that a loop which draws a
//! terminal can go on. [`Deliver`] is how one command gets to its session: through a gateway, or on this machine
//! ([`LocalDelivery`]). [`send_and_wait`] is for a verb that sends one command.

mod local;
mod poster;
mod remote;
#[cfg(test)]
mod tests;
mod wait;

pub use local::LocalDelivery;
pub use poster::{Change, Poster};
pub use wait::{DeliveryError, send_and_wait};

use std::time::Duration;

use bowline_proto::post::Response;
use serde_json::Value;

/// Makes one try to deliver a command. It may be called on several threads at a time.
pub trait Deliver: Send + Sync + 'static {
    /// Sends the command and waits for the response, for at most `within`.
    fn deliver(&self, session: &str, id: &str, command: &Value, within: Duration) -> Response;
}

impl Deliver for Box<dyn Deliver> {
    fn deliver(&self, session: &str, id: &str, command: &Value, within: Duration) -> Response {
        (**self).deliver(session, id, command, within)
    }
}
