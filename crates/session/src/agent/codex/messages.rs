//! The messages of Codex's app-server, as far as Bowline reads them.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) message: String,
}

/// Which thread a message belongs to. A sub-agent has a thread of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Place {
    #[serde(default)]
    pub(super) thread_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountRead {
    #[serde(default)]
    pub(super) account: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) requires_openai_auth: bool,
}

/// The result of `thread/start` and `thread/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadOpened {
    pub(super) thread: Named,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) reasoning_effort: Option<String>,
    #[serde(default)]
    pub(super) collaboration_mode: Option<CollaborationMode>,
}

/// The same without settings.
#[derive(Debug, Deserialize)]
pub(super) struct ThreadHead {
    pub(super) thread: Named,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct CollaborationMode {
    #[serde(default)]
    pub(super) mode: String,
}

/// The sandbox in a result of `thread/start`.
#[derive(Debug, Deserialize)]
pub(super) struct ThreadSandbox {
    #[serde(default)]
    pub(super) sandbox: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ModelList {
    #[serde(default)]
    pub(super) data: Vec<Model>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model {
    pub(super) id: String,
    #[serde(default)]
    pub(super) display_name: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) hidden: bool,
    #[serde(default)]
    pub(super) default_reasoning_effort: Option<String>,
    #[serde(default)]
    pub(super) supported_reasoning_efforts: Vec<Effort>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Effort {
    pub(super) reasoning_effort: String,
    #[serde(default)]
    pub(super) description: Option<String>,
}

/// The result of `turn/start`, and the parameters of `turn/started` and `turn/completed`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnMessage<T> {
    #[serde(default)]
    pub(super) thread_id: Option<String>,
    pub(super) turn: T,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) error: Option<TurnError>,
}

/// A turn without the details of its error.
#[derive(Debug, Deserialize)]
pub(super) struct TurnHead {
    pub(super) id: String,
    #[serde(default)]
    pub(super) status: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnError {
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) codex_error_info: Option<ErrorInfo>,
    #[serde(default)]
    pub(super) additional_details: Option<String>,
}

/// The kind of an error: a word, or an object whose only value may have an HTTP status.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ErrorInfo {
    Word(String),
    Http(std::collections::BTreeMap<String, HttpError>),
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HttpError {
    #[serde(default)]
    pub(super) http_status_code: Option<u16>,
}

/// The parameters of `error`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorMessage {
    pub(super) error: TurnError,
    #[serde(default)]
    pub(super) will_retry: bool,
    #[serde(default)]
    pub(super) thread_id: Option<String>,
    #[serde(default)]
    pub(super) turn_id: Option<String>,
}

/// The parameters of `thread/tokenUsage/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenMessage {
    pub(super) token_usage: TokenUsage,
    #[serde(default)]
    pub(super) thread_id: Option<String>,
    #[serde(default)]
    pub(super) turn_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    /// Of the whole thread.
    #[serde(default)]
    pub(super) total: TokenCounts,
    /// Of the last call of the model.
    #[serde(default)]
    pub(super) last: TokenCounts,
    #[serde(default)]
    pub(super) model_context_window: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenCounts {
    pub(super) total_tokens: u64,
    /// Includes those that were read from or written to the cache.
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: u64,
    pub(super) cache_write_input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// The parameters of `account/rateLimits/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimitMessage {
    pub(super) rate_limits: RateLimits,
}

#[derive(Debug, Deserialize)]
pub(super) struct RateLimits {
    #[serde(default)]
    pub(super) primary: Option<RateLimit>,
    #[serde(default)]
    pub(super) secondary: Option<RateLimit>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimit {
    #[serde(default)]
    pub(super) used_percent: f64,
    /// Seconds since 1970.
    #[serde(default)]
    pub(super) resets_at: Option<i64>,
}

/// The parameters of the notifications that say something to the user, in one of these fields.
#[derive(Debug, Deserialize)]
pub(super) struct Remark {
    #[serde(default, alias = "summary")]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) details: Option<String>,
}

/// The parameters of `thread/name/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadName {
    #[serde(default)]
    pub(super) thread_name: Option<String>,
    #[serde(default)]
    pub(super) thread_id: Option<String>,
}

/// The parameters of `mcpServer/startupStatus/updated`.
#[derive(Debug, Deserialize)]
pub(super) struct McpStatus {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// The parameters of `model/rerouted`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rerouted {
    #[serde(default)]
    pub(super) from_model: String,
    #[serde(default)]
    pub(super) to_model: String,
}
