//! The queue of input for the terminal: each client's bytes once and in order, even if its connection is lost.

use std::cmp::Reverse;
use std::collections::VecDeque;

use bytes::{Buf, BytesMut};

use super::ConnId;
use super::caller::ClientKey;
use crate::Offset;
use crate::config::{INPUT_FRAME, INPUT_QUEUE, INPUT_WINDOW};

/// Input of all clients that is not yet written, and each client's position in its own input.
#[derive(Debug)]
pub(super) struct InputQueue {
    clients: Vec<ClientRecord>,
    /// How many detached clients to remember.
    max_detached: usize,
    last_serial: u64,
    /// Counts attaches and detaches, to find the client that detached first.
    uses: u64,
    bytes: BytesMut,
    /// The owner and length of each run of `bytes`, in order; `None` for input that is not part of a client's stream.
    spans: VecDeque<(Option<Serial>, usize)>,
}

/// Identifies a [`ClientRecord`]. A forgotten client that attaches again gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Serial(pub(super) u64);

/// What the server remembers of a client.
#[derive(Debug)]
pub(super) struct ClientRecord {
    serial: Serial,
    key: ClientKey,
    /// The number of its latest connection, from its hello.
    pub(super) dial: u64,
    /// The next byte expected from it.
    pub(super) received: Offset,
    /// The first of its bytes that is not written to the terminal.
    pub(super) written: Offset,
    /// The client was forgotten, and has not yet shown that it received `input: null`. Until it does, each `attached`
    /// says so again; otherwise the client would resend bytes at their old offsets, and they could be typed twice.
    pub(super) forgotten: bool,
    /// The connection on which it is attached.
    pub(super) attached: Option<ConnId>,
    /// It was allowed to write.
    pub(super) writer: bool,
    last_use: u64,
}

/// The result of an input frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputResult {
    /// Queued, or received before.
    Accepted,
    /// The frame starts after the expected offset.
    Gap { expected: Offset },
    /// The frame is longer than [`INPUT_FRAME`].
    TooLong,
    /// The client would have more than [`INPUT_WINDOW`] unwritten bytes.
    OverWindow,
    /// The queue would be longer than [`INPUT_QUEUE`], because the program does not read.
    QueueFull,
}

impl InputQueue {
    pub(super) fn new(max_detached: usize) -> InputQueue {
        InputQueue {
            clients: Vec::new(),
            max_detached,
            last_serial: 0,
            uses: 0,
            bytes: BytesMut::new(),
            spans: VecDeque::new(),
        }
    }

    pub(super) fn find(&self, key: &ClientKey) -> Option<&ClientRecord> {
        self.clients.iter().find(|client| client.key == *key)
    }

    pub(super) fn get(&self, serial: Serial) -> Option<&ClientRecord> {
        self.clients.iter().find(|client| client.serial == serial)
    }

    pub(super) fn get_mut(&mut self, serial: Serial) -> Option<&mut ClientRecord> {
        self.clients.iter_mut().find(|client| client.serial == serial)
    }

    /// Records that a client attached.
    pub(super) fn attach(&mut self, key: &ClientKey, dial: u64, conn: ConnId, writer: bool) -> Serial {
        self.uses += 1;
        let last_use = self.uses;
        if let Some(client) = self.clients.iter_mut().find(|client| client.key == *key) {
            (client.dial, client.attached, client.last_use) = (dial, Some(conn), last_use);
            client.writer |= writer;
            return client.serial;
        }
        self.last_serial += 1;
        let serial = Serial(self.last_serial);
        self.clients.push(ClientRecord {
            serial,
            key: key.clone(),
            dial,
            received: 0,
            written: 0,
            forgotten: dial > 1,
            attached: Some(conn),
            writer,
            last_use,
        });
        self.forget_oldest();
        serial
    }

    /// Records that a client detached, unless it has attached again on another connection.
    pub(super) fn detach(&mut self, serial: Serial, conn: ConnId) {
        self.uses += 1;
        let last_use = self.uses;
        if let Some(client) = self.get_mut(serial)
            && client.attached == Some(conn)
        {
            (client.attached, client.last_use) = (None, last_use);
        }
        self.forget_oldest();
    }

    /// Forgets readers first, which have no input. Of writers, it forgets one of the caller that has the most, so that no
    /// caller can make the session forget all others.
    fn forget_oldest(&mut self) {
        loop {
            let detached = || self.clients.iter().enumerate().filter(|(_, client)| client.attached.is_none());
            if detached().count() <= self.max_detached {
                return;
            }
            let siblings = |key: &ClientKey| detached().filter(|(_, other)| other.key.caller == key.caller).count();
            let readers = detached().filter(|(_, client)| !client.writer);
            let oldest = readers
                .min_by_key(|(_, client)| client.last_use)
                .or_else(|| detached().min_by_key(|(_, client)| (Reverse(siblings(&client.key)), client.last_use)));
            let Some((oldest, _)) = oldest else { return };
            self.clients.swap_remove(oldest);
        }
    }

    /// Queues an input frame of a client, at an offset in that client's input.
    pub(super) fn receive(&mut self, serial: Serial, offset: Offset, bytes: &[u8]) -> InputResult {
        if bytes.len() > INPUT_FRAME {
            return InputResult::TooLong;
        }
        let queued = self.bytes.len();
        let Some(client) = self.get_mut(serial) else { return InputResult::Accepted };
        client.forgotten = false;
        let Some(overlap) = client.received.checked_sub(offset) else {
            return InputResult::Gap { expected: client.received };
        };
        let overlap = usize::try_from(overlap).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(overlap..).filter(|new| !new.is_empty()) else { return InputResult::Accepted };
        if client.received - client.written + new.len() as u64 > INPUT_WINDOW {
            return InputResult::OverWindow;
        }
        if queued + new.len() > INPUT_QUEUE {
            return InputResult::QueueFull;
        }
        client.received += new.len() as u64;
        self.push(Some(serial), new);
        InputResult::Accepted
    }

    /// Queues input that is not part of a client's stream. Returns false if the queue is full.
    pub(super) fn push_other(&mut self, bytes: &[u8]) -> bool {
        let fits = self.bytes.len() + bytes.len() <= INPUT_QUEUE;
        if fits && !bytes.is_empty() {
            self.push(None, bytes);
        }
        fits
    }

    fn push(&mut self, owner: Option<Serial>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        match self.spans.back_mut() {
            Some((last, len)) if *last == owner => *len += bytes.len(),
            _ => self.spans.push_back((owner, bytes.len())),
        }
    }

    /// All queued bytes, in the order in which to write them.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first `n` bytes were written to the terminal. Calls `notify` with the connection of each client whose bytes
    /// are among them.
    pub(super) fn handle_written(&mut self, n: usize, mut notify: impl FnMut(ConnId)) {
        let mut left = n.min(self.bytes.len());
        self.bytes.advance(left);
        while left > 0
            && let Some((serial, len)) = self.spans.front_mut()
        {
            let written = left.min(*len);
            (*len, left) = (*len - written, left - written);
            let (serial, done) = (*serial, *len == 0);
            if done {
                self.spans.pop_front();
            }
            if let Some(client) = serial.and_then(|serial| self.get_mut(serial)) {
                client.written += written as u64;
                if let Some(conn) = client.attached {
                    notify(conn);
                }
            }
        }
    }

    /// The program ended: the remaining bytes are never written.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::Caller;
    use super::*;
    use crate::ids::ClientId;

    fn id(n: u8) -> ClientKey {
        ClientKey { caller: Caller::Owner, id: ClientId::from_random([n; 16]) }
    }

    #[test]
    fn resent_input_is_queued_once() {
        let mut queue = InputQueue::new(4);
        let a = queue.attach(&id(1), 1, ConnId(1), true);
        assert_eq!(queue.receive(a, 0, b"abc"), InputResult::Accepted);
        assert_eq!(queue.receive(a, 0, b"abc"), InputResult::Accepted);
        assert_eq!(queue.receive(a, 1, b"bcde"), InputResult::Accepted);
        assert_eq!(queue.receive(a, 6, b"x"), InputResult::Gap { expected: 5 });
        assert_eq!(queue.bytes(), b"abcde");
        queue.detach(a, ConnId(1));
        queue.handle_written(2, |_| panic!("no client is attached"));
        assert_eq!(queue.attach(&id(1), 2, ConnId(2), true), a);
        let mut acked = Vec::new();
        queue.handle_written(3, |conn| acked.push(conn));
        assert_eq!(acked, [ConnId(2)]);
        assert_eq!(queue.get(a).unwrap().written, 5);
    }

    #[test]
    fn r52_a_program_that_does_not_read_fills_a_bounded_queue() {
        let mut queue = InputQueue::new(4);
        let a = queue.attach(&id(1), 1, ConnId(1), true);
        assert_eq!(queue.receive(a, 0, &[0; INPUT_FRAME + 1]), InputResult::TooLong);
        for frame in 0..4 {
            assert_eq!(queue.receive(a, frame * INPUT_FRAME as u64, &[0; INPUT_FRAME]), InputResult::Accepted);
        }
        assert_eq!(queue.receive(a, INPUT_WINDOW, b"x"), InputResult::OverWindow);
        for n in 0..100 {
            let b = queue.attach(&id(n), 1, ConnId(u64::from(n)), true);
            for frame in 0..4 {
                queue.receive(b, frame * INPUT_FRAME as u64, &[0; INPUT_FRAME]);
            }
        }
        assert_eq!(queue.bytes().len(), INPUT_QUEUE);
    }

    #[test]
    fn the_client_that_detached_first_is_forgotten_and_never_an_attached_one() {
        let mut queue = InputQueue::new(2);
        let first = queue.attach(&id(0), 1, ConnId(0), true);
        for n in 1..5 {
            let serial = queue.attach(&id(n), 1, ConnId(u64::from(n)), true);
            queue.detach(serial, ConnId(u64::from(n)));
        }
        let remembered = (0..5).map(|n| queue.find(&id(n)).is_some()).collect::<Vec<_>>();
        assert_eq!(remembered, [true, false, false, true, true]);
        queue.detach(first, ConnId(99));
        assert_eq!(queue.get(first).unwrap().attached, Some(ConnId(0)));
    }

    #[test]
    fn r26_no_flood_of_clients_makes_the_session_forget_the_writers_of_another_caller() {
        let key = |caller: &str, n| ClientKey { caller: Caller::Gateway(Some(caller.into())), ..id(n) };
        let mut queue = InputQueue::new(4);
        let mut visit = |key: &ClientKey, writer| {
            let serial = queue.attach(key, 1, ConnId(1), writer);
            queue.detach(serial, ConnId(1));
        };
        visit(&id(0), true);
        visit(&key("phone", 1), true);
        for n in 0..200 {
            visit(&key("guest", n), false);
        }
        for n in 0..200 {
            visit(&key("laptop", n), true);
        }
        let kept = [id(0), key("phone", 1), key("laptop", 198), key("laptop", 199)];
        assert!(kept.iter().all(|key| queue.find(key).is_some()), "{:?}", queue.clients);
        assert_eq!(queue.clients.len(), 4);
    }
}
