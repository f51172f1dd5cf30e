//! One session: the process that owns its PTY, log, screen and socket, and the files that outlive it.

pub mod control;
pub mod events;
pub mod home;
pub mod lock;
pub mod log;
pub mod meta;
pub mod pty;
pub mod registry;
pub mod remove;
pub mod screen;
pub mod start;
pub mod tree;
