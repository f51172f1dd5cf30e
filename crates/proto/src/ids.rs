//! Ids and names of sessions, epochs and clients. Each is validated once, when it is parsed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a string is not a valid id or name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    #[error("a session id must have 12 characters from a-z and 0-9")]
    SessionId,
    #[error("a name must have 1 to 64 characters from A-Z a-z 0-9 . _ - and start with a letter or digit")]
    SessionName,
    #[error("an epoch must have 8 lower-case hex digits")]
    Epoch,
    #[error("a client id must be a UUID in lower case")]
    ClientId,
}

/// Declares a string type that is validated by `FromStr` and serialised as the string.
macro_rules! checked_string {
    ($(#[$doc:meta])* $name:ident, $bad:expr, $check:expr) => {
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(s: &str) -> Result<Self, BadId> {
                let check: fn(&[u8]) -> bool = $check;
                if check(s.as_bytes()) { Ok($name(s.to_owned())) } else { Err($bad) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(s: String) -> Result<Self, BadId> {
                s.parse()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

checked_string! {
    /// A session's id, and the name of its directory: 12 characters from `[a-z0-9]`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9]{12}$"))]
    SessionId, BadId::SessionId,
    |s| s.len() == 12 && s.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

checked_string! {
    /// A session's name, chosen by the user.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
    SessionName, BadId::SessionName,
    |s| (1..=64).contains(&s.len())
        && s[0].is_ascii_alphanumeric()
        && s.iter().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(b))
}

checked_string! {
    /// Identifies one run of a session; a restart changes it.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{8}$"))]
    Epoch, BadId::Epoch,
    |s| s.len() == 8 && s.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

checked_string! {
    /// Identifies one page load or one run of a client program; stays the same across reconnects.
    ClientId, BadId::ClientId,
    |s| s.len() == 36 && s.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
    })
}

impl SessionId {
    /// Makes an id from 12 random bytes. (A byte modulo 36 is slightly biased, but ids only have to be unique.)
    pub fn from_random(random: [u8; 12]) -> SessionId {
        const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        SessionId(random.iter().map(|b| char::from(LETTERS[usize::from(*b) % LETTERS.len()])).collect())
    }
}

impl Epoch {
    /// Makes an epoch from 4 random bytes.
    pub fn from_random(random: [u8; 4]) -> Epoch {
        Epoch(format!("{:08x}", u32::from_be_bytes(random)))
    }
}

impl ClientId {
    /// Makes a version 4 UUID from 16 random bytes.
    pub fn from_random(random: [u8; 16]) -> ClientId {
        let n = u128::from_be_bytes(random);
        let n = n & !(0xf << 76) | (0x4 << 76);
        let hex = format!("{:032x}", n & !(0x3 << 62) | (0x2 << 62));
        ClientId([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r28_names_are_validated() {
        for good in ["a", "build", "A.b_c-9", &"x".repeat(64)] {
            assert!(good.parse::<SessionName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-rf", "a/b", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert_eq!(bad.parse::<SessionName>(), Err(BadId::SessionName), "{bad:?}");
        }
    }

    #[test]
    fn random_ids_are_valid() {
        for seed in 0..=255u8 {
            let id = SessionId::from_random([seed; 12]);
            assert_eq!(id.as_str().parse(), Ok(id.clone()));
            let epoch = Epoch::from_random([seed; 4]);
            assert_eq!(epoch.as_str().parse(), Ok(epoch.clone()));
            let client = ClientId::from_random([seed; 16]);
            assert_eq!(client.as_str().parse(), Ok(client.clone()));
            assert_eq!(&client.as_str()[14..15], "4");
        }
        assert!("9F3C61D2".parse::<Epoch>().is_err());
        assert!("00000000-0000-4000-8000-00000000000A".parse::<ClientId>().is_err());
    }
}
