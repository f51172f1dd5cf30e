//! Feeds arbitrary output and resizes to the emulator, which must neither panic nor grow without bound.
#![no_main]

use bowline_proto::message::Scope;
use bowline_proto::size::Size;
use bowline_session::screen::Screen;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut screen = Screen::new(Size::clamped(20, 6), 50);
    for (n, piece) in data.chunks(97).enumerate() {
        screen.advance(piece);
        if n % 7 == 6 {
            screen.resize(Size::clamped(u16::from(piece[0]), u16::from(piece[piece.len() - 1])));
        }
        drop((screen.take_replies(), screen.take_events()));
    }
    drop((screen.snapshot(Scope::All, 50), screen.text(50), screen.json(50)));
});
