//! Parses and formats sizes, durations and other values of the command line and the configuration.

use std::net::SocketAddr;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use bowline_proto::control::{SIGNALS, sendable_signal};
use bowline_proto::size::Size;
use url::Url;

/// Parses a number of bytes, such as `512`, `64K`, `8M` or `1G`. Units are powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(invalid_bytes(text)),
    };
    number.and_then(|n: u64| n.checked_mul(scale)).ok_or_else(|| invalid_bytes(text))
}

fn invalid_bytes(text: &str) -> String {
    format!("{text:?} is not a size: use a number and K, M or G, such as 8M")
}

/// Parses a duration, such as `500ms`, `90`, `90s`, `30m`, `12h` or `7d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let millis = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        _ => return Err(invalid_duration(text)),
    };
    if !text.trim().starts_with(|c: char| c.is_ascii_digit()) {
        return Err(invalid_duration(text));
    }
    let total = number.and_then(|n| n.checked_mul(millis)).filter(|total| *total <= MAX_SECONDS * 1000);
    total.map(Duration::from_millis).ok_or_else(|| format!("{text:?} is too long: use at most 1000 years"))
}

fn invalid_duration(text: &str) -> String {
    format!("{text:?} is not a duration: use a number and ms, s, m, h or d, such as 30m")
}

/// Parses a whole number.
pub(crate) fn parse_number<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => format!("{text:?} is too large"),
        _ => format!("{text:?} is not a whole number"),
    })
}

/// Parses an address to listen on, with its port.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is not an address and port: use ADDRESS:PORT, such as 127.0.0.1:7433"))
}

/// Parses the URL at which browsers reach the gateway.
pub(crate) fn parse_url(text: &str) -> Result<Url, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a URL: use https://HOST, optionally with a port and a path"))
}

/// Rounds up to whole seconds: where the protocol has only seconds, 0 often means something else.
pub(crate) fn round_up_to_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// A thousand years. Small enough that arithmetic with times does not overflow.
const MAX_SECONDS: u64 = 1000 * 366 * 24 * 3600;

/// Parses a terminal size, such as `120x32`.
pub(crate) fn parse_size(text: &str) -> Result<Size, String> {
    let parts = text.split_once(['x', 'X']).and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    let (cols, rows) =
        parts.ok_or_else(|| format!("{text:?} is not a terminal size: use COLUMNSxROWS, such as 120x32"))?;
    Size::new(cols, rows).map_err(|bad| bad.to_string())
}

/// Parses an environment variable, `NAME=VALUE`.
pub(crate) fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok((name.into(), value.into())),
        _ => Err(format!("{text:?} is not a variable: use NAME=VALUE")),
    }
}

/// Parses the answer to a question, `QUESTION=TEXT`.
pub(crate) fn parse_answer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((question, answer)) if !question.is_empty() => Ok((question.into(), answer.into())),
        _ => Err(format!("{text:?} is not an answer: use QUESTION=TEXT")),
    }
}

/// Parses the name of a signal that can be sent, in any case and with or without `SIG`; returns it without.
pub(crate) fn parse_signal(text: &str) -> Result<String, String> {
    let name = sendable_signal(&text.to_ascii_uppercase()).map(str::to_owned);
    name.ok_or_else(|| format!("choose one of {}", SIGNALS.join(", ")))
}

/// Formats a number of bytes exactly, as [`parse_bytes`] reads it.
pub(crate) fn format_bytes_exact(n: u64) -> String {
    let unit = [(30, "G"), (20, "M"), (10, "K")].into_iter().find(|(bits, _)| n > 0 && n.trailing_zeros() >= *bits);
    unit.map_or_else(|| n.to_string(), |(bits, unit)| format!("{}{unit}", n >> bits))
}

/// Formats a duration to the millisecond, as [`parse_duration`] reads it.
pub(crate) fn format_duration_exact(time: Duration) -> String {
    if time.subsec_millis() > 0 {
        return format!("{}ms", time.as_millis());
    }
    let seconds = time.as_secs();
    let unit =
        [(86_400, "d"), (3600, "h"), (60, "m")].into_iter().find(|(n, _)| seconds > 0 && seconds.is_multiple_of(*n));
    unit.map_or_else(|| format!("{seconds}s"), |(n, unit)| format!("{}{unit}", seconds / n))
}

/// Sizes in the configuration: text such as "8M", or a number of bytes.
pub(crate) mod size_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a size such as \"8M\"")]
    enum SizeRepr {
        Number(u64),
        Text(String),
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<T, D::Error> {
        let bytes = match SizeRepr::deserialize(from)? {
            SizeRepr::Number(bytes) => bytes,
            SizeRepr::Text(text) => super::parse_bytes(&text).map_err(de::Error::custom)?,
        };
        T::try_from(bytes).map_err(|_| de::Error::custom("the size is too large"))
    }

    pub(crate) fn serialize<S: Serializer, T: Copy + TryInto<u64>>(size: &T, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::format_bytes_exact((*size).try_into().unwrap_or(u64::MAX)))
    }
}

/// Durations in the configuration: text such as "10s".
pub(crate) mod time_text {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        super::parse_duration(&String::deserialize(from)?).map_err(de::Error::custom)
    }

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::format_duration_exact(*time))
    }
}

/// Durations in the configuration that may be "never", which is `None`.
pub(crate) mod time_or_never {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(from)?;
        if text.trim() == "never" {
            return Ok(None);
        }
        super::parse_duration(&text).map(Some).map_err(|why| de::Error::custom(format!("{why}, or \"never\"")))
    }

    pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&time.map_or_else(|| "never".to_owned(), super::format_duration_exact))
    }
}

/// Formats a number of bytes for people, rounded.
pub(crate) fn format_bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// Formats a duration for people, rounded down to one unit.
pub(crate) fn format_duration(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7200 => format!("{}m", s / 60),
        s @ 7200..172_800 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

/// Splits a value into its number and its unit.
fn split(text: &str) -> (Option<u64>, &str) {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..at].parse().ok(), text[at..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_second_is_rounded_up() {
        let seconds =
            ["0s", "1ms", "999ms", "1s", "1500ms"].map(|text| round_up_to_seconds(parse_duration(text).unwrap()));
        assert_eq!(seconds, [0, 1, 1, 1, 2]);
    }

    #[test]
    fn r55_values_are_parsed_or_the_error_says_how_to_write_them() {
        assert_eq!(parse_bytes("8M"), Ok(8 << 20));
        assert_eq!(parse_bytes("512 KiB"), Ok(512 << 10));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(parse_size("120x32"), Ok(Size::new(120, 32).unwrap()));
        for bad in ["", "M", "8X", "-1", "99999999999G", "1.5G"] {
            assert!(parse_bytes(bad).unwrap_err().contains("not a size"), "{bad:?}");
        }
        for bad in ["", "d", "ms", "3w"] {
            assert!(parse_duration(bad).unwrap_err().contains("not a duration: use a number and ms"), "{bad:?}");
        }
        for long in ["99999999999999d", "99999999999999999ms", "99999999999999999999999s"] {
            assert!(parse_duration(long).unwrap_err().contains("is too long"), "{long:?}");
        }
        assert_eq!(parse_number::<u32>("x"), Err("\"x\" is not a whole number".into()));
        assert_eq!(parse_number::<u32>("99999999999"), Err("\"99999999999\" is too large".into()));
        assert!(parse_listen("foo").unwrap_err().contains("\"foo\" is not an address and port"));
        assert!(parse_url("foo").unwrap_err().contains("\"foo\" is not a URL"));
        for bad in ["80", "80x", "0x0", "80x9999"] {
            assert!(parse_size(bad).is_err(), "{bad:?}");
        }
        assert!(parse_variable("=x").is_err());
        for exact in ["0", "513", "8M", "1G", "65K"] {
            assert_eq!(format_bytes_exact(parse_bytes(exact).unwrap()), exact);
        }
        for exact in ["0s", "90s", "2m", "12h", "7d", "1500ms"] {
            assert_eq!(format_duration_exact(parse_duration(exact).unwrap()), exact);
        }
    }
}
