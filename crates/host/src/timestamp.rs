//! Formats timestamps for session files.

/// The current time in RFC 3339 UTC, always with six digits of microseconds, so that timestamps sort as text.
pub fn timestamp() -> String {
    timestamp_of(std::time::SystemTime::now())
}

/// A time in the format of [`timestamp`].
pub fn timestamp_of(at: std::time::SystemTime) -> String {
    let form = time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time::OffsetDateTime::from(at).format(&form).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trailing zeros were once dropped, and `.5Z` sorts after `.516Z`, so the newest session was not listed last.
    #[test]
    fn timestamps_sort_as_text() {
        let stamps: Vec<String> = (0..2000).map(|_| timestamp()).collect();
        assert!(stamps.is_sorted());
        assert!(stamps.iter().all(|stamp| stamp.len() == stamps[0].len()));
    }
}
