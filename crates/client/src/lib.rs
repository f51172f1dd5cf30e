//! Attaches a real terminal to a session.
//!
//! The modules, in the order that data flows from the session to the screen and back:
//!
//! - [`transport`], [`unix`], [`local`]: the connection that carries the link, and how to dial a new one; [`remote`]
//!   does the same through a gateway on another machine;
//! - [`mod@attach`]: the options and outcome of an attach; `viewer` runs its loop;
//! - [`follow`]: the events of an agent session; `replay` leaves out those that were received before;
//! - [`filter`]: removes terminal queries from the output; [`changes`]: tracks what the output changed on the
//!   terminal, so that it can be undone;
//! - [`display`], [`tty`]: the user's terminal, taken over and restored; [`mod@escape`]: shows hostile text to it;
//! - [`conversation`]: the lines of an agent session;
//! - [`keys`]: separates keys for the viewer (after the detach key) from keys for the program;
//! - [`post`]: sends commands to sessions until each is settled.

pub mod attach;
mod bottom_row;
pub mod changes;
mod clock;
pub mod conversation;
pub mod display;
pub mod escape;
pub mod filter;
pub mod follow;
mod input;
pub mod keys;
pub mod local;
mod mirror;
mod poll;
pub mod post;
pub mod remote;
mod replay;
pub mod signals;
mod status_line;
pub mod transport;
pub mod tty;
pub mod unix;
mod view;
mod viewer;

pub use attach::{AttachError, Options, Outcome, attach};
pub use follow::{FollowEvent, Follower};
