//! The keys of the configuration, with the variable, the flag and the description of each. Those of an agent are in
//! `agents`.

/// A key of the configuration.
#[derive(Debug)]
pub(crate) struct Key {
    /// Dotted path in the file, such as `gateway.listen`.
    pub(crate) path: &'static str,
    /// The verb and flag that set it, such as `serve --listen`.
    pub(crate) flag: Option<&'static str>,
    /// What the value means and, for a limit, what happens when it is reached.
    pub(crate) about: &'static str,
}

impl Key {
    /// The environment variable that sets the key: its path in capitals, without `gateway`.
    pub(crate) fn variable(&self) -> String {
        if self.path == "gateway.log_level" {
            return "RUST_LOG".into();
        }
        let path = self.path.strip_prefix("gateway.").unwrap_or(self.path);
        format!("BOWLINE_{}", path.replace('.', "_").to_uppercase())
    }

    /// The name for `--limit NAME=VALUE`, if the key is a limit of the gateway.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.path.strip_prefix("gateway.limits.")
    }
}

pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

const fn key(path: &'static str, flag: &'static str, about: &'static str) -> Key {
    Key { path, flag: if flag.is_empty() { None } else { Some(flag) }, about }
}

/// All keys, in the order in which `bowline config show` and docs/CONFIG.md list them.
pub(crate) const KEYS: &[Key] = &[
    key(
        "detach_key",
        "attach --detach-key",
        "prefix key for Bowline's own keys, such as ctrl-\\ or ctrl-a; `none` disables it, and then the next key you press discards unsent input",
    ),
    key("shell", "", "program of a session without a command; your login shell if unset"),
    key(
        "log_size",
        "new --log-size",
        "output that a session keeps, 256K to 64G; beyond it the oldest output is dropped",
    ),
    key(
        "scrollback",
        "new --scrollback",
        "lines that a session keeps above its screen, at most 100000; beyond it the oldest are dropped",
    ),
    key(
        "transcript_size",
        "",
        "size of a conversation's transcript, 1M to 4G; beyond it prompts get 507 `no_space`. A running session uses the value that it was started with",
    ),
    key(
        "approval_deadline",
        "",
        "time after which an approval that was not answered is denied, such as `\"8h\"`; a running session uses the value that it was started with",
    ),
    key(
        "reconnect_tries",
        "",
        "failed connection attempts after which `attach` waits for Enter, or for Ctrl-L in a conversation, before it tries again; `\"never\"` to keep trying",
    ),
    key("retention.exited_days", "", "days after which an exited terminal is forgotten"),
    key("retention.total_size", "", "disk space that exited terminals may take; beyond it the oldest are forgotten"),
    key(
        "retention.conversations",
        "",
        "time after its last event after which a conversation that does not run is forgotten, such as `\"90d\"`",
    ),
    key("gateway.listen", "serve --listen", "address and port to listen on; port 0 picks a free one"),
    key(
        "gateway.public_url",
        "serve --public-url",
        "URL that browsers use; determines the login link, the QR code, the allowed Origin and Host, and whether cookies are Secure",
    ),
    key(
        "gateway.base_path",
        "serve --base-path",
        "path under which the gateway is served; that of public_url if unset",
    ),
    key("gateway.hosts", "serve --host", "additional names to accept in the Host header; others get 403 `bad_host`"),
    key(
        "gateway.proxies",
        "serve --proxy",
        "networks of trusted proxies; their X-Forwarded-* headers are used, and of several values the last",
    ),
    key(
        "gateway.roots",
        "",
        "folders below which `GET /v1/folders` lists folders, to choose where a session starts; `~` is the home directory. Others get 403 `not_allowed`. A session can still be started in any directory",
    ),
    key("gateway.open_metrics", "serve --open-metrics", "serve /metrics without a token"),
    key(
        "gateway.log_level",
        "serve --log-level",
        "what to log: error, warn, info, debug, trace, or a filter such as `warn,bowline_gateway=debug`",
    ),
    key(
        "gateway.scopes",
        "",
        "run session processes in systemd scopes: `auto` (if the gateway is a systemd service), `always`, `never`",
    ),
    key("gateway.forward_auth.header", "serve --forward-auth-header", "header in which a trusted proxy names the user"),
    key(
        "gateway.forward_auth.users",
        "serve --forward-auth-user",
        "users that the header may log in; others get 403 `not_allowed`",
    ),
    key(
        "gateway.forward_auth.secret_header",
        "serve --forward-auth-secret-header",
        "header in which the proxy sends the secret with each request; without the right secret, the user header and X-Forwarded-* are ignored",
    ),
    key(
        "gateway.forward_auth.secret_file",
        "serve --forward-auth-secret-file",
        "file with that secret: one line of 32 to 1024 characters; read when the gateway starts",
    ),
    key("gateway.tls.cert", "serve --tls-cert", "certificate and its chain, PEM; reloaded when the file changes"),
    key("gateway.tls.key", "serve --tls-key", "private key of the certificate, PEM"),
    key(
        "gateway.limits.sockets",
        "",
        "open sockets, at most three eighths of the open-file limit; one more closes the oldest without an authenticated request, of the address that has the most. If there is none, it gets 503 `too_many` and is closed (with TLS, or past 64 at a time, it is closed without a response)",
    ),
    key(
        "gateway.limits.streams",
        "",
        "attachments and event streams, a quarter of them only for callers that may write; one more gets 4429 / 429 `too_many`",
    ),
    key("gateway.limits.streams_per_token", "", "the same for one token or login; one more gets 4429 / 429 `too_many`"),
    key(
        "gateway.limits.request_rate",
        "",
        "requests per second with one token, login or proxy user, with bursts of ten seconds' worth; a screen counts as two, with scrollback as ten. More wait for up to a second, and then get 429 `too_many`",
    ),
    key(
        "gateway.limits.attach_rate",
        "",
        "attempts to attach or to open an event stream, per second with one token, login or proxy user; also requests with bad credentials, per second from one address; both with bursts of ten seconds' worth; more get 4429 / 429 `too_many`",
    ),
    key(
        "gateway.limits.login_rate",
        "",
        "wrong login codes per minute from one address; more get 429 `too_many`. The right code always works",
    ),
    key(
        "gateway.limits.body",
        "",
        "size of a request body; a larger one gets 413 `too_large`. An upload may have 10 MiB instead",
    ),
    key(
        "gateway.limits.message",
        "",
        "size of a WebSocket message, 128K to 1M; a larger one closes the connection with 1009",
    ),
    key(
        "gateway.limits.head_within",
        "",
        "time for the TLS handshake and the head of a request; after it the socket is closed",
    ),
    key(
        "gateway.limits.body_within",
        "",
        "time to send the body of a request; after it the response is 408 `too_slow`. For an upload, the longest pause",
    ),
    key(
        "gateway.limits.hello_within",
        "",
        "time to send the first WebSocket message; after it the connection is closed with 4408",
    ),
    key(
        "gateway.limits.heartbeat",
        "",
        "interval of pings on an event stream; after 2.25 intervals without a message from the client it is closed",
    ),
    key(
        "gateway.limits.stalled_after",
        "",
        "a connection that accepts no data for this long is closed; so is a viewer of an ended session that acknowledges nothing (4408)",
    ),
    key(
        "gateway.limits.drain",
        "",
        "time that a stopping gateway waits for connections to close; after it they are cut",
    ),
];

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::super::Config;
    use super::super::layers::get;
    use super::*;

    /// The row of a key in docs/CONFIG.md.
    fn row(key: &Key, defaults: &Table) -> String {
        let default = get(defaults, key.path).map_or_else(|| "unset".into(), |value| format!("`{value}`"));
        let flag = match (key.flag, key.limit()) {
            (Some(flag), _) => format!("`{flag}`"),
            (None, Some(limit)) => format!("`serve --limit {limit}=`"),
            (None, None) => String::new(),
        };
        format!("| `{}` | {default} | `{}` | {flag} | {} |", key.path, key.variable(), key.about)
    }

    #[test]
    fn r55_the_documentation_lists_every_key() {
        let defaults = Table::try_from(Config::default()).unwrap();
        let keys = KEYS.iter().map(|key| row(key, &defaults));
        let expected: Vec<String> = keys.chain(super::super::agents::tests::rows()).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFIG.md");
        let text = std::fs::read_to_string(path).unwrap();
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(found == expected, "docs/CONFIG.md should have these rows:\n{}", expected.join("\n"));
    }
}
