//! Random secrets and ids, and the digests that are stored instead of secrets.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_proto::api::Secret;
use bowline_proto::ids::SessionId;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::AuthError;

/// 256 random bits, in characters that need no escaping in a URL, a header or a cookie.
pub(super) fn random_secret() -> Result<Secret, AuthError> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random::<32>()?)))
}

/// Longer than any secret, in bytes. What is longer is not hashed: a stranger could send much of it.
const MAX_SECRET: usize = 256;

/// The SHA-256 of a secret.
///
/// A fast hash is enough: slow ones protect passwords, which can be guessed, but these secrets are 256 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(text: &str) -> Digest {
        use sha2::Digest as _;
        Digest(Sha256::digest(text).into())
    }

    /// The digest of what a stranger sent; `None` if it is too long to be a secret.
    pub(super) fn of_sent(text: &str) -> Option<Digest> {
        (text.len() <= MAX_SECRET).then(|| Digest::of(text))
    }

    /// Whether this is the digest of what a stranger sent. Compares in constant time.
    pub(super) fn matches(&self, sent: &str) -> bool {
        Digest::of_sent(sent).is_some_and(|sent| self.equals(&sent))
    }

    /// Compares in constant time.
    pub(super) fn equals(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(hidden)")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        let bytes = URL_SAFE_NO_PAD.decode(String::deserialize(from)?).ok();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Digest).ok_or_else(|| de::Error::custom("not a SHA-256"))
    }
}

/// A random id for a token or a login: 12 characters of `[a-z0-9]`, like a session's. Not a secret.
pub(super) fn random_id() -> Result<String, AuthError> {
    Ok(SessionId::from_random(random()?).to_string())
}

fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    // Never returns fewer bytes: the kernel does not interrupt a request of up to 256.
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|errno| AuthError::NoRandom(errno.into()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r48_a_digest_matches_its_secret_after_a_round_trip() {
        let (secret, other) = (random_secret().unwrap(), random_secret().unwrap());
        assert_eq!(secret.reveal().len(), 43, "256 bits");
        let written = serde_json::to_string(&Digest::of(secret.reveal())).unwrap();
        let digest: Digest = serde_json::from_str(&written).unwrap();
        assert!(digest.matches(secret.reveal()) && !digest.matches(other.reveal()) && !digest.matches(""));
        assert!(serde_json::from_str::<Digest>("\"short\"").is_err());
        assert!(!format!("{secret:?}").contains(secret.reveal()));
    }
}
