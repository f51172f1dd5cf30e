//! One session: the process that owns its PTY, log, screen and socket, and the files that outlive it.
//!
//! In the order that a byte walks from the program to a viewer:
//!
//! - [`pty`]: the program and its terminal;
//! - [`log`]: the ring of everything it printed;
//! - [`screen`]: the terminal's state, folded from the log by [`emulator`], a thread beside the data path;
//! - [`process`]: the loop that carries bytes between these and the viewers' sockets, and how it comes to life;
//! - `wire`: frames on those sockets.
//!
//! Around it: [`home`], [`meta`], [`events`] and [`lock`] are the files; [`start`] (with [`launch`], `newborn` and
//! [`hold`]), [`registry`], [`control`], [`rename`], [`remove`] and [`archive`] are how the command line and the gateway
//! start, find, ask, rename, end and read sessions;
//! [`tree`] is what a session started.

pub mod archive;
pub mod control;
pub mod emulator;
pub mod events;
pub mod hold;
pub mod home;
pub mod launch;
pub mod lock;
pub mod log;
pub mod meta;
mod newborn;
pub mod process;
pub mod pty;
pub mod registry;
pub mod remove;
pub mod rename;
pub mod screen;
pub mod start;
pub mod tree;
mod wire;
