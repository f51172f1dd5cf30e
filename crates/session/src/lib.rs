//! The session process: it owns one session's terminal, log, screen and socket. Its files, and how others find and start
//! it, are in `bowline-host`.
//!
//! In the order that a byte takes from the program to a viewer:
//!
//! - [`pty`]: the program and its terminal;
//! - [`process`]: the loop that carries bytes between the terminal, the log and the viewers' sockets;
//! - [`screen`]: the terminal's state, folded from the log by [`emulator`], a thread beside the data path.
//!
//! [`tree`] finds everything that a session started.

pub mod emulator;
pub mod process;
pub mod pty;
pub mod screen;
pub mod tree;
