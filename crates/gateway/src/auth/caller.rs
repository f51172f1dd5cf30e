//! The caller of a request.

use bowline_host::meta::Makers;
use bowline_proto::api::TokenScope;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::records::{Made, Records};
use super::secret::Digest;
use super::{Auth, AuthError};

/// The authenticated caller of a request. Cheap to clone. While one exists, its login counts as in use.
#[derive(Clone, Debug)]
pub struct Caller {
    id: Arc<str>,
    scope: TokenScope,
    kind: Kind,
    revocation: Arc<Revocation>,
}

/// How a caller is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Token,
    Login,
    /// Named by a trusted proxy.
    User,
}

/// Revokes a token's or login's callers, which share it.
#[derive(Debug, Default)]
pub(super) struct Revocation(CancellationToken);

impl Revocation {
    pub(super) fn revoke(&self) {
        self.0.cancel();
    }
}

impl Caller {
    pub(super) fn new(id: &str, scope: TokenScope, kind: Kind, revocation: Arc<Revocation>) -> Caller {
        Caller { id: id.into(), scope, kind, revocation }
    }

    /// A user named by a trusted proxy. Such a caller is never revoked: the proxy decides.
    pub fn user(name: &str, scope: TokenScope) -> Caller {
        // Ids of tokens and logins contain no colon, so a user's id never equals one.
        Caller::new(&format!("user:{name}"), scope, Kind::User, Arc::default())
    }

    /// The id of the token or login, or `user:NAME`.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn scope(&self) -> TokenScope {
        self.scope
    }

    pub fn allows(&self, needed: TokenScope) -> bool {
        self.scope >= needed
    }

    /// Returns when the token or login is revoked or expires; never for a proxy's user.
    pub async fn revoked(&self) {
        self.revocation.0.cancelled().await;
    }

    pub fn is_revoked(&self) -> bool {
        self.revocation.0.is_cancelled()
    }

    /// An error if this caller was revoked while its request waited. Then the request must not change anything any more.
    pub(crate) fn check(&self) -> Result<(), AuthError> {
        if self.is_revoked() { Err(AuthError::Revoked) } else { Ok(()) }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }
}

/// Who makes a token or a login code.
#[derive(Clone, Debug)]
pub enum Maker {
    /// The caller of a request.
    Caller(Caller),
    /// The command line, with the callers that made the session in which it runs, as far as they are known.
    CommandLine(Makers),
}

impl Maker {
    pub(super) fn made(&self, records: &Records) -> Made {
        match self {
            Maker::Caller(caller) => Made { by: Some(caller.id().to_owned()), under: None },
            Maker::CommandLine(makers) => {
                let exists = |id: &&String| records.exists(id);
                let gone = makers.made_by.as_ref().is_some_and(|by| !records.exists(by));
                let under = makers.made_under.iter().find(exists).or(makers.made_under.last());
                Made { by: makers.made_by.clone(), under: under.filter(|_| gone).cloned() }
            }
        }
    }

    /// Like [`Caller::check`].
    pub(super) fn check(&self) -> Result<(), AuthError> {
        match self {
            Maker::Caller(caller) => caller.check(),
            Maker::CommandLine(_) => Ok(()),
        }
    }
}

/// The logins of a request whose cookies have been checked, but not yet the key of one of them.
///
/// A browser sends a cookie to every port of a host, so another program on the machine may see it. The key is in
/// the storage of the page's origin, which includes the port.
#[derive(Clone)]
pub struct PendingLogin {
    auth: Auth,
    /// Their ids and keys.
    logins: BTreeMap<String, Digest>,
}

impl PendingLogin {
    pub(super) fn new(auth: Auth, logins: BTreeMap<String, Digest>) -> PendingLogin {
        PendingLogin { auth, logins }
    }

    /// The caller, if this is the key of a login that is still valid.
    pub fn with_key(&self, key: &str) -> Option<Caller> {
        // Hashed once, not for each login: an attacker with the cookies can send any key.
        let sent = Digest::of_sent(key)?;
        let (id, _) = self.logins.iter().find(|(_, digest)| digest.equals(&sent))?;
        self.auth.login_caller(id)
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin").field("logins", &self.logins).finish_non_exhaustive()
    }
}
