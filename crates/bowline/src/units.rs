//! How sizes, times and settings are written on the command line and in the configuration.

use std::time::Duration;

use bowline_proto::control::{SIGNALS, sendable_signal};
use bowline_proto::size::Size;

/// `512`, `64K`, `8M`, `1G`: bytes, in powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(format!("{text:?} is no size: write a number and K, M or G")),
    };
    number
        .and_then(|n: u64| n.checked_mul(scale))
        .ok_or_else(|| format!("{text:?} is no size: write a number and K, M or G"))
}

/// `90`, `90s`, `30m`, `12h`, `7d`; `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    if let (Some(number), "ms") = (number, unit) {
        return Ok(Duration::from_millis(number.min(MAX_SECONDS * 1000)));
    }
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(format!("{text:?} is no time: write a number and s, m, h or d")),
    };
    let total = number.and_then(|n| n.checked_mul(seconds)).filter(|total| *total <= MAX_SECONDS);
    total.map(Duration::from_secs).ok_or_else(|| format!("{text:?} is no time: write a number and s, m, h or d"))
}

/// Whole seconds, for where no others can be told. A part of one counts as one: 0 often means something else.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// A thousand years: far from where arithmetic with times would overflow.
const MAX_SECONDS: u64 = 1000 * 366 * 24 * 3600;

/// `120x32`.
pub(crate) fn size(text: &str) -> Result<Size, String> {
    let parts = text.split_once(['x', 'X']).and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    let (cols, rows) = parts.ok_or_else(|| format!("{text:?} is no size: write COLUMNSxROWS, such as 120x32"))?;
    Size::new(cols, rows).map_err(|bad| bad.to_string())
}

/// `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok((name.into(), value.into())),
        _ => Err(format!("{text:?} is no variable: write NAME=VALUE")),
    }
}

/// A signal that can be sent, in any case and with or without `SIG`: its name without.
pub(crate) fn signal(text: &str) -> Result<String, String> {
    let name = sendable_signal(&text.to_ascii_uppercase()).map(str::to_owned);
    name.ok_or_else(|| format!("choose one of {}", SIGNALS.join(", ")))
}

/// A size as [`bytes`] reads it, exactly.
pub(crate) fn write_bytes(n: u64) -> String {
    let unit = [(30, "G"), (20, "M"), (10, "K")].into_iter().find(|(bits, _)| n > 0 && n.trailing_zeros() >= *bits);
    unit.map_or_else(|| n.to_string(), |(bits, unit)| format!("{}{unit}", n >> bits))
}

/// A time as [`duration`] reads it, exactly but for less than a millisecond.
pub(crate) fn write_duration(time: Duration) -> String {
    if time.subsec_millis() > 0 {
        return format!("{}ms", time.as_millis());
    }
    let seconds = time.as_secs();
    let unit =
        [(86_400, "d"), (3600, "h"), (60, "m")].into_iter().find(|(n, _)| seconds > 0 && seconds.is_multiple_of(*n));
    unit.map_or_else(|| format!("{seconds}s"), |(n, unit)| format!("{}{unit}", seconds / n))
}

/// Sizes in the configuration: a text such as "8M", or a number of bytes.
pub(crate) mod size_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a size such as \"8M\"")]
    enum Written {
        Number(u64),
        Text(String),
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<T, D::Error> {
        let bytes = match Written::deserialize(from)? {
            Written::Number(bytes) => bytes,
            Written::Text(text) => super::bytes(&text).map_err(de::Error::custom)?,
        };
        T::try_from(bytes).map_err(|_| de::Error::custom("the size is too large"))
    }

    pub(crate) fn serialize<S: Serializer, T: Copy + TryInto<u64>>(size: &T, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::write_bytes((*size).try_into().unwrap_or(u64::MAX)))
    }
}

/// Times in the configuration: a text such as "10s".
pub(crate) mod time_text {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        super::duration(&String::deserialize(from)?).map_err(de::Error::custom)
    }

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::write_duration(*time))
    }
}

/// Bytes for people.
pub(crate) fn show_bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// A time for people: its largest unit.
pub(crate) fn show_duration(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7200 => format!("{}m", s / 60),
        s @ 7200..172_800 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

fn split(text: &str) -> (Option<u64>, &str) {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..at].parse().ok(), text[at..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_second_is_never_none() {
        let seconds = ["0s", "1ms", "999ms", "1s", "1500ms"].map(|text| whole_seconds(duration(text).unwrap()));
        assert_eq!(seconds, [0, 1, 1, 1, 2]);
    }

    #[test]
    fn r55_units_are_read_or_explained() {
        assert_eq!(bytes("8M"), Ok(8 << 20));
        assert_eq!(bytes("512 KiB"), Ok(512 << 10));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(size("120x32"), Ok(Size::new(120, 32).unwrap()));
        for bad in ["", "M", "8X", "-1", "99999999999G", "1.5G"] {
            assert!(bytes(bad).unwrap_err().contains("no size"), "{bad:?}");
        }
        for bad in ["", "d", "3w", "99999999999999d"] {
            assert!(duration(bad).unwrap_err().contains("no time"), "{bad:?}");
        }
        for bad in ["80", "80x", "0x0", "80x9999"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
        assert!(variable("=x").is_err());
        for exact in ["0", "513", "8M", "1G", "65K"] {
            assert_eq!(write_bytes(bytes(exact).unwrap()), exact);
        }
        for exact in ["0s", "90s", "2m", "12h", "7d", "1500ms"] {
            assert_eq!(write_duration(duration(exact).unwrap()), exact);
        }
    }
}
