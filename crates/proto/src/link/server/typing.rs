//! Input on its way to the terminal: each client's bytes once, in order, also when its connection is cut.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};

use super::ConnId;
use crate::Offset;
use crate::config::{INPUT_FRAME, INPUT_QUEUE, INPUT_WINDOW};
use crate::ids::ClientId;

/// The input of all clients, and where each of them is in its own stream.
#[derive(Debug)]
pub(super) struct Typing {
    known: Vec<Known>,
    most: usize,
    serials: u64,
    uses: u64,
    queue: BytesMut,
    /// Whose bytes the queue holds, in order; none for bytes of no client.
    spans: VecDeque<(Option<Serial>, usize)>,
}

/// One client's entry, for as long as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Serial(u64);

/// What is remembered of a client.
#[derive(Debug)]
pub(super) struct Known {
    serial: Serial,
    id: ClientId,
    /// The highest count of its dials.
    pub(super) conn: u64,
    /// The next byte wanted of it.
    pub(super) received: Offset,
    /// The next byte of it that is not written.
    pub(super) written: Offset,
    /// It dialled before and was forgotten, and has not shown that it knows: until then it is told again, or it would
    /// resend under the old numbers what may have been typed.
    pub(super) forgotten: bool,
    /// The connection it is attached by.
    pub(super) attached: Option<ConnId>,
    /// It was allowed to type.
    pub(super) writer: bool,
    used: u64,
}

/// What became of an input frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// In the queue, or seen before.
    Taken,
    /// It starts after the expected byte.
    Hole { expected: Offset },
    /// It is longer than a frame may be.
    TooLong,
    /// The client has too much unwritten.
    OverWindow,
    /// The terminal does not read, and the queue is full.
    QueueFull,
}

impl Typing {
    pub(super) fn new(most: usize) -> Typing {
        Typing { known: Vec::new(), most, serials: 0, uses: 0, queue: BytesMut::new(), spans: VecDeque::new() }
    }

    pub(super) fn find(&self, id: &ClientId) -> Option<&Known> {
        self.known.iter().find(|known| known.id == *id)
    }

    pub(super) fn get(&self, serial: Serial) -> Option<&Known> {
        self.known.iter().find(|known| known.serial == serial)
    }

    pub(super) fn get_mut(&mut self, serial: Serial) -> Option<&mut Known> {
        self.known.iter_mut().find(|known| known.serial == serial)
    }

    /// A client attaches.
    pub(super) fn attach(&mut self, id: &ClientId, dial: u64, conn: ConnId, writer: bool) -> Serial {
        self.uses += 1;
        let used = self.uses;
        if let Some(known) = self.known.iter_mut().find(|known| known.id == *id) {
            (known.conn, known.attached, known.used) = (dial, Some(conn), used);
            known.writer |= writer;
            return known.serial;
        }
        self.serials += 1;
        let serial = Serial(self.serials);
        self.known.push(Known {
            serial,
            id: id.clone(),
            conn: dial,
            received: 0,
            written: 0,
            forgotten: dial > 1,
            attached: Some(conn),
            writer,
            used,
        });
        self.forget_oldest();
        serial
    }

    /// A client's connection is gone, unless a newer one has taken its place.
    pub(super) fn detach(&mut self, serial: Serial, conn: ConnId) {
        self.uses += 1;
        let used = self.uses;
        if let Some(known) = self.get_mut(serial)
            && known.attached == Some(conn)
        {
            (known.attached, known.used) = (None, used);
        }
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        while self.known.iter().filter(|known| known.attached.is_none()).count() > self.most {
            let away = self.known.iter().enumerate().filter(|(_, known)| known.attached.is_none());
            let Some((oldest, _)) = away.min_by_key(|(_, known)| known.used) else { return };
            self.known.swap_remove(oldest);
        }
    }

    /// Input of a client, at an offset of its own stream.
    pub(super) fn take(&mut self, serial: Serial, offset: Offset, bytes: &[u8]) -> Typed {
        if bytes.len() > INPUT_FRAME {
            return Typed::TooLong;
        }
        let queued = self.queue.len();
        let Some(known) = self.get_mut(serial) else { return Typed::Taken };
        known.forgotten = false;
        let Some(seen) = known.received.checked_sub(offset) else {
            return Typed::Hole { expected: known.received };
        };
        let seen = usize::try_from(seen).unwrap_or(usize::MAX);
        let Some(fresh) = bytes.get(seen..).filter(|fresh| !fresh.is_empty()) else { return Typed::Taken };
        if known.received - known.written + fresh.len() as u64 > INPUT_WINDOW {
            return Typed::OverWindow;
        }
        if queued + fresh.len() > INPUT_QUEUE {
            return Typed::QueueFull;
        }
        known.received += fresh.len() as u64;
        self.push(Some(serial), fresh);
        Typed::Taken
    }

    /// Input of no client's stream. False when the queue is full.
    pub(super) fn type_in(&mut self, bytes: &[u8]) -> bool {
        let fits = self.queue.len() + bytes.len() <= INPUT_QUEUE;
        if fits && !bytes.is_empty() {
            self.push(None, bytes);
        }
        fits
    }

    fn push(&mut self, whose: Option<Serial>, bytes: &[u8]) {
        self.queue.extend_from_slice(bytes);
        match self.spans.back_mut() {
            Some((last, len)) if *last == whose => *len += bytes.len(),
            _ => self.spans.push_back((whose, bytes.len())),
        }
    }

    /// What the terminal is to be given next.
    pub(super) fn queue(&self) -> &[u8] {
        &self.queue
    }

    /// The terminal took `n` bytes; tells whose they were, once for each run of bytes.
    pub(super) fn written(&mut self, n: usize, mut whose: impl FnMut(ConnId)) {
        let mut left = n.min(self.queue.len());
        self.queue.advance(left);
        while left > 0
            && let Some((serial, len)) = self.spans.front_mut()
        {
            let taken = left.min(*len);
            (*len, left) = (*len - taken, left - taken);
            let (serial, done) = (*serial, *len == 0);
            if done {
                self.spans.pop_front();
            }
            if let Some(known) = serial.and_then(|serial| self.get_mut(serial)) {
                known.written += taken as u64;
                if let Some(conn) = known.attached {
                    whose(conn);
                }
            }
        }
    }

    /// The terminal is gone: what it did not take is never written.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.spans.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ClientId {
        ClientId::from_random([n; 16])
    }

    #[test]
    fn input_is_taken_once_whatever_is_resent() {
        let mut typing = Typing::new(4);
        let a = typing.attach(&id(1), 1, ConnId(1), true);
        assert_eq!(typing.take(a, 0, b"abc"), Typed::Taken);
        assert_eq!(typing.take(a, 0, b"abc"), Typed::Taken);
        assert_eq!(typing.take(a, 1, b"bcde"), Typed::Taken);
        assert_eq!(typing.take(a, 6, b"x"), Typed::Hole { expected: 5 });
        assert_eq!(typing.queue(), b"abcde");
        typing.detach(a, ConnId(1));
        typing.written(2, |_| panic!("nobody is attached"));
        assert_eq!(typing.attach(&id(1), 2, ConnId(2), true), a);
        let mut acked = Vec::new();
        typing.written(3, |conn| acked.push(conn));
        assert_eq!(acked, [ConnId(2)]);
        assert_eq!(typing.get(a).unwrap().written, 5);
    }

    #[test]
    fn r52_a_program_that_does_not_read_costs_a_bounded_queue() {
        let mut typing = Typing::new(4);
        let a = typing.attach(&id(1), 1, ConnId(1), true);
        assert_eq!(typing.take(a, 0, &[0; INPUT_FRAME + 1]), Typed::TooLong);
        for frame in 0..4 {
            assert_eq!(typing.take(a, frame * INPUT_FRAME as u64, &[0; INPUT_FRAME]), Typed::Taken);
        }
        assert_eq!(typing.take(a, INPUT_WINDOW, b"x"), Typed::OverWindow);
        for n in 0..100 {
            let b = typing.attach(&id(n), 1, ConnId(u64::from(n)), true);
            for frame in 0..4 {
                typing.take(b, frame * INPUT_FRAME as u64, &[0; INPUT_FRAME]);
            }
        }
        assert_eq!(typing.queue().len(), INPUT_QUEUE);
    }

    #[test]
    fn the_client_longest_away_is_forgotten_and_never_an_attached_one() {
        let mut typing = Typing::new(2);
        let first = typing.attach(&id(0), 1, ConnId(0), true);
        for n in 1..5 {
            let serial = typing.attach(&id(n), 1, ConnId(u64::from(n)), true);
            typing.detach(serial, ConnId(u64::from(n)));
        }
        let remembered = (0..5).map(|n| typing.find(&id(n)).is_some()).collect::<Vec<_>>();
        assert_eq!(remembered, [true, false, false, true, true]);
        typing.detach(first, ConnId(99));
        assert_eq!(typing.get(first).unwrap().attached, Some(ConnId(0)));
    }
}
