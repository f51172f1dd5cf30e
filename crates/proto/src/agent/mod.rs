//! A conversation with a coding agent: its events and commands, and the machines that keep its promises.
//!
//! - [`event`]: what a journal records and viewers follow; [`command`]: what clients send;
//! - [`run`]: the machine that gives every accepted prompt exactly one `complete`;
//! - [`approval`]: what an agent asks of its owner, with exactly one outcome each;
//! - [`config`]: what can be set in an agent; [`usage`]: what it has used;
//! - [`fold`]: the state of a conversation, derived from its events alone; [`state`]: what clients get of it.

pub mod approval;
pub mod command;
pub mod config;
pub mod event;
pub mod fold;
pub mod run;
pub mod state;
pub mod usage;
