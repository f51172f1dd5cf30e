//! The bounds that keep the emulator's memory and time finite, whatever a program prints.

/// Bytes given to the parser at once; caps on unfinished sequences are checked between such pieces.
pub const PIECE: usize = 8 * 1024;
/// Longest operating system command; a longer one is discarded to its end.
pub const OSC_MAX: usize = 64 * 1024;
/// Longest control sequence before its final byte; a longer one is parsed but has no effect.
pub const ESCAPE_MAX: usize = 256;
/// Longest device control string that is answered; the rest of a longer one is discarded.
pub const DCS_MAX: usize = 4 * 1024;
/// Combining marks kept on one cell; more are dropped.
pub const MARKS_MAX: usize = 16;
/// Longest title in bytes; a longer one is cut.
pub const TITLE_MAX: usize = 4 * 1024;
/// Titles on the title stack; pushing one more drops the oldest.
pub const TITLE_STACK_MAX: usize = 16;
/// Lines of history a screen can be asked to keep; more are not.
pub const HISTORY_MAX: usize = 100_000;
/// Answers kept between two drains; further answers are dropped.
pub const REPLIES_MAX: usize = 64 * 1024;
/// Events kept between two drains; further ones are dropped.
pub const EVENTS_MAX: usize = 256;
/// Longest address of an OSC 8 link; text under a longer one is not a link.
pub const LINK_URI_MAX: usize = 2 * 1024;
/// Longest id of an OSC 8 link; a longer one is not used.
pub const LINK_ID_MAX: usize = 256;
/// Bytes of OSC 8 links alive in cells; past it, new links are refused until cells with old ones are gone.
pub const LINK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest address reported as found in the output; a longer one is not reported.
pub const URL_MAX: usize = 4 * 1024;
/// Addresses remembered as reported; the oldest is forgotten for a new one.
pub const URLS_MAX: usize = 1024;
/// Longest working directory taken from OSC 7; a longer one is ignored.
pub const CWD_MAX: usize = 4 * 1024;
/// Longest title of a notification; a longer one is cut.
pub const NOTIFY_TITLE_MAX: usize = 256;
/// Longest body of a notification; a longer one is cut.
pub const NOTIFY_BODY_MAX: usize = 4 * 1024;
/// Bytes of the file with a session's last screen, half of them for scrollback, which is left out until it fits.
pub const SAVED_MAX: usize = 32 * 1024 * 1024;
/// Lines of history in that file: it is written often, and the log has the rest.
pub const SAVED_SCROLLBACK: usize = 2_000;
