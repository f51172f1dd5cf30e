//! One server, several clients, faulty wires between them, and a model of what must come out.

mod rng;
mod session;
mod terminal;
mod typist;
mod viewer;
mod wire;
mod world;

pub(crate) use world::{Tally, World};
