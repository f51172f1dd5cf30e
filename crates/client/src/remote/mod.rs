//! Reaches sessions on another machine through its gateway, over HTTP and WebSocket.
//!
//! - [`Address`]: the gateway's URL; [`Gateway`]: the gateway, with a token;
//! - [`api`]: HTTP requests and their responses;
//! - [`dial`]: attaches to a session; [`websocket`]: the connection that carries the link;
//! - `wire`: the bytes of that connection, over TCP or TLS; `trust`: the trusted root certificates.

mod address;
pub mod api;
pub mod dial;
mod gateway;
#[cfg(test)]
mod tests;
mod trust;
pub mod websocket;
mod wire;

pub use address::{Address, InvalidAddress};
pub use api::{ApiError, ApiResponse};
pub use dial::RemoteDialer;
pub use gateway::{Gateway, GatewayError};
