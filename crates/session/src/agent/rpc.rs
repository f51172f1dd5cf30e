//! JSON-RPC as agents speak it, one message per line. Each message is parsed in stages, the envelope first, so that a long
//! line costs little unless its content is wanted.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny, Visitor};
use serde::{Deserialize, Serialize};

/// The error code for a method that Bowline does not offer.
pub(super) const NO_METHOD: i64 = -32601;
/// The error code for parameters that make no sense.
pub(super) const BAD_PARAMS: i64 = -32602;
/// The requests to an agent that wait for an answer. The oldest is forgotten to make room, so that its answer is ignored.
pub(super) const MAX_PENDING: usize = 256;

/// What every message has.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(default)]
    pub(super) id: Option<Id>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) error: Option<IgnoredAny>,
}

/// The id of a request. Anything but a number or a text is refused unread. Both sides may count from 0, so an id says
/// nothing without its direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Id {
    Number(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Id, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_i64<E: de::Error>(self, id: i64) -> Result<Id, E> {
                Ok(Id::Number(id))
            }
            fn visit_u64<E: de::Error>(self, id: u64) -> Result<Id, E> {
                i64::try_from(id).map(Id::Number).map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, id: &str) -> Result<Id, E> {
                Ok(Id::Text(id.to_owned()))
            }
        }
        from.deserialize_any(IdVisitor)
    }
}

/// A request to an agent.
#[derive(Debug, Serialize)]
pub(super) struct OutgoingRequest<'a, P> {
    pub(super) jsonrpc: &'static str,
    pub(super) id: i64,
    pub(super) method: &'a str,
    pub(super) params: &'a P,
}

/// A response with a result of this type.
#[derive(Debug, Deserialize)]
pub(super) struct Response<T> {
    pub(super) result: T,
}

/// A response that is an error of this type.
#[derive(Debug, Deserialize)]
pub(super) struct Failure<E> {
    pub(super) error: E,
}

/// A request or a notification with parameters of this type.
#[derive(Debug, Deserialize)]
pub(super) struct Call<T> {
    pub(super) params: T,
}
