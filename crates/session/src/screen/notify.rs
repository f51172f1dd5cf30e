//! OSC 7, 9, 99 and 777: a program reports its working directory, or sends a notification.

use super::events::clean;
use super::limits::{CWD_MAX, NOTIFY_BODY_MAX, NOTIFY_TITLE_MAX};
use super::state::State;

/// A kitty notification (OSC 99) of which only some parts were received.
#[derive(Debug, Default)]
pub(super) struct PartialNotification {
    id: String,
    title: String,
    body: String,
}

impl State {
    /// OSC 7: the working directory as a `file:` URL. Directories of other hosts are ignored.
    pub(super) fn working_directory(&mut self, url: &str) {
        let Some(rest) = url.strip_prefix("file://") else { return };
        let Some(slash) = rest.find('/') else { return };
        let (host, path) = rest.split_at(slash);
        let own = rustix::system::uname();
        let is_local = host.is_empty() || host == "localhost" || own.nodename().to_str().is_ok_and(|name| name == host);
        let Some(path) = percent_decode(path).filter(|_| is_local) else { return };
        if path.len() <= CWD_MAX && !path.chars().any(char::is_control) {
            self.events.cwd(path);
        }
    }

    /// OSC 9, 99 and 777, with `name` being the number.
    pub(super) fn notification(&mut self, name: &[u8], args: &[&[u8]]) {
        let text = |arg: &[u8]| String::from_utf8_lossy(arg).into_owned();
        match (name, args) {
            // A number first is a ConEmu command, such as progress.
            (b"9", [kind, _, ..]) if !kind.is_empty() && kind.iter().all(u8::is_ascii_digit) => {}
            (b"9", [_, ..]) => self.events.notify("", &super::osc::joined(args)),
            (b"777", [b"notify", title, body @ ..]) => {
                self.events.notify(&text(title), &super::osc::joined(body));
            }
            (b"99", [metadata, rest @ ..]) => self.kitty_notification(&text(metadata), &super::osc::joined(rest)),
            _ => {}
        }
    }

    fn kitty_notification(&mut self, metadata: &str, payload: &str) {
        let value = |key: &str| metadata.split(':').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let payload = match value("e") {
            Some("1") => match decode_base64(payload.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(text) => text,
                None => return,
            },
            _ => payload.to_owned(),
        };
        let id = value("i").unwrap_or_default();
        let partial = &mut self.partial_notification;
        if partial.id != id {
            *partial = PartialNotification { id: clean(id, NOTIFY_TITLE_MAX), ..PartialNotification::default() };
        }
        match value("p").unwrap_or("title") {
            "title" => partial.title = clean(&(partial.title.clone() + &payload), NOTIFY_TITLE_MAX),
            "body" => partial.body = clean(&(partial.body.clone() + &payload), NOTIFY_BODY_MAX),
            _ => return,
        }
        if value("d") != Some("0") {
            let PartialNotification { title, body, .. } = std::mem::take(partial);
            self.events.notify(&title, &body);
        }
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let pair = [bytes.next()?, bytes.next()?];
            out.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut have) = (0u32, 0);
    for &byte in text.iter().filter(|&&b| b != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have) as u8);
        }
    }
    Some(out)
}
