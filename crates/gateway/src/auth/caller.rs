//! Who makes a call.

use bowline_proto::api::TokenScope;
use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Auth;
use super::secret::Digest;

/// Who makes a call, and how much they may do. Cheap to clone; holding one keeps its login from growing idle.
#[derive(Clone, Debug)]
pub struct Caller {
    id: Arc<str>,
    scope: TokenScope,
    kind: Kind,
    life: Arc<Life>,
}

/// By what a caller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Token,
    Login,
    User,
}

/// Ends with the token or login; shared by all its callers.
#[derive(Debug, Default)]
pub(super) struct Life(CancellationToken);

impl Life {
    pub(super) fn end(&self) {
        self.0.cancel();
    }
}

impl Caller {
    pub(super) fn new(id: &str, scope: TokenScope, kind: Kind, life: Arc<Life>) -> Caller {
        Caller { id: id.into(), scope, kind, life }
    }

    /// A user that a trusted proxy names. There is nothing here to revoke: the proxy decides.
    pub fn user(name: &str, scope: TokenScope) -> Caller {
        // Ids of tokens and logins have no colon, so no user is taken for one.
        Caller::new(&format!("user:{name}"), scope, Kind::User, Arc::default())
    }

    /// The token's, login's or user's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How much they may do.
    pub fn scope(&self) -> TokenScope {
        self.scope
    }

    /// Whether they may do what needs this scope.
    pub fn allows(&self, needed: TokenScope) -> bool {
        self.scope >= needed
    }

    /// Returns when the token or login is revoked or has expired; never for a proxy's user.
    pub async fn revoked(&self) {
        self.life.0.cancelled().await;
    }

    /// Whether the token or login was revoked or has expired.
    pub fn is_revoked(&self) -> bool {
        self.life.0.is_cancelled()
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }
}

/// A cookie that was recognised, its key not yet shown.
///
/// A browser sends a cookie to every port of a host, so that another program on the machine may see it. The key is kept by the
/// page's own origin, which includes the port.
#[derive(Clone)]
pub struct HalfLogin {
    auth: Auth,
    id: String,
    key: Digest,
}

impl HalfLogin {
    pub(super) fn new(auth: Auth, id: &str, key: Digest) -> HalfLogin {
        HalfLogin { auth, id: id.to_owned(), key }
    }

    /// The caller, if this is the login's key.
    pub fn with_key(&self, key: &str) -> Option<Caller> {
        if self.key.matches(key) { self.auth.login_caller(&self.id) } else { None }
    }
}

impl fmt::Debug for HalfLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalfLogin").field("id", &self.id).finish_non_exhaustive()
    }
}
