//! Every limit of the link: what it bounds, and what happens when it is reached.

use std::time::Duration;

use crate::ids::{ClientId, Epoch};
use crate::message::{Cursor, Grant, Lag, Theme};
use crate::size::Size;

/// Unacknowledged bytes of output to one viewer. Reaching it pauses the output to that viewer only.
pub const WINDOW: u64 = 1 << 20;
/// The least output that may be in flight to a viewer, however slow it is; also the longest output frame and snapshot
/// part.
pub const CHUNK: usize = 32 << 10;
/// The period over which a viewer's speed is measured, and how long a viewer may stay behind before it is `lagging`.
pub const PACE: Duration = Duration::from_millis(500);
/// How many windows a `skip` viewer may be behind the screen; past that it gets a `lagging` snapshot.
pub const LAG_WINDOWS: u64 = 2;
/// Up to this many viewers are sent each change of presence at once.
pub const CROWD_THRESHOLD: usize = 16;
/// With more viewers, changes of presence are collected for this long. Each list names every viewer, so sending one
/// per change would cost quadratic time.
pub const PRESENCE_EVERY: Duration = Duration::from_secs(1);
/// After this much silence, a side sends a ping.
pub const HEARTBEAT: Duration = Duration::from_secs(20);
/// A connection without a hello for this long is closed with 4408.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long an acknowledgement of input waits for output to be sent with.
pub const ACK_DELAY: Duration = Duration::from_millis(5);
/// How long a disconnected client keeps the size; then it passes to the writer that has been attached longest.
pub const OWNER_GRACE: Duration = Duration::from_secs(60);
/// How long a viewer waits for a snapshot; then it is closed with 1013, and resumes from its cursor.
pub const SNAPSHOT_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of snapshots on their way to viewers; one that several viewers share counts once. For a new one that does not
/// fit, the viewers that hold another and have not read for longest are closed with 1013, readers first, and never the
/// owner or a writer for a reader: that one is closed instead.
pub const SNAPSHOTS: u64 = 32 << 20;
/// How often a snapshot of the wrong size is requested again; then it is sent as it is, and a `resize` follows.
pub const SNAPSHOT_RETRIES: u8 = 3;
/// Bytes of input of one client that are received and not written; more is closed with 1008.
pub const INPUT_WINDOW: u64 = 64 << 10;
/// The longest input frame, in bytes; a longer one is closed with 1009.
pub const INPUT_FRAME: usize = 16 << 10;
/// Bytes of input queued for the terminal, over all clients; more is closed with 1013, and resent after a reconnect.
pub const INPUT_QUEUE: usize = 4 << 20;
/// Detached clients whose input offset is remembered. Past that, readers are forgotten first, then clients of the caller
/// that has the most, the oldest first. Such a client gets `input: null` when it attaches again.
pub const CLIENTS: usize = 256;
/// Viewers attached at the same time; another one is closed with 4429 at its hello.
pub const VIEWERS: usize = 1024;
/// One viewer's place in this many is kept for the owner on the session's machine, whose hello has no grant.
pub const OWNER_SHARE: usize = 16;
/// One place in this many, besides the owner's, is kept for viewers that may write.
pub const WRITER_SHARE: usize = 4;
/// One caller of a gateway gets at most one place in this many: enough for a crowd of 500 viewers with one token.
pub const CALLER_SHARE: usize = 2;
/// Changes of size that are remembered. Past that, the oldest is dropped, and the log counts as trimmed up to it.
pub const RESIZES: usize = 4096;
/// Invalid messages tolerated on a connection, each answered with an `error`; one more is closed with 4400.
pub const MAX_INVALID_MESSAGES: u32 = 16;
/// Notices (notifications, links, command answers) queued for a viewer. Past that, the oldest is dropped, and an
/// `error` says how many were.
pub const NOTICES: usize = 64;
/// Unanswered commands on a connection; another one is rejected with `too_many`.
pub const COMMANDS: usize = 64;
/// The longest text message, in bytes; a longer one gets `error too_large` and counts as invalid.
pub const TEXT: usize = 128 << 10;
/// The longest id or name of a caller in a grant, in bytes; a longer one is closed with 4400.
pub const CALLER_ID: usize = 1024;
/// The longest command id, in bytes; a longer one is an invalid message on an attach, and `bad_request` elsewhere.
pub const COMMAND_ID: usize = 64;

/// A viewer acknowledges output when it has rendered this many more bytes...
pub const ACK_BYTES: u64 = 16 << 10;
/// ...or this long after rendering output that it has not acknowledged.
pub const ACK_IDLE: Duration = Duration::from_millis(20);
/// Typed bytes that a client keeps: unacknowledged, typed offline, or unsent. Input that does not fit whole is
/// refused.
pub const OUTBOX: usize = 8 << 20;
/// The longest time without a connection after which kept input is sent automatically; later it is reported unsent.
pub const UNSENT_AFTER: Duration = Duration::from_secs(30);
/// After this long with unacknowledged input and without receiving anything, the client sends a probe.
pub const PROBE_AFTER: Duration = Duration::from_secs(3);
/// A probe that is unanswered for this long ends the connection.
pub const PROBE_WITHIN: Duration = Duration::from_secs(2);
/// A hello that is not answered by `attached` for this long ends the connection.
pub const ATTACHED_WITHIN: Duration = Duration::from_secs(15);
/// Bytes received and not yet polled by the caller; past that, the server ignores the window, and the connection is
/// dropped.
pub const UNPOLLED: usize = 64 << 20;
/// After being attached for this long, the next failure starts again at the first backoff delay.
pub const STABLE_AFTER: Duration = Duration::from_secs(10);
/// A dial that has neither opened nor failed after this long counts as failed.
pub const DIAL_WITHIN: Duration = Duration::from_secs(15);
/// The longest wait accepted from `Retry-After` or `retry_after`; a longer one is shortened to this.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// The shortest time between two dials of a hidden page.
pub const HIDDEN_EVERY: Duration = Duration::from_secs(60);
/// After a sleep of at least this long, an open connection is replaced without probing it.
pub const LONG_SLEEP: Duration = Duration::from_secs(45);

/// The silence after which a connection counts as dead: 2.25 heartbeats.
pub fn silence_limit(heartbeat: Duration) -> Duration {
    heartbeat * 9 / 4
}

/// The settings of a session's end of the link, for one epoch.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub epoch: Epoch,
    /// The size at the start of the log, unless an earlier [`handle_resized`] says otherwise.
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
    /// See [`SNAPSHOTS`].
    pub snapshots: u64,
    /// See [`CLIENTS`].
    pub clients: usize,
    /// See [`VIEWERS`].
    pub viewers: usize,
    /// See [`RESIZES`].
    pub resizes: usize,
    /// The most lines above the screen that the session keeps.
    pub scrollback: u32,
    /// Random bytes, from which the ids that presence shows are made.
    pub public_ids: [u8; 16],
}

impl ServerConfig {
    /// The default limits.
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
            snapshots: SNAPSHOTS,
            clients: CLIENTS,
            viewers: VIEWERS,
            resizes: RESIZES,
            scrollback: u32::MAX,
            public_ids: [0; 16],
        }
    }
}

/// The settings of a viewer's end of the link. See [`Hello`](crate::message::Hello) for the fields that it sends.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub client: ClientId,
    pub was: Option<ClientId>,
    pub cursor: Option<Cursor>,
    pub size: Option<Size>,
    pub lag: Lag,
    pub scrollback: u32,
    pub observe: bool,
    pub theme: Option<Theme>,
    pub key: Option<String>,
    pub grant: Option<Grant>,
    /// See [`OUTBOX`].
    pub outbox: usize,
    /// See [`ACK_BYTES`].
    pub rendered_every: u64,
    /// See [`UNSENT_AFTER`].
    pub unsent_after: Duration,
}

impl ClientConfig {
    /// A viewer without a window, with the default limits.
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
            rendered_every: ACK_BYTES,
            unsent_after: UNSENT_AFTER,
        }
    }
}
