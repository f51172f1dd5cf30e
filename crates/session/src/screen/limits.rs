//! Limits that bound the emulator's memory and time, whatever a program prints.

/// Bytes passed to the parser at once. Limits on unfinished sequences are checked between such pieces.
pub const PIECE: usize = 8 * 1024;
/// Longest operating system command (OSC). A longer one is ignored.
pub const OSC_MAX: usize = 64 * 1024;
/// Longest start of a control sequence (CSI) that is continued in the next piece. A longer one is ignored.
pub const ESCAPE_MAX: usize = 256;
/// Longest device control string (DCS) that gets a reply. A longer one is ignored.
pub const DCS_MAX: usize = 4 * 1024;
/// Most combining marks in one cell. Further ones are dropped.
pub const MARKS_MAX: usize = 16;
/// Longest title in bytes. A longer one is cut.
pub const TITLE_MAX: usize = 4 * 1024;
/// Most titles on the title stack. Pushing another one drops the oldest.
pub const TITLE_STACK_MAX: usize = 16;
/// Most lines of scrollback that a screen keeps. A larger setting is reduced to this.
pub const SCROLLBACK_MAX: usize = 100_000;
/// Most bytes of query replies between two drains. Further replies are dropped.
pub const REPLIES_MAX: usize = 64 * 1024;
/// Most notifications and URLs between two drains. Further ones are dropped.
pub const EVENTS_MAX: usize = 256;
/// Longest URI of an OSC 8 link. Text with a longer one is not a link.
pub const LINK_URI_MAX: usize = 2 * 1024;
/// Longest id of an OSC 8 link. A longer one is ignored.
pub const LINK_ID_MAX: usize = 256;
/// Most bytes of OSC 8 links that cells refer to. Text with further links is not a link until cells with
/// old ones are overwritten or scrolled away.
pub const LINK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most bytes of scrollback in a snapshot. Older lines are left out.
pub const PAINTED_SCROLLBACK_MAX: usize = 8 * 1024 * 1024;
/// Most bytes of OSC 8 links in a snapshot, where each change of link counts. Further text is painted without links.
pub const PAINTED_LINKS_MAX: usize = 4 * 1024 * 1024;
/// Most bytes of the screen as text, ANSI or JSON. Further lines are left out. It is more than fits into a reply of
/// the session, which is refused as too large, so only the file with the last screen is ever cut.
pub const RENDERED_MAX: usize = 2 * 1024 * 1024;
/// Longest URL in the output that is reported.
pub const URL_MAX: usize = 4 * 1024;
/// Most URLs that are remembered as reported. A new one replaces the oldest, which may then be reported again.
pub const URLS_MAX: usize = 1024;
/// Longest working directory of OSC 7. A longer one is ignored.
pub const CWD_MAX: usize = 4 * 1024;
/// Longest title of a notification, in bytes. A longer one is cut.
pub const NOTIFY_TITLE_MAX: usize = 256;
/// Longest body of a notification, in bytes. A longer one is cut.
pub const NOTIFY_BODY_MAX: usize = 4 * 1024;
/// Most bytes of the file with a session's last screen. Half of it is for the snapshot with scrollback,
/// which is shortened until it fits.
pub const SAVED_MAX: usize = 32 * 1024 * 1024;
/// Most lines of scrollback in that file. It is written often, and the log has the rest.
pub const SAVED_SCROLLBACK: usize = 2_000;
