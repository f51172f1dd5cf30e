//! The file `screen`: the last screen of a session, for readers that run no emulator.
