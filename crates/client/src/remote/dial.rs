//! The way to a session of another machine, through its gateway.
//!
//! Whether the session has ended is not asked after a connection ends ([`Dial::has_ended`] stays as it is): a gateway
//! that is there says so by itself, with `exit` or a close code, and one that is not cannot be asked without waiting.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use bowline_proto::close::Closed;
use bowline_proto::ids::SessionId;
use serde_json::Value;

use super::call::Call;
use super::gateway::Gateway;
use super::websocket::WebSocketTransport;
use crate::transport::{Dial, Transport};

/// How long a screen may take; it is fetched beside the loop, so keys do not wait for it.
const SCREEN: Duration = Duration::from_secs(5);
/// How long the last screen is waited for, when there is nothing else to do.
const LAST_SCREEN: Duration = Duration::from_secs(2);

/// Dials one session of a gateway.
#[derive(Debug)]
pub struct Remote {
    gateway: Gateway,
    path: String,
    /// A screen on its way.
    coming: Option<Receiver<Option<Value>>>,
}

impl Remote {
    /// The way to this session.
    pub fn new(gateway: Gateway, id: &SessionId) -> Remote {
        Remote { gateway, path: format!("/v1/sessions/{id}"), coming: None }
    }

    /// Fetches the screen on a thread of its own.
    fn fetch(&self, within: Duration) -> Option<Receiver<Option<Value>>> {
        let (hand_over, coming) = sync_channel(1);
        let call = Call::get(format!("{}/screen?format=json", self.path)).within(within);
        let gateway = self.gateway.clone();
        let fetch = move || drop(hand_over.send(gateway.call(&call).and_then(|answer| answer.json()).ok()));
        std::thread::Builder::new().name("screen".into()).spawn(fetch).ok()?;
        Some(coming)
    }
}

impl Dial for Remote {
    fn dial(&mut self, _fresh_ticket: bool) -> Result<Box<dyn Transport>, Closed> {
        let transport = WebSocketTransport::dial(&self.gateway, &format!("{}/attach", self.path));
        Ok(Box::new(transport.map_err(|_| Closed::Failed)?))
    }

    fn ask_screen(&mut self) {
        self.coming = self.fetch(SCREEN);
    }

    fn take_screen(&mut self) -> Option<Option<Value>> {
        let Some(coming) = &self.coming else { return Some(None) };
        let screen = match coming.try_recv() {
            Ok(screen) => screen,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        self.coming = None;
        Some(screen)
    }

    fn last_screen(&mut self) -> Option<Value> {
        self.fetch(LAST_SCREEN)?.recv_timeout(LAST_SCREEN).ok().flatten()
    }
}
