//! Maps signal names to this machine's signal numbers, and back.

use nix::sys::signal::Signal;

/// The number of a signal such as `TERM` or `SIGTERM`; `None` if this machine has no such signal.
pub fn number(name: &str) -> Option<i32> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    format!("SIG{name}").parse::<Signal>().ok().map(|signal| signal as i32)
}

/// The name of a signal, with the prefix `SIG`. A real-time signal, which has no name, is `SIG` and its number.
pub fn name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("SIG{number}"), |signal| signal.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_signal_keeps_its_number() {
        for signal in Signal::iterator() {
            assert_eq!(number(&name(signal as i32)), Some(signal as i32));
        }
        assert_eq!((number("TERM"), number("SIGTERM"), name(15)), (Some(15), Some(15), "SIGTERM".to_owned()));
    }

    #[test]
    fn a_signal_without_a_name_is_shown_as_its_number() {
        assert_eq!((name(34), number("SIG34"), number("term")), ("SIG34".to_owned(), None, None));
    }
}
