//! The parameters of Codex's requests, as far as Bowline reads them.

use serde::Deserialize;
use serde_json::Value;

use crate::agent::rpc::Id;

/// The parameters of `serverRequest/resolved`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved {
    pub(super) request_id: Id,
}

/// The parameters of `item/commandExecution/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandApproval {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) network_approval_context: Option<NetworkContext>,
    #[serde(default)]
    pub(super) additional_permissions: Option<Value>,
    #[serde(default)]
    pub(super) available_decisions: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NetworkContext {
    #[serde(default)]
    pub(super) host: String,
    #[serde(default)]
    pub(super) protocol: String,
}

/// The parameters of `item/fileChange/requestApproval`. The changes are in the item's `item/started`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileApproval {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) grant_root: Option<String>,
}

/// The parameters of `item/permissions/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionsApproval {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) reason: Option<String>,
    pub(super) permissions: Value,
}

/// The parameters of `item/tool/requestUserInput`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserInput {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) questions: Vec<InputQuestion>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputQuestion {
    pub(super) id: String,
    #[serde(default)]
    pub(super) header: String,
    #[serde(default)]
    pub(super) question: String,
    #[serde(default)]
    pub(super) is_other: bool,
    #[serde(default)]
    pub(super) is_secret: bool,
    #[serde(default)]
    pub(super) options: Option<Vec<InputOption>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct InputOption {
    pub(super) label: String,
    #[serde(default)]
    pub(super) description: Option<String>,
}

/// The parameters of `mcpServer/elicitation/request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elicitation {
    #[serde(default)]
    pub(super) mode: String,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) server_name: Option<String>,
    #[serde(default)]
    pub(super) requested_schema: Value,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Value,
}
