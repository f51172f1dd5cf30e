//! Parses and normalises URLs, and recognises login pages.

use std::ops::Range;

/// A URL in its normal form.
pub(super) struct Url {
    pub(super) text: String,
    secure: bool,
    has_user: bool,
    /// Where in `text` the host is; path, query and fragment follow it.
    host: Range<usize>,
}

/// Hosts of login pages that command line tools print.
const LOGIN_HOSTS: [&str; 16] = [
    "accounts.google.com",
    "app.cursor.com",
    "auth.openai.com",
    "chatgpt.com",
    "claude.ai",
    "claude.com",
    "console.anthropic.com",
    "cursor.com",
    "github.com",
    "gitlab.com",
    "login.microsoftonline.com",
    "login.tailscale.com",
    "microsoft.com",
    "platform.claude.com",
    "vercel.com",
    "www.npmjs.com",
];
/// Path segments of login pages.
const LOGIN_PARTS: [&str; 14] = [
    "activate",
    "auth",
    "authorize",
    "cli",
    "cli-login",
    "device",
    "devicelogin",
    "login",
    "logindeepcontrol",
    "oauth",
    "oauth2",
    "signin",
    "sso",
    "verify",
];
/// Query parameters that only login pages have.
const LOGIN_PARAMETERS: [&str; 7] =
    ["client_id=", "code_challenge=", "device_code=", "redirect_uri=", "response_type=", "user_code=", "challenge="];

/// Whether a URL can contain `c`. The first other character ends it.
pub(super) fn is_url_char(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

impl Url {
    /// Parses an `http` or `https` URL, without punctuation that follows it in the text.
    pub(super) fn parse(text: &str) -> Option<Url> {
        let text = trim_punctuation(text);
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let secure = match scheme.as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        if !rest.chars().all(is_url_char) {
            return None;
        }
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix(if secure { ":443" } else { ":80" }).unwrap_or(&host);
        if !host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') {
            return None;
        }
        let mut url = format!("{scheme}://");
        if let Some(user) = user {
            url.push_str(user);
            url.push('@');
        }
        let host_from = url.len();
        url.push_str(host);
        let host = host_from..url.len();
        if !rest.starts_with('/') {
            url.push('/');
        }
        url.push_str(rest);
        Some(Url { text: url, secure, has_user: user.is_some(), host })
    }

    /// Whether this is a page on which a person logs a command line tool in.
    pub(super) fn is_login(&self) -> bool {
        // `https://claude.ai@evil.example/` looks like another host.
        if !self.secure || self.has_user {
            return false;
        }
        let host = &self.text[self.host.clone()];
        let rest = self.text[self.host.end..].to_ascii_lowercase();
        let (path, query) = rest.split_once('?').unwrap_or((&rest, ""));
        let path = path.split('#').next().unwrap_or(path);
        let login_path = path.split('/').any(|part| LOGIN_PARTS.contains(&part));
        let device_host = host.starts_with("device.") || host.starts_with("login.");
        let login_query =
            query.split('&').any(|pair| LOGIN_PARAMETERS.iter().any(|parameter| pair.starts_with(parameter)));
        let login_host = LOGIN_HOSTS.contains(&host) || device_host;
        (login_path && (login_host || login_query)) || (device_host && login_query)
    }
}

/// Removes punctuation at the end, and a closing bracket that has no opening one in `text`.
fn trim_punctuation(text: &str) -> &str {
    let mut text = text;
    loop {
        let unbalanced =
            |open: char, close: char| text.ends_with(close) && text.matches(close).count() > text.matches(open).count();
        if text.ends_with(['.', ',', ';', ':', '!', '?', '\'', '*']) || unbalanced('(', ')') || unbalanced('[', ']') {
            text = &text[..text.len() - 1];
        } else {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str) -> Option<String> {
        Url::parse(text).map(|url| url.text)
    }

    #[test]
    fn r27_urls_are_normalised() {
        assert_eq!(normalised("HTTPS://Example.COM:443"), Some("https://example.com/".into()));
        assert_eq!(normalised("http://localhost:80/A?b=C#D"), Some("http://localhost/A?b=C#D".into()));
        assert_eq!(normalised("https://a.b/(x)."), Some("https://a.b/(x)".into()));
        assert_eq!(normalised("https://a.b/x)."), Some("https://a.b/x".into()));
        assert_eq!(normalised("https://a.b?q"), Some("https://a.b/?q".into()));
        for bad in ["https://", "ftp://a.b/", "https:///x", "javascript://x", "https://a b", "x"] {
            assert_eq!(normalised(bad), None, "{bad}");
        }
    }

    #[test]
    fn r27_login_pages_are_recognised() {
        let login = |text: &str| Url::parse(text).is_some_and(|url| url.is_login());
        for page in [
            "https://claude.ai/oauth/authorize?code=true&client_id=9d1c&response_type=code",
            "https://auth.openai.com/oauth/authorize?response_type=code&client_id=app",
            "https://github.com/login/device",
            "https://accounts.google.com/o/oauth2/auth?response_type=code&client_id=3255",
            "https://microsoft.com/devicelogin",
            "https://device.sso.eu-west-1.amazonaws.com/?user_code=ABCD-EFGH",
            "https://sso.example.org/realms/x/device?user_code=ABCD",
            "https://login.tailscale.com/a/login",
        ] {
            assert!(login(page), "{page}");
        }
        for page in [
            "https://github.com/rust-lang/rust",
            "https://example.com/login",
            "http://claude.ai/oauth/authorize?client_id=1",
            "https://claude.ai@evil.example/oauth/authorize?client_id=1",
            "https://docs.example.com/oauth",
        ] {
            assert!(!login(page), "{page}");
        }
    }
}
