//! The sessions of one machine: the files that outlive their processes, and what the command line, the gateway and the
//! client do with them. Nothing here runs a terminal or an emulator; the session process is `bowline-session`.
//!
//! The files of a session, in [`home`]'s folders:
//!
//! - [`meta`]: what it was asked to run;
//! - [`log`]: the ring of terminal output;
//! - [`journal`]: what happened to it, as [`events`]; [`summary`] is what a list shows of them, with a checkpoint, and
//!   [`history`] what a terminal remembers of them;
//! - [`saved`]: its last screen;
//! - [`lock`]: whether its process lives.
//!
//! What is done with them:
//!
//! - [`registry`] finds and lists sessions;
//! - [`start`] (with [`launch`], [`newborn`] and [`hold`]) runs session processes;
//! - [`control`] talks to a living one;
//! - [`rename`] and [`remove`] change and end them;
//! - [`archive`] serves an ended one to a viewer, with the frames of [`wire`];
//! - [`watch`] reports changed files, and [`signal`] has the names and numbers of signals.

pub mod archive;
pub mod control;
pub mod digest;
pub mod events;
pub mod files;
pub mod history;
pub mod hold;
pub mod home;
pub mod journal;
pub mod launch;
pub mod lock;
pub mod log;
pub mod machine;
pub mod meta;
pub mod newborn;
pub mod os_text;
pub mod registry;
pub mod remove;
pub mod rename;
pub mod saved;
pub mod signal;
pub mod start;
pub mod summary;
pub mod timestamp;
pub mod watch;
pub mod wire;
