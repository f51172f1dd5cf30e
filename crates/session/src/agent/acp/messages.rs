//! The messages of ACP, version 1, as far as Bowline reads them. Each is parsed in stages, the envelope first, so that
//! a long line costs little unless its content is wanted.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// The id of a request. Anything but a number or a text is refused unread.
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

/// A response with a result of this type.
#[derive(Debug, Deserialize)]
pub(super) struct Response<T> {
    pub(super) result: T,
}

/// A response that is an error.
#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) error: RpcError,
}

#[derive(Debug, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized {
    #[serde(default)]
    pub(super) protocol_version: u64,
    #[serde(default)]
    pub(super) agent_capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capabilities {
    #[serde(default)]
    pub(super) load_session: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSession {
    pub(super) session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompted {
    #[serde(default)]
    pub(super) stop_reason: String,
}

/// A message with parameters of this type.
#[derive(Debug, Deserialize)]
pub(super) struct Call<T> {
    pub(super) params: T,
}

/// The parameters of `session/update`.
#[derive(Debug, Deserialize)]
pub(super) struct Update<T> {
    pub(super) update: T,
}

/// The kind of an update.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateKind<'a> {
    #[serde(borrow)]
    pub(super) session_update: Cow<'a, str>,
}

/// A part of a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk {
    #[serde(default)]
    pub(super) content: Content,
    #[serde(default)]
    pub(super) message_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Content {
    #[serde(default)]
    pub(super) text: Option<String>,
}

/// A tool call, or the fields of one that changed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool {
    pub(super) tool_call_id: String,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) raw_input: Option<Value>,
    #[serde(default)]
    pub(super) content: Option<Value>,
    #[serde(default)]
    pub(super) locations: Option<Value>,
    /// Details were left out.
    #[serde(skip)]
    pub(super) truncated: bool,
}

/// A tool call without its details.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolHead {
    tool_call_id: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    status: Option<String>,
}

impl From<ToolHead> for Tool {
    fn from(head: ToolHead) -> Tool {
        let ToolHead { tool_call_id, title, name, kind, status } = head;
        let (raw_input, content, locations) = (None, None, None);
        Tool { tool_call_id, title, name, kind, status, raw_input, content, locations, truncated: true }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    #[serde(default)]
    pub(super) entries: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct SessionTitle {
    #[serde(default)]
    pub(super) title: Option<String>,
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permission {
    #[serde(default)]
    pub(super) options: Vec<PermissionOption>,
    pub(super) tool_call: Tool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: String,
}

/// The parameters of `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequest {
    pub(super) request_id: Id,
}
