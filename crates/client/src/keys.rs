//! The keys that the viewer keeps for itself: the detach key, and the one that follows it.
//!
//! Everything typed goes to the program, except the detach key (Ctrl-\ unless configured) and the key after it. The
//! machine has no timeouts: a byte is held back only when it cannot be a whole key yet, and a lone Escape never is.
//! Terminals write control keys in three ways, depending on what the program asked of them: as one byte, as kitty's
//! `CSI 92;5u`, and as xterm's `CSI 27;5;92~`. All are understood, split at any byte. Inside a bracketed paste
//! nothing is a command.

mod decode;
mod prefix;

pub use prefix::{BadPrefix, Prefix};

use decode::{Key, Press};

/// The longest key sequence that is held back to be read whole; a longer one is no key of ours and passes.
pub(crate) const MAX_KEY: usize = 32;

/// What typing led to, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Bytes for the program.
    Bytes(Vec<u8>),
    /// The user's word to the viewer.
    Command(Command),
}

/// What the key after the detach key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `d`: leave, and let the session live on.
    Detach,
    /// `s`: let this window decide the session's size.
    ClaimSize,
    /// `r`: draw the screen again; without a connection, dial now.
    Redraw,
    /// `y`: send what was typed while there was no connection.
    SendUnsent,
    /// `n`: forget it.
    DiscardUnsent,
    /// `?`, or a key that means nothing here: show the keys.
    Help,
}

/// The machine.
#[derive(Debug)]
pub struct Keys {
    prefix: Option<Prefix>,
    state: State,
    /// An unfinished key sequence, not passed on yet.
    held: Vec<u8>,
    /// The first byte of `held` went to the program already.
    leaked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// The detach key was pressed; the next key is for the viewer.
    Prefixed,
    /// In a bracketed paste.
    Pasting,
}

impl Keys {
    /// A machine for this detach key; without one, everything goes to the program.
    pub fn new(prefix: Option<Prefix>) -> Keys {
        Keys { prefix, state: State::Plain, held: Vec::new(), leaked: false }
    }

    /// Takes what the terminal sent.
    pub fn handle_input(&mut self, input: &[u8]) -> Vec<Typed> {
        let Some(prefix) = self.prefix else { return vec![Typed::Bytes(input.to_vec())] };
        let mut typed = Vec::new();
        for &byte in input {
            self.step(prefix, byte, &mut typed);
        }
        // A lone Escape is a key in its own right, and must not wait. If more of a sequence follows after all, that is
        // still understood; the program has then seen an Escape.
        if self.held == [0x1b] && !self.leaked && self.state != State::Prefixed {
            self.leaked = true;
            put(&mut typed, &[0x1b]);
        }
        typed
    }

    fn step(&mut self, prefix: Prefix, byte: u8, typed: &mut Vec<Typed>) {
        match (self.held.as_slice(), byte) {
            ([], 0x1b) => self.held.push(byte),
            ([], _) if self.state == State::Pasting => put(typed, &[byte]),
            ([], _) => self.key(prefix, Press::of_byte(byte), &[byte], typed),
            // A new Escape, or a key with Alt: what was held was a key.
            ([0x1b], 0x1b) => {
                self.finish(prefix, typed);
                self.held.push(byte);
            }
            ([0x1b], b'[') => self.held.push(byte),
            ([0x1b], _) => {
                self.held.push(byte);
                self.finish(prefix, typed);
            }
            (_, 0x20..=0x3f) if self.held.len() < MAX_KEY => self.held.push(byte),
            (_, 0x40..=0x7e) => {
                self.held.push(byte);
                self.finish(prefix, typed);
            }
            (_, _) => {
                self.finish(prefix, typed);
                self.step(prefix, byte, typed);
            }
        }
    }

    /// The held bytes are all there is of this key.
    fn finish(&mut self, prefix: Prefix, typed: &mut Vec<Typed>) {
        let bytes = std::mem::take(&mut self.held);
        let fresh = usize::from(std::mem::take(&mut self.leaked));
        match (self.state, bytes.as_slice()) {
            (State::Pasting, b"\x1b[201~") => {
                self.state = State::Plain;
                put(typed, &bytes[fresh..]);
            }
            (State::Pasting, _) => put(typed, &bytes[fresh..]),
            (State::Plain | State::Prefixed, b"\x1b[200~") => {
                self.state = State::Pasting;
                put(typed, &bytes[fresh..]);
            }
            (State::Plain | State::Prefixed, _) => self.key(prefix, Press::of_sequence(&bytes), &bytes[fresh..], typed),
        }
    }

    /// One whole key, and the bytes of it that the program has not got yet.
    fn key(&mut self, prefix: Prefix, press: Option<Press>, bytes: &[u8], typed: &mut Vec<Typed>) {
        let is_prefix = press.is_some_and(|press| press.key == prefix.key());
        let released = press.is_some_and(|press| press.released);
        match self.state {
            // The release of a key whose press was kept is kept, too.
            State::Plain | State::Pasting if is_prefix && released => {}
            State::Plain | State::Pasting if is_prefix => self.state = State::Prefixed,
            State::Plain | State::Pasting => put(typed, bytes),
            State::Prefixed if released || press.is_some_and(Press::is_modifier) => {}
            State::Prefixed => {
                self.state = State::Plain;
                if is_prefix {
                    put(typed, bytes);
                } else if let Some(command) = command(press) {
                    typed.push(Typed::Command(command));
                }
            }
        }
    }
}

/// What a key after the detach key asks for; none for Escape, which only takes the detach key back.
fn command(press: Option<Press>) -> Option<Command> {
    match press.map(|press| press.key) {
        Some(Key::Plain('d')) => Some(Command::Detach),
        Some(Key::Plain('s')) => Some(Command::ClaimSize),
        Some(Key::Plain('r')) => Some(Command::Redraw),
        Some(Key::Plain('y')) => Some(Command::SendUnsent),
        Some(Key::Plain('n')) => Some(Command::DiscardUnsent),
        Some(Key::Plain('\x1b')) => None,
        _ => Some(Command::Help),
    }
}

fn put(typed: &mut Vec<Typed>, bytes: &[u8]) {
    match typed.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Typed::Bytes(last)) => last.extend_from_slice(bytes),
        _ => typed.push(Typed::Bytes(bytes.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn typed(reads: &[&[u8]]) -> Vec<Typed> {
        let mut keys = Keys::new(Some(Prefix::default()));
        let mut all: Vec<Typed> = Vec::new();
        for read in reads {
            for one in keys.handle_input(read) {
                match one {
                    Typed::Bytes(bytes) => put(&mut all, &bytes),
                    command @ Typed::Command(_) => all.push(command),
                }
            }
        }
        all
    }

    fn bytes(text: &[u8]) -> Typed {
        Typed::Bytes(text.to_vec())
    }

    /// The detach key, in each of the ways in which terminals write it.
    const PREFIXES: [&[u8]; 6] =
        [b"\x1c", b"\x1b[92;5u", b"\x1b[27;5;92~", b"\x1b[92;5:1u", b"\x1b[92;69u", b"\x1b[92:124;5u"];

    #[test]
    fn the_detach_key_then_d_detaches_however_it_is_written_and_cut() {
        for prefix in PREFIXES {
            for d in [&b"d"[..], b"\x1b[100u", b"\x1b[100;1:1u"] {
                let keys = [&b"ls"[..], prefix, d, b"more"].concat();
                let expected = [bytes(b"ls"), Typed::Command(Command::Detach), bytes(b"more")];
                assert_eq!(typed(&[&keys]), expected);
                for cut in 0..keys.len() {
                    let got = typed(&[&keys[..cut], &keys[cut..]]);
                    // Cut right after an Escape, the program sees that Escape.
                    let got: Vec<Typed> = got
                        .into_iter()
                        .map(|one| match one {
                            Typed::Bytes(bytes) => Typed::Bytes(bytes.into_iter().filter(|b| *b != 0x1b).collect()),
                            command @ Typed::Command(_) => command,
                        })
                        .collect();
                    assert_eq!(got, expected, "cut at {cut} of {keys:?}");
                }
            }
        }
    }

    #[test]
    fn twice_the_detach_key_sends_it_once() {
        for prefix in PREFIXES {
            assert_eq!(typed(&[prefix, prefix, b"x"]), [bytes(&[prefix, b"x"].concat())]);
        }
    }

    #[test]
    fn releases_and_modifier_keys_do_not_count() {
        let keys: [&[u8]; 5] =
            [b"\x1b[57442;5u", b"\x1b[92;5:1u", b"\x1b[92;5:3u", b"\x1b[57442;1:3u", b"\x1b[100;1:1u"];
        assert_eq!(typed(&keys), [bytes(b"\x1b[57442;5u"), Typed::Command(Command::Detach)]);
    }

    #[test]
    fn an_escape_never_waits_and_is_never_doubled() {
        assert_eq!(typed(&[b"\x1b"]), [bytes(b"\x1b")]);
        assert_eq!(typed(&[b"\x1b", b"[A"]), [bytes(b"\x1b[A")]);
        assert_eq!(typed(&[b"\x1b", b"\x1b", b"x"]), [bytes(b"\x1b\x1bx")]);
    }

    #[test]
    fn a_paste_is_never_a_command() {
        let paste = b"\x1b[200~a\x1cd\x1b[92;5ud\x1b[201~";
        assert_eq!(typed(&[paste, b"\x1cd"]), [bytes(paste), Typed::Command(Command::Detach)]);
    }

    #[test]
    fn an_unknown_key_shows_the_keys_and_escape_takes_it_back() {
        assert_eq!(typed(&[b"\x1cx"]), [Typed::Command(Command::Help)]);
        assert_eq!(typed(&[b"\x1c\x1b[A"]), [Typed::Command(Command::Help)]);
        assert_eq!(typed(&[b"\x1c\x1b[27ud"]), [bytes(b"d")]);
        assert_eq!(typed(&[b"\x1cs\x1cr"]), [Typed::Command(Command::ClaimSize), Typed::Command(Command::Redraw)]);
    }

    #[test]
    fn without_a_detach_key_everything_passes() {
        assert_eq!(Keys::new(None).handle_input(b"\x1cd"), [bytes(b"\x1cd")]);
    }

    proptest! {
        /// Whatever is typed and however it is cut, without the detach key every byte arrives, in order, and at the end
        /// at most the start of one key is held back.
        #[test]
        fn every_other_byte_arrives(input in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![0x1bu8, b'[', b'9', b'2', b';', b'5', b'u', b'~', b'7', b'0', b'1', b'd']),
            any::<u8>(),
        ], 0..200), cuts in prop::collection::vec(1usize..5, 1..9)) {
            let input: Vec<u8> = input.into_iter().filter(|b| *b != 0x1c).collect();
            let (mut keys, mut rest, mut got, mut commands) = (Keys::new(Some(Prefix::default())), &input[..], vec![], 0);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                for one in keys.handle_input(now) {
                    match one {
                        Typed::Bytes(bytes) => got.extend(bytes),
                        Typed::Command(_) => commands += 1,
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
