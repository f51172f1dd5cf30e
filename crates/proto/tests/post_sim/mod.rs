//! A simulation: tabs of one browser that send commands, a server that runs each once, and a faulty network.

mod browser;
mod network;
#[path = "../sim/rng.rs"]
mod rng;
#[path = "../sim/seeds.rs"]
mod seeds;
mod server;
mod world;

pub(crate) use seeds::run_seeds;
pub(crate) use world::{Tally, World};
