//! Who a client is to the session: the caller that it connects for, and the id that it chose.

use std::sync::Arc;

use crate::ids::ClientId;
use crate::message::{Grant, Hello};

/// For whom a viewer connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The owner of the session, on its socket.
    Owner,
    /// A token, login or user of a gateway. `None`: an older gateway, which does not tell them apart.
    Gateway(Option<Arc<str>>),
}

/// Identifies a client. Its id alone does not, since another caller may use the same one, by chance or to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientKey {
    pub(crate) caller: Caller,
    pub(crate) id: ClientId,
}

impl ClientKey {
    pub(crate) fn of(hello: &Hello) -> ClientKey {
        let caller = match &hello.grant {
            None => Caller::Owner,
            Some(Grant { caller, .. }) => Caller::Gateway(caller.as_deref().map(Arc::from)),
        };
        ClientKey { caller, id: hello.client.clone() }
    }

    /// Another client of the same caller.
    pub(crate) fn sibling(&self, id: &ClientId) -> ClientKey {
        ClientKey { caller: self.caller.clone(), id: id.clone() }
    }
}
