//! A simulation: one journal and its server, several followers, and faulty connections between them.

mod actions;
mod journal;
#[path = "../sim/rng.rs"]
mod rng;
#[path = "../sim/seeds.rs"]
mod seeds;
mod viewer;
#[path = "../sim/wire.rs"]
#[allow(dead_code, reason = "only the terminal link acknowledges output")]
mod wire;
mod world;

pub(crate) use seeds::run_seeds;
pub(crate) use world::{Tally, World};
