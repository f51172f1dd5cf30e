//! One server, several clients, faulty wires between them, and a model of what must come out.

#[path = "../info/mod.rs"]
mod info;
mod rng;
mod session;
mod terminal;
mod typist;
mod viewer;
mod wire;
mod world;

pub(crate) use world::{Tally, World};
