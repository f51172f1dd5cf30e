//! The sessions of one machine: their files, and how the command line, the gateway and the client use them.
//!
//! Nothing here runs a terminal or an emulator; the session process is in `bowline-session`.
//!
//! The files of a session, in the directories of [`home`]:
//!
//! - [`meta`]: the command, directory, environment and sizes to start it with;
//! - [`log`]: the ring of terminal output;
//! - [`transcript`]: the journal of an agent session, with [`blobs`] for large output of its tools; [`agents`]: the
//!   programs that it may run;
//! - [`journal`]: its [`events`]; [`summary`] folds them for lists, with a checkpoint, and [`history`] folds them for
//!   the session process and for replays;
//! - [`uploads`]: the files that prompts of an agent session attach;
//! - [`saved`]: its last screen;
//! - [`lock`]: held while its process runs; [`alive`] tells whether it does.
//!
//! Operations:
//!
//! - [`agents`] is the table of programs that agent sessions may run; [`program`] finds a program;
//! - [`registry`] finds and lists sessions;
//! - [`start`] (with [`launch`], [`starting`] and [`change_lock`]) runs session processes;
//! - [`control`] sends requests to a running session process;
//! - [`rename`] and [`remove`] rename, end and remove sessions;
//! - [`session_archive`] serves an ended session to a viewer: [`archive`] a terminal, in frames built by [`wire`], and
//!   [`transcript`] an agent session;
//! - [`repair`] ends what a dead session process left open, with [`leftovers`] for its processes;
//! - [`watch`] reports changed files, and [`signal`] maps signal names to numbers.

pub mod agents;
pub mod alive;
pub mod archive;
pub mod blobs;
pub mod change_lock;
mod checkpoint;
pub mod control;
pub mod digest;
pub mod events;
pub mod files;
pub mod history;
pub mod home;
pub mod journal;
pub mod launch;
pub mod leftovers;
pub mod lock;
pub mod log;
pub mod machine;
pub mod meta;
pub mod os_text;
pub mod program;
pub mod registry;
pub mod remove;
pub mod rename;
pub mod repair;
pub mod saved;
pub mod session_archive;
pub mod signal;
pub mod spec;
pub mod start;
pub mod starting;
pub mod summary;
pub mod timestamp;
pub mod transcript;
pub mod uploads;
pub mod watch;
pub mod wire;
