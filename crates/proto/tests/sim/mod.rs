//! A simulation: one server, several clients, faulty connections between them, and a model of the correct result.

mod actions;
#[path = "../info/mod.rs"]
mod info;
mod input_check;
mod rng;
mod seeds;
mod session;
mod terminal;
mod viewer;
mod wire;
mod world;

pub(crate) use seeds::run_seeds;
pub(crate) use world::{Tally, World};
