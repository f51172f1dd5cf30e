//! How sizes, times and settings are written on the command line and in the configuration.

use std::time::Duration;

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

/// `90`, `90s`, `30m`, `12h`, `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
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
    }
}
