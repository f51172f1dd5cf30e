//! Dials a session on another machine, through its gateway.
//!
//! [`Dialer::has_ended`] keeps its default: a gateway that is up reports the end of a session itself, with `exit` or a
//! close code, and a gateway that is down cannot be asked without blocking.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use bowline_proto::close::ConnectionEnd;
use bowline_proto::ids::SessionId;
use serde_json::Value;

use super::api::ApiRequest;
use super::gateway::Gateway;
use super::websocket::WebSocketTransport;
use crate::transport::{Dialer, Transport};

/// How long fetching a screen may take. It runs on a thread, so keys are not delayed.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the viewer waits for the last screen after the program has ended.
const LAST_SCREEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Dials one session through a gateway.
#[derive(Debug)]
pub struct RemoteDialer {
    gateway: Gateway,
    path: String,
    /// Receives the requested screen.
    pending: Option<Receiver<Option<Value>>>,
}

impl RemoteDialer {
    pub fn new(gateway: Gateway, id: &SessionId) -> RemoteDialer {
        RemoteDialer { gateway, path: format!("/v1/sessions/{id}"), pending: None }
    }

    /// Fetches the screen on a new thread.
    fn fetch(&self, within: Duration) -> Option<Receiver<Option<Value>>> {
        let (sender, receiver) = sync_channel(1);
        let request = ApiRequest::get(format!("{}/screen?format=json", self.path)).within(within);
        let gateway = self.gateway.clone();
        let fetch = move || drop(sender.send(gateway.send(&request).and_then(|response| response.json()).ok()));
        std::thread::Builder::new().name("screen".into()).spawn(fetch).ok()?;
        Some(receiver)
    }
}

impl Dialer for RemoteDialer {
    fn dial(&mut self, _fresh_ticket: bool) -> Result<Box<dyn Transport>, ConnectionEnd> {
        let transport = WebSocketTransport::dial(&self.gateway, &format!("{}/attach", self.path));
        Ok(Box::new(transport.map_err(|_| ConnectionEnd::Failed)?))
    }

    fn request_screen(&mut self) {
        self.pending = self.fetch(SCREEN_TIMEOUT);
    }

    fn take_screen(&mut self) -> Option<Option<Value>> {
        let Some(pending) = &self.pending else { return Some(None) };
        let screen = match pending.try_recv() {
            Ok(screen) => screen,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        self.pending = None;
        Some(screen)
    }

    fn last_screen(&mut self) -> Option<Value> {
        self.fetch(LAST_SCREEN_TIMEOUT)?.recv_timeout(LAST_SCREEN_TIMEOUT).ok().flatten()
    }
}
