//! The way to sessions of another machine: its gateway, over HTTP and WebSocket.
//!
//! - [`Address`]: where the gateway is; [`Gateway`]: it, with the token that opens it;
//! - [`call`]: asking it something over HTTP, and its answers;
//! - [`dial`]: attaching to one of its sessions; [`websocket`]: the connection that carries the link;
//! - `wire`: that connection's bytes, over TCP or TLS; `trust`: whose certificates are believed.

mod address;
pub mod call;
pub mod dial;
mod gateway;
#[cfg(test)]
mod tests;
mod trust;
pub mod websocket;
mod wire;

pub use address::{Address, BadAddress};
pub use call::{Answer, CallError};
pub use dial::Remote;
pub use gateway::{Gateway, GatewayError};
