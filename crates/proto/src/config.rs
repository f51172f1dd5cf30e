//! Every bound of the link, in one place: what it limits, and what happens when it is reached.

use std::time::Duration;

use crate::ids::{ClientId, Epoch};
use crate::message::{Cursor, Grant, Lag, Theme};
use crate::size::Size;

/// Output that a viewer has been sent and has not acknowledged. Reaching it pauses that viewer's output, nobody else's.
pub const WINDOW: u64 = 1 << 20;
/// The least that may be in flight to a viewer, however slow; also the longest output frame and snapshot part.
pub const CHUNK: usize = 32 << 10;
/// How far back "what it acknowledged lately" looks, and how long a viewer may stay behind before it is `lagging`.
pub const PACE: Duration = Duration::from_millis(500);
/// Windows of output that a `skip` viewer may be behind the screen; past it, a `lagging` snapshot.
pub const LAG_WINDOWS: u64 = 2;
/// Up to this many viewers hear at once who comes and goes.
pub const CROWD: usize = 16;
/// In a larger crowd, a viewer hears of all comings and goings of this long together: each list names everybody, so that a
/// list for each of them would be quadratic.
pub const PRESENCE_EVERY: Duration = Duration::from_secs(1);
/// Silence after which a side pings.
pub const HEARTBEAT: Duration = Duration::from_secs(20);
/// A connection without a hello for this long is closed 4408.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long an acknowledgement of input waits for output to travel with.
pub const ACK_DELAY: Duration = Duration::from_millis(5);
/// How long a dropped client keeps the size; then it passes to the writer that has been attached longest.
pub const OWNER_GRACE: Duration = Duration::from_secs(60);
/// How long a viewer waits for a snapshot; then it is closed 1013 and resumes by its cursor.
pub const SNAPSHOT_WITHIN: Duration = Duration::from_secs(10);
/// How often a snapshot of the wrong size is asked for again; then it is sent as it is, and a `resize` follows.
pub const SNAPSHOT_RETRIES: u8 = 3;
/// Input received and not yet written, per client; more is closed 1008.
pub const INPUT_WINDOW: u64 = 64 << 10;
/// The longest input frame; a longer one is closed 1009.
pub const INPUT_FRAME: usize = 16 << 10;
/// Input waiting for the terminal, over all clients; more is closed 1013, and resent after a reconnect.
pub const INPUT_QUEUE: usize = 4 << 20;
/// Clients whose input position is remembered after they left; the one longest away is forgotten, and told `input: null`.
pub const CLIENTS: usize = 256;
/// Viewers at a time; another one is closed 4429 at its hello.
pub const VIEWERS: usize = 1024;
/// Changes of size remembered; past it, the oldest goes, and the log counts as trimmed up to it.
pub const RESIZES: usize = 4096;
/// Mistakes forgiven on a connection, each with an `error`; one more is closed 4400.
pub const MISTAKES: u32 = 16;
/// Notices (notifications, links, command answers) waiting for a viewer; past it the oldest goes, and an `error` counts them.
pub const NOTICES: usize = 64;
/// Commands without an answer on a connection; another one is rejected `too_many`.
pub const COMMANDS: usize = 64;
/// The longest text message; a longer one gets `error too_large` and counts as a mistake.
pub const TEXT: usize = 128 << 10;
/// The longest command id; a longer one is a mistake on an attach, and `bad_request` elsewhere.
pub const COMMAND_ID: usize = 64;

/// The viewer acknowledges output each time it has rendered this much...
pub const RENDERED_EVERY: u64 = 16 << 10;
/// ...and when it has rendered nothing more for this long.
pub const RENDERED_IDLE: Duration = Duration::from_millis(20);
/// Typed bytes a client keeps: unacknowledged, typed offline, or waiting for the user's decision. Input that does not fit whole
/// is refused to the caller.
pub const OUTBOX: usize = 8 << 20;
/// Longest absence after which kept input is still sent by itself; later it is reported unsent.
pub const UNSENT_AFTER: Duration = Duration::from_secs(30);
/// Unacknowledged input and silence for this long start a probe.
pub const PROBE_AFTER: Duration = Duration::from_secs(3);
/// A probe unanswered for this long ends the connection.
pub const PROBE_WITHIN: Duration = Duration::from_secs(2);
/// A hello without `attached` for this long ends the connection.
pub const ATTACHED_WITHIN: Duration = Duration::from_secs(15);
/// Received and not yet polled; past it the connection is dropped, for the other end ignores the window.
pub const UNPOLLED: usize = 64 << 20;
/// Being attached this long makes a connection good: the next failure starts at the first backoff step.
pub const GOOD_AFTER: Duration = Duration::from_secs(10);
/// A dial that is neither open nor failed after this long has failed.
pub const DIAL_WITHIN: Duration = Duration::from_secs(15);
/// The longest wait that the other end may ask for with `Retry-After` or `retry_after`; more counts as this much.
pub const LONGEST_PATIENCE: Duration = Duration::from_secs(300);
/// How often a page that nobody looks at may dial.
pub const HIDDEN_EVERY: Duration = Duration::from_secs(60);
/// Asleep this long, an open connection is not probed but dialled again.
pub const LONG_SLEEP: Duration = Duration::from_secs(45);

/// Death is this many quarters of a heartbeat without a word.
const DEATH_QUARTERS: u32 = 9;

/// 2.25 heartbeats: the silence that means death.
pub fn death(heartbeat: Duration) -> Duration {
    heartbeat * DEATH_QUARTERS / 4
}

/// What one life of a session is, and how it treats its viewers.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The life.
    pub epoch: Epoch,
    /// The size in force at the start of the log, unless an earlier [`handle_resized`] says otherwise.
    ///
    /// [`handle_resized`]: crate::link::Server::handle_resized
    pub size: Size,
    /// See [`WINDOW`].
    pub window: u64,
    /// See [`CHUNK`].
    pub chunk: usize,
    /// See [`HEARTBEAT`].
    pub heartbeat: Duration,
    /// See [`HELLO_WITHIN`].
    pub hello_within: Duration,
    /// See [`OWNER_GRACE`].
    pub owner_grace: Duration,
    /// See [`SNAPSHOT_WITHIN`].
    pub snapshot_within: Duration,
    /// See [`CLIENTS`].
    pub clients: usize,
    /// See [`VIEWERS`].
    pub viewers: usize,
    /// See [`RESIZES`].
    pub resizes: usize,
}

impl ServerConfig {
    /// The ordinary bounds.
    pub fn new(epoch: Epoch, size: Size) -> ServerConfig {
        ServerConfig {
            epoch,
            size,
            window: WINDOW,
            chunk: CHUNK,
            heartbeat: HEARTBEAT,
            hello_within: HELLO_WITHIN,
            owner_grace: OWNER_GRACE,
            snapshot_within: SNAPSHOT_WITHIN,
            clients: CLIENTS,
            viewers: VIEWERS,
            resizes: RESIZES,
        }
    }
}

/// Who a viewer is and what it wants.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// This run of this client.
    pub client: ClientId,
    /// Its id before a page reload.
    pub was: Option<ClientId>,
    /// Where to go on from; none for a fresh start.
    pub cursor: Option<Cursor>,
    /// The size of its window, if it has one.
    pub size: Option<Size>,
    /// What it wants when it cannot keep up.
    pub lag: Lag,
    /// Lines of scrollback in a whole snapshot.
    pub scrollback: u32,
    /// Look only.
    pub observe: bool,
    /// Answers for colour queries.
    pub theme: Option<Theme>,
    /// A browser's origin key.
    pub key: Option<String>,
    /// What a gateway lets this viewer do.
    pub grant: Option<Grant>,
    /// See [`OUTBOX`].
    pub outbox: usize,
    /// See [`RENDERED_EVERY`].
    pub rendered_every: u64,
    /// See [`UNSENT_AFTER`].
    pub unsent_after: Duration,
}

impl ClientConfig {
    /// A viewer without a window, with the ordinary bounds.
    pub fn new(client: ClientId) -> ClientConfig {
        ClientConfig {
            client,
            was: None,
            cursor: None,
            size: None,
            lag: Lag::Skip,
            scrollback: 1000,
            observe: false,
            theme: None,
            key: None,
            grant: None,
            outbox: OUTBOX,
            rendered_every: RENDERED_EVERY,
            unsent_after: UNSENT_AFTER,
        }
    }
}
