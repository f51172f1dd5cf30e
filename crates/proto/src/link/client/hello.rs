//! Builds the hello of one connection from the configuration and the current cursor.

use crate::config::ClientConfig;
use crate::message::{Cursor, Hello, VERSION};

/// The hello of connection number `conn`.
pub(super) fn make_hello(config: &ClientConfig, conn: u64, cursor: Option<&Cursor>) -> Hello {
    Hello {
        version: VERSION,
        client: config.client.clone(),
        conn,
        was: config.was.clone(),
        cursor: cursor.cloned(),
        size: config.size,
        lag: config.lag,
        scrollback: config.scrollback,
        observe: config.observe,
        theme: config.theme.clone(),
        key: config.key.clone(),
        grant: config.grant.clone(),
    }
}
