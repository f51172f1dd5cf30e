//! Separates keys for the viewer (the detach key and the key after it) from input for the program.
//!
//! All input goes to the program, except the detach key (Ctrl-\ unless configured) and the key after it. There are no
//! timeouts: bytes are held back only while a key is incomplete, and a lone Escape never is. Terminals encode control
//! keys in three ways, depending on the modes that the program set: as one byte, as kitty's `CSI 92;5u`, or as xterm's
//! `CSI 27;5;92~`. All three are recognised, split at any byte. Nothing inside a bracketed paste is a command.

mod decode;
mod detach_key;

pub use detach_key::{DetachKey, InvalidDetachKey};

use decode::{Key, KeyEvent};

/// The longest key sequence that is held back. A longer one cannot be a key for the viewer, and passes.
pub(crate) const MAX_KEY: usize = 32;

/// A piece of the user's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyInput {
    /// For the program.
    Bytes(Vec<u8>),
    /// For the viewer.
    Command(Command),
}

/// A command to the viewer: the key after the detach key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `d`: detach, and leave the session running.
    Detach,
    /// `s`: make this viewer the size owner.
    ClaimSize,
    /// `r`: redraw the screen; while disconnected, reconnect now.
    Redraw,
    /// `y`: send the unsent input.
    SendUnsent,
    /// `n`: discard the unsent input.
    DiscardUnsent,
    /// `?`, or any key without a meaning: show the keys.
    Help,
}

/// The state machine that splits input.
#[derive(Debug)]
pub struct Keys {
    detach_key: Option<DetachKey>,
    state: State,
    /// An incomplete key sequence.
    held: Vec<u8>,
    /// The first byte of `held`, an Escape, was already passed to the program.
    leaked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// After the detach key: the next key is for the viewer.
    Prefixed,
    /// In a bracketed paste.
    Pasting,
}

impl Keys {
    /// Without a detach key, all input goes to the program.
    pub fn new(detach_key: Option<DetachKey>) -> Keys {
        Keys { detach_key, state: State::Plain, held: Vec::new(), leaked: false }
    }

    /// Splits bytes that were read from the terminal, in order.
    pub fn handle_input(&mut self, input: &[u8]) -> Vec<KeyInput> {
        let Some(detach_key) = self.detach_key else { return vec![KeyInput::Bytes(input.to_vec())] };
        let mut out = Vec::new();
        for &byte in input {
            self.step(detach_key, byte, &mut out);
        }
        // A lone Escape is a key too, and must not wait. If the rest of a sequence follows after all, it is still
        // recognised, but the program has received the Escape.
        if self.held == [0x1b] && !self.leaked && self.state != State::Prefixed {
            self.leaked = true;
            put(&mut out, &[0x1b]);
        }
        out
    }

    fn step(&mut self, detach_key: DetachKey, byte: u8, out: &mut Vec<KeyInput>) {
        match (self.held.as_slice(), byte) {
            ([], 0x1b) => self.held.push(byte),
            ([], _) if self.state == State::Pasting => put(out, &[byte]),
            ([], _) => self.key(detach_key, KeyEvent::from_byte(byte), &[byte], out),
            // The held Escape was a key of its own.
            ([0x1b], 0x1b) => {
                self.finish(detach_key, out);
                self.held.push(byte);
            }
            ([0x1b], b'[') => self.held.push(byte),
            ([0x1b], _) => {
                self.held.push(byte);
                self.finish(detach_key, out);
            }
            (_, 0x20..=0x3f) if self.held.len() < MAX_KEY => self.held.push(byte),
            (_, 0x40..=0x7e) => {
                self.held.push(byte);
                self.finish(detach_key, out);
            }
            (_, _) => {
                self.finish(detach_key, out);
                self.step(detach_key, byte, out);
            }
        }
    }

    /// Handles the held bytes as one complete key.
    fn finish(&mut self, detach_key: DetachKey, out: &mut Vec<KeyInput>) {
        let bytes = std::mem::take(&mut self.held);
        let fresh = usize::from(std::mem::take(&mut self.leaked));
        match (self.state, bytes.as_slice()) {
            (State::Pasting, b"\x1b[201~") => {
                self.state = State::Plain;
                put(out, &bytes[fresh..]);
            }
            (State::Pasting, _) => put(out, &bytes[fresh..]),
            (State::Plain | State::Prefixed, b"\x1b[200~") => {
                self.state = State::Pasting;
                put(out, &bytes[fresh..]);
            }
            (State::Plain | State::Prefixed, _) => {
                self.key(detach_key, KeyEvent::from_sequence(&bytes), &bytes[fresh..], out)
            }
        }
    }

    /// Handles a complete key; `bytes` are those that were not passed to the program yet.
    fn key(&mut self, detach_key: DetachKey, event: Option<KeyEvent>, bytes: &[u8], out: &mut Vec<KeyInput>) {
        let is_prefix = event.is_some_and(|event| event.key == detach_key.key());
        let released = event.is_some_and(|event| event.released);
        match self.state {
            // The program did not get the press, so it does not get the release.
            State::Plain | State::Pasting if is_prefix && released => {}
            State::Plain | State::Pasting if is_prefix => self.state = State::Prefixed,
            State::Plain | State::Pasting => put(out, bytes),
            State::Prefixed if released || event.is_some_and(KeyEvent::is_modifier) => {}
            State::Prefixed => {
                self.state = State::Plain;
                if is_prefix {
                    put(out, bytes);
                } else if let Some(command) = command(event) {
                    out.push(KeyInput::Command(command));
                }
            }
        }
    }
}

/// The command for a key after the detach key. `None` for Escape, which cancels the detach key.
fn command(event: Option<KeyEvent>) -> Option<Command> {
    match event.map(|event| event.key) {
        Some(Key::Plain('d')) => Some(Command::Detach),
        Some(Key::Plain('s')) => Some(Command::ClaimSize),
        Some(Key::Plain('r')) => Some(Command::Redraw),
        Some(Key::Plain('y')) => Some(Command::SendUnsent),
        Some(Key::Plain('n')) => Some(Command::DiscardUnsent),
        Some(Key::Plain('\x1b')) => None,
        _ => Some(Command::Help),
    }
}

fn put(out: &mut Vec<KeyInput>, bytes: &[u8]) {
    match out.last_mut() {
        _ if bytes.is_empty() => {}
        Some(KeyInput::Bytes(last)) => last.extend_from_slice(bytes),
        _ => out.push(KeyInput::Bytes(bytes.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(reads: &[&[u8]]) -> Vec<KeyInput> {
        let mut keys = Keys::new(Some(DetachKey::default()));
        let mut all: Vec<KeyInput> = Vec::new();
        for read in reads {
            for one in keys.handle_input(read) {
                match one {
                    KeyInput::Bytes(bytes) => put(&mut all, &bytes),
                    command @ KeyInput::Command(_) => all.push(command),
                }
            }
        }
        all
    }

    fn bytes(text: &[u8]) -> KeyInput {
        KeyInput::Bytes(text.to_vec())
    }

    /// The detach key in every encoding that terminals use.
    const PREFIXES: [&[u8]; 6] =
        [b"\x1c", b"\x1b[92;5u", b"\x1b[27;5;92~", b"\x1b[92;5:1u", b"\x1b[92;69u", b"\x1b[92:124;5u"];

    #[test]
    fn the_detach_key_then_d_detaches_in_every_encoding_and_split() {
        for detach_key in PREFIXES {
            for d in [&b"d"[..], b"\x1b[100u", b"\x1b[100;1:1u"] {
                let keys = [&b"ls"[..], detach_key, d, b"more"].concat();
                let expected = [bytes(b"ls"), KeyInput::Command(Command::Detach), bytes(b"more")];
                assert_eq!(split(&[&keys]), expected);
                for cut in 0..keys.len() {
                    let got = split(&[&keys[..cut], &keys[cut..]]);
                    // If the split is right after an Escape, the program gets that Escape.
                    let got: Vec<KeyInput> = got
                        .into_iter()
                        .map(|one| match one {
                            KeyInput::Bytes(bytes) => {
                                KeyInput::Bytes(bytes.into_iter().filter(|b| *b != 0x1b).collect())
                            }
                            command @ KeyInput::Command(_) => command,
                        })
                        .collect();
                    assert_eq!(got, expected, "cut at {cut} of {keys:?}");
                }
            }
        }
    }

    #[test]
    fn the_detach_key_twice_sends_it_once() {
        for detach_key in PREFIXES {
            assert_eq!(split(&[detach_key, detach_key, b"x"]), [bytes(&[detach_key, b"x"].concat())]);
        }
    }

    #[test]
    fn releases_and_modifier_keys_are_ignored() {
        let keys: [&[u8]; 5] =
            [b"\x1b[57442;5u", b"\x1b[92;5:1u", b"\x1b[92;5:3u", b"\x1b[57442;1:3u", b"\x1b[100;1:1u"];
        assert_eq!(split(&keys), [bytes(b"\x1b[57442;5u"), KeyInput::Command(Command::Detach)]);
    }

    #[test]
    fn an_escape_is_never_delayed_or_doubled() {
        assert_eq!(split(&[b"\x1b"]), [bytes(b"\x1b")]);
        assert_eq!(split(&[b"\x1b", b"[A"]), [bytes(b"\x1b[A")]);
        assert_eq!(split(&[b"\x1b", b"\x1b", b"x"]), [bytes(b"\x1b\x1bx")]);
    }

    #[test]
    fn a_paste_is_never_a_command() {
        let paste = b"\x1b[200~a\x1cd\x1b[92;5ud\x1b[201~";
        assert_eq!(split(&[paste, b"\x1cd"]), [bytes(paste), KeyInput::Command(Command::Detach)]);
    }

    #[test]
    fn an_unknown_key_shows_the_keys_and_escape_cancels() {
        assert_eq!(split(&[b"\x1cx"]), [KeyInput::Command(Command::Help)]);
        assert_eq!(split(&[b"\x1c\x1b[A"]), [KeyInput::Command(Command::Help)]);
        assert_eq!(split(&[b"\x1c\x1b[27ud"]), [bytes(b"d")]);
        assert_eq!(
            split(&[b"\x1cs\x1cr"]),
            [KeyInput::Command(Command::ClaimSize), KeyInput::Command(Command::Redraw)]
        );
    }

    #[test]
    fn without_a_detach_key_everything_passes() {
        assert_eq!(Keys::new(None).handle_input(b"\x1cd"), [bytes(b"\x1cd")]);
    }

    proptest! {
        /// Without the detach key, every byte arrives in order, however the input is split, and at the end at most the
        /// start of one key is held back.
        #[test]
        fn every_other_byte_arrives(input in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![0x1bu8, b'[', b'9', b'2', b';', b'5', b'u', b'~', b'7', b'0', b'1', b'd']),
            any::<u8>(),
        ], 0..200), cuts in prop::collection::vec(1usize..5, 1..9)) {
            let input: Vec<u8> = input.into_iter().filter(|b| *b != 0x1c).collect();
            let (mut keys, mut rest, mut got, mut commands) = (Keys::new(Some(DetachKey::default())), &input[..], vec![], 0);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                for one in keys.handle_input(now) {
                    match one {
                        KeyInput::Bytes(bytes) => got.extend(bytes),
                        KeyInput::Command(_) => commands += 1,
                    }
                }
                rest = later;
            }
            if commands == 0 && keys.state != State::Prefixed && !contains_prefix(&input) {
                got.extend(&keys.held[usize::from(keys.leaked)..]);
                prop_assert_eq!(got, input);
            }
            prop_assert!(keys.held.len() <= MAX_KEY + 1);
        }
    }

    fn contains_prefix(input: &[u8]) -> bool {
        input.windows(4).any(|w| w.starts_with(b"[92") || w.starts_with(b"[27"))
    }
}
