//! The session process, which owns one session's PTY, log, screen and socket. Its files, and how other
//! processes find and start it, are in `bowline-host`.
//!
//! One read of the PTY goes through these steps, all but the last before the loop waits again:
//!
//! 1. [`process`]: the loop reads up to 64 KiB from the [`pty`] into memory, and reports the new end of
//!    output to the link.
//! 2. The link decides what each viewer gets. Frames are built from that read, still in memory, and written to the
//!    viewers' sockets.
//! 3. The read is appended to the log. This comes after the viewers, so that the echo of a key does not
//!    wait for the file system. It comes before them for a viewer that is further behind, since it reads
//!    the log, and for more than 16 connections, which get their frames at most every 2 ms.
//! 4. [`emulator`], a second thread, is notified and parses the log into the [`screen`]: at once if a
//!    viewer waits for the screen or 32 KiB are new, otherwise within 4 ms.
//!
//! [`process_tree`] finds every process that a session started, so that ending the session ends them.

pub mod agent;
pub mod emulator;
pub mod process;
pub mod process_tree;
pub mod pty;
pub mod screen;
pub mod spawn;
