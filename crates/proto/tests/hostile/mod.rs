//! Runs the frame decoder and the server on hostile bytes. Used by the fuzz targets and by the seeded test `fuzz.rs`.

#[path = "../info/mod.rs"]
mod info;

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_proto::config::{INPUT_QUEUE, ServerConfig};
use bowline_proto::frame::{Binary, Frame, put_binary, put_text};
use bowline_proto::ids::ClientId;
use bowline_proto::link::{ConnId, Server, ServerEvent, Snapshot, SnapshotKind, Transmit};
use bowline_proto::message::{Scope, ServerMessage};
use bowline_proto::session::ExitStatus;
use bowline_proto::size::Size;
use info::info;

/// Decodes any bytes as frames, and checks that each frame encodes to the same bytes again.
pub fn decode(data: &[u8]) {
    let mut at = 0;
    while let Ok(Some((frame, used))) = Frame::decode(&data[at..]) {
        let mut encoded = Vec::new();
        match frame {
            Frame::Text(text) => put_text(&mut encoded, text),
            Frame::Binary(payload) => match Binary::decode(payload) {
                Ok(binary) => put_binary(&mut encoded, &binary),
                Err(_) => encoded.extend_from_slice(&data[at..at + used]),
            },
        }
        assert_eq!(encoded, data[at..at + used]);
        at += used;
    }
}

/// Reads numbers and bytes from the data until it is used up.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    /// Often a small number, sometimes one at the limits of u64.
    fn number(&mut self) -> u64 {
        let byte = u64::from(self.byte());
        match byte {
            0..=199 => byte * 16,
            200..=249 => u64::from(self.byte()) << 12 | byte,
            250 => u64::MAX,
            251 => u64::MAX - 1,
            252 => 1 << 53,
            _ => u64::from_be_bytes([self.byte(), 0, 0, self.byte(), 0, 0, 0, self.byte()]),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = (self.number() as usize).min(20_000);
        // Long frames are padded, so that they do not use up the data.
        let start = self.0.split_off(..len.min(16).min(self.0.len())).unwrap_or_default();
        start.iter().copied().chain(std::iter::repeat(b'x')).take(len).collect()
    }

    fn hello(&mut self) -> String {
        let client = ClientId::from_random([self.byte() % 4; 16]);
        let cursor = match self.byte() % 3 {
            0 => "null".to_owned(),
            1 => format!(r#"{{"epoch":"00000000","offset":{}}}"#, self.number()),
            _ => format!(r#"{{"epoch":"00000001","offset":{}}}"#, self.number()),
        };
        let lag = if self.byte().is_multiple_of(2) { "skip" } else { "wait" };
        let (version, conn, cols) = (1 + u32::from(self.byte() == 0), self.number(), self.byte());
        let (observe, scrollback) = (self.byte().is_multiple_of(4), self.number() as u32);
        format!(
            r##"{{"type":"hello","version":{version},"client":"{client}","conn":{conn},"cursor":{cursor},"lag":"{lag}",
            "size":{{"cols":{cols},"rows":24}},"observe":{observe},"scrollback":{scrollback},
            "was":"{client}","theme":{{"fg":"#ffffff","bg":"#00000{}"}}}}"##,
            self.byte() % 10
        )
    }

    fn text(&mut self) -> String {
        let n = self.number();
        match self.byte() % 10 {
            0 => self.hello(),
            1 => format!(r#"{{"type":"ack","output":{n}}}"#),
            2 => format!(r#"{{"type":"resize","cols":{n},"rows":24}}"#),
            3 => format!(r#"{{"type":"claim_size","cols":{n},"rows":24}}"#),
            4 => r#"{"type":"repaint"}"#.to_owned(),
            5 => format!(r#"{{"type":"command","id":"{n}","command":{{"type":"x"}}}}"#),
            6 => format!(r#"{{"type":"ping","n":{n}}}"#),
            7 => format!(r#"{{"type":"pong","n":{n}}}"#),
            8 => "[".repeat(n.min(5000) as usize),
            _ => String::from_utf8_lossy(&self.bytes()).into_owned(),
        }
    }
}

/// What the server has sent on one connection, to check what it sends next.
#[derive(Default)]
struct SentState {
    /// The next byte of output, once the client is attached.
    next: Option<u64>,
    /// Bytes of a snapshot that are still to come.
    snapshot_left: u64,
    closed: bool,
}

/// Lets the data decide what happens to a server, and checks everything that it sends.
pub fn run_server(data: &[u8]) {
    let source = &mut Source(data);
    let mut config = ServerConfig::new("00000000".parse().unwrap(), Size::default());
    (config.viewers, config.clients, config.resizes, config.window) = (6, 3, 8, 70_000);
    config.snapshots = 40_000;
    let info = info(&config);
    let mut server = Server::new(config, info);
    let mut sent: BTreeMap<ConnId, SentState> = BTreeMap::new();
    let (mut now, mut conns, mut start, mut end, mut screen, mut size) =
        (Duration::ZERO, 0, 0u64, 0u64, 0u64, Size::default());
    while !source.0.is_empty() {
        let conn = ConnId(u64::from(source.byte()) % (conns + 1));
        match source.byte() % 20 {
            0 => {
                conns += 1;
                server.handle_open(ConnId(conns), now);
                sent.insert(ConnId(conns), SentState::default());
                let hello = source.hello();
                server.handle_frame(ConnId(conns), Frame::Text(&hello), now);
            }
            1..=6 => server.handle_frame(conn, Frame::Text(&source.text()), now),
            7..=9 => {
                let mut payload = Vec::new();
                let offset = source.number();
                Binary::Input(offset, &source.bytes()).encode(&mut payload);
                server.handle_frame(conn, Frame::Binary(&payload), now);
            }
            10 => server.handle_frame(conn, Frame::Binary(&source.bytes()), now),
            11 => {
                server.handle_closed(conn, now);
                sent.remove(&conn);
            }
            12 | 13 => {
                end += source.number() % (1 << 20);
                start = start.max(end.saturating_sub(200_000));
                server.handle_log(start, end);
            }
            14 => {
                screen += (end - screen).min(source.number());
                server.handle_screen(screen.max(start));
                screen = screen.max(start);
            }
            15 => {
                size = Size::clamped(u16::from(source.byte()), 24);
                server.handle_resized(end, size);
            }
            // A snapshot that was not requested, or is out of date.
            16 => {
                let offset = screen.saturating_sub(source.number());
                let kind = SnapshotKind { scope: Scope::All, scrollback: source.number() as u32 };
                server.handle_snapshot(kind, Snapshot { offset, size, pieces: vec![source.bytes().into()] });
            }
            17 => {
                let n = source.number() as usize;
                server.handle_input_written(n.min(server.input().len()), now);
            }
            18 if source.byte() == 0 => server.handle_exit(ExitStatus::default()),
            18 => server.handle_notice(ServerMessage::Bell),
            _ => {
                now += Duration::from_millis(source.number() % 30_000);
                server.handle_timeout(now);
            }
        }
        for _ in 0..source.byte() % 8 {
            while let Some(event) = server.poll_event() {
                if let ServerEvent::NeedSnapshot(kind) = event {
                    let (offset, pieces) = (screen, vec![source.bytes().into(), source.bytes().into()]);
                    server.handle_snapshot(kind, Snapshot { offset, size, pieces });
                }
            }
            for (id, state) in &mut sent {
                if let Some(transmit) = server.poll_transmit(*id, now) {
                    check(state, &transmit, start, end);
                }
            }
        }
        assert!(server.input().len() <= INPUT_QUEUE);
        assert!(server.clients() <= 6);
        let _ = server.poll_timeout();
    }
}

fn check(state: &mut SentState, transmit: &Transmit, start: u64, end: u64) {
    assert!(!state.closed, "nothing after the close");
    match transmit {
        Transmit::Close { .. } => state.closed = true,
        Transmit::Output { from, len } => {
            assert_eq!((state.next, state.snapshot_left), (Some(*from), 0), "output continues where it ended");
            assert!(*from >= start && from + *len as u64 <= end && *len > 0, "the log has this output");
            state.next = Some(from + *len as u64);
        }
        Transmit::SnapshotPart(bytes) => {
            state.snapshot_left =
                state.snapshot_left.checked_sub(bytes.len() as u64).expect("a snapshot is not longer than announced");
        }
        Transmit::Text(ServerMessage::Attached(at)) => {
            assert_eq!(state.next, None, "attached once");
            state.next = Some(at.offset);
            state.snapshot_left = at.snapshot.map_or(0, |snapshot| snapshot.bytes);
        }
        Transmit::Text(ServerMessage::Snapshot { offset, bytes, missed, .. }) => {
            let next = state.next.expect("attached first");
            assert!(*offset >= next && state.snapshot_left == 0, "a snapshot never goes back");
            assert_eq!(missed.map(|missed| (missed.from, missed.to)), (next < *offset).then_some((next, *offset)));
            (state.next, state.snapshot_left) = (Some(*offset), *bytes);
        }
        Transmit::Text(ServerMessage::Exit { offset, .. }) => assert_eq!(state.next, Some(*offset)),
        Transmit::Text(_) => {}
    }
}
