//! Timestamps as sessions record them.

/// Now, in RFC 3339 UTC with microseconds, always all of them: so the order of the texts is the order of the times.
pub fn timestamp() -> String {
    timestamp_of(std::time::SystemTime::now())
}

/// A moment in the form of [`timestamp`].
pub fn timestamp_of(at: std::time::SystemTime) -> String {
    let form = time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time::OffsetDateTime::from(at).format(&form).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trailing zeros used to be dropped, and `.5Z` sorts after `.516Z`: the newest session was not the newest.
    #[test]
    fn timestamps_sort_as_text() {
        let stamps: Vec<String> = (0..2000).map(|_| timestamp()).collect();
        assert!(stamps.is_sorted());
        assert!(stamps.iter().all(|stamp| stamp.len() == stamps[0].len()));
    }
}
