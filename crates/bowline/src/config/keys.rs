//! All keys of the configuration: their names, variables, flags, and what each does.

/// One thing that can be set.
#[derive(Debug)]
pub(crate) struct Key {
    /// Where it stands in the file, such as `gateway.listen`.
    pub(crate) path: &'static str,
    /// The flag that sets it, if there is one.
    pub(crate) flag: Option<&'static str>,
    /// What it does; of a limit, what happens when it is reached.
    pub(crate) about: &'static str,
}

impl Key {
    /// The environment variable that sets it: the path in capitals, without `gateway`.
    pub(crate) fn variable(&self) -> String {
        if self.path == "gateway.log_level" {
            return "RUST_LOG".into();
        }
        let path = self.path.strip_prefix("gateway.").unwrap_or(self.path);
        format!("BOWLINE_{}", path.replace('.', "_").to_uppercase())
    }

    /// Whether it is a limit of the gateway, which `--limit NAME=VALUE` sets.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.path.strip_prefix("gateway.limits.")
    }
}

/// The key at this path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

const fn key(path: &'static str, flag: &'static str, about: &'static str) -> Key {
    Key { path, flag: if flag.is_empty() { None } else { Some(flag) }, about }
}

/// All of them, in the order in which they are shown.
pub(crate) const KEYS: &[Key] = &[
    key(
        "detach_key",
        "attach --detach-key",
        "the key that starts a command to bowline; `none` for none, and then the next key forgets what was not sent",
    ),
    key("shell", "", "the program of a session without a command; your login shell if unset"),
    key("log_size", "new --log-size", "output that a session keeps, 256K to 64G; the oldest goes"),
    key("scrollback", "new --scrollback", "lines that a session keeps above its screen, at most 100000; the oldest go"),
    key("reconnect_tries", "", "dials after which `attach` gives up and waits for a key; `\"never\"` for never"),
    key("retention.exited_days", "", "days after which an ended session is forgotten"),
    key("retention.total_size", "", "space that ended sessions may take; past it the oldest are forgotten"),
    key("gateway.listen", "serve --listen", "where the gateway listens; port 0 for any free one"),
    key(
        "gateway.public_url",
        "serve --public-url",
        "what browsers and phones call it: decides link, QR code, Origin, Host and Secure cookie",
    ),
    key("gateway.base_path", "serve --base-path", "the path under which it is served; that of public_url if unset"),
    key("gateway.hosts", "serve --host", "further names that a Host header may have; others get 403 `bad_host`"),
    key(
        "gateway.proxies",
        "serve --proxy",
        "networks of proxies whose X-Forwarded-* headers are believed, of several values the last",
    ),
    key("gateway.open_metrics", "serve --open-metrics", "/metrics needs no token"),
    key(
        "gateway.log_level",
        "serve --log-level",
        "what is logged: error, warn, info, debug, trace, or a filter such as `warn,bowline_gateway=debug`",
    ),
    key(
        "gateway.scopes",
        "",
        "systemd scopes for session processes: `auto` (when the gateway is a systemd service), `always`, `never`",
    ),
    key(
        "gateway.forward_auth.header",
        "serve --forward-auth-header",
        "the header in which a trusted proxy names the user",
    ),
    key(
        "gateway.forward_auth.users",
        "serve --forward-auth-user",
        "the users who may come in by it; others get 403 `not_allowed`",
    ),
    key("gateway.tls.cert", "serve --tls-cert", "the certificate and its chain, PEM; read again when it changes"),
    key("gateway.tls.key", "serve --tls-key", "its private key, PEM"),
    key(
        "gateway.limits.sockets",
        "",
        "open sockets, at most three eighths of the open-file limit; one more gets 503 `too_many` (with TLS, or past 64 at a time, no word) and is closed",
    ),
    key("gateway.limits.streams", "", "attachments and event streams; one more gets 4429 / 429 `too_many`"),
    key("gateway.limits.streams_per_token", "", "the same for one token or login; one more gets 4429 / 429 `too_many`"),
    key(
        "gateway.limits.attach_rate",
        "",
        "attach attempts a second from one address, after ten seconds' worth at once; more gets 4429 / 429 `too_many`",
    ),
    key("gateway.limits.login_rate", "", "login attempts a minute from one address; more gets 429 `too_many`"),
    key("gateway.limits.body", "", "a request's body; a longer one gets 413 `too_large`"),
    key("gateway.limits.message", "", "a WebSocket message, 128K to 1M; a longer one is closed 1009"),
    key("gateway.limits.head_within", "", "time for a request's head; past it the socket is closed"),
    key("gateway.limits.body_within", "", "time for a request's body; past it 408 `too_slow`"),
    key("gateway.limits.hello_within", "", "time for a WebSocket's first message; past it it is closed 4408"),
    key("gateway.limits.heartbeat", "", "how often an event stream pings; 2.25 times as long without a word ends it"),
    key("gateway.limits.stalled_after", "", "a viewer whose connection takes nothing for this long is cut"),
    key("gateway.limits.drain", "", "how long a stop waits for connections to close; then they are cut"),
];

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::super::Config;
    use super::super::layers::get;
    use super::*;

    /// A key's row in docs/CONFIG.md.
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
    fn r55_the_documentation_has_every_key_as_it_is() {
        let defaults = Table::try_from(Config::default()).unwrap();
        let expected: Vec<String> = KEYS.iter().map(|key| row(key, &defaults)).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFIG.md");
        let text = std::fs::read_to_string(path).unwrap();
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(found == expected, "docs/CONFIG.md should have these rows:\n{}", expected.join("\n"));
    }
}
