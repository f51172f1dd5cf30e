//! Attaches a real terminal to a session.
//!
//! In the order that data walks, from the session to the screen and back:
//!
//! - [`transport`], [`unix`], [`local`]: the connection that carries the link, and how another is made; [`remote`]:
//!   the same to another machine;
//! - [`mod@attach`]: what the caller asks for, and the loop that follows from it;
//! - [`filter`]: what the terminal may see of the output; [`touched`]: what that changed, to be undone;
//! - [`display`], [`tty`]: the terminal itself, taken over and given back;
//! - [`keys`]: what of the typing is for the viewer itself.

pub mod attach;
mod clock;
pub mod display;
pub mod filter;
pub mod keys;
mod lines;
pub mod local;
mod mirror;
mod notice;
pub mod remote;
pub mod signals;
pub mod touched;
pub mod transport;
pub mod tty;
mod typing;
pub mod unix;
mod view;
mod viewer;
mod waiting;

pub use attach::{AttachError, Options, Outcome, attach};
