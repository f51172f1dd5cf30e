//! The live view of an agent session in this terminal, for `bowline attach` and `bowline agent`.

use std::process::ExitCode;

use bowline_client::conversation::{
    ConversationEnd, ConversationOptions, ConversationSource, PageReader, SourceError, attach_conversation,
};
use bowline_client::post::Poster;
use bowline_client::{Follower, Options, Outcome};
use bowline_host::registry::RegistryError;
use bowline_proto::backoff::Backoff;
use bowline_proto::message::Cursor;
use bowline_proto::problem;

use crate::attach;
use crate::conversation;
use crate::failure::{Code, Failure, problem_code};
use crate::host::{HistoryRange, Host, Session};
use crate::print;

/// Shows a conversation until the user leaves or the session ends.
pub(crate) fn run(host: &dyn Host, session: &Session, options: &Options) -> anyhow::Result<ExitCode> {
    let mut source = Source { host, session, backoff: options.backoff };
    let poster = Poster::start(host.delivery())?;
    let view =
        ConversationOptions { observe: options.observe, detach_key: options.detach_key, color: print::has_color() };
    let ConversationEnd { outcome, undelivered } = attach_conversation(&session.info.id, &mut source, poster, view)?;
    let left = matches!(outcome, Outcome::Detached { .. });
    let concluded = attach::conclude(host, session.label(), outcome);
    if undelivered == 0 {
        return concluded;
    }
    // The other errors say why nothing more can be delivered.
    if !left {
        concluded?;
    }
    let commands = if undelivered == 1 { "1 command was".to_owned() } else { format!("{undelivered} commands were") };
    let message = format!("{commands} not delivered, as far as is known");
    let hint = format!("{} shows what was", conversation::command(host, "log", session.label()));
    Err(Failure::new(Code::Other, message, hint).into())
}

/// A session of a host, as the view reads it.
struct Source<'a> {
    host: &'a dyn Host,
    session: &'a Session,
    backoff: Backoff,
}

impl ConversationSource for Source<'_> {
    fn latest(&self) -> PageReader {
        let (host, session) = (self.host.share(), self.session.clone());
        Box::new(move || host.history(&session, HistoryRange { before: None, after: None }).map_err(into_source_error))
    }

    fn follow(&mut self, cursor: Cursor) -> Result<Follower, SourceError> {
        let dialer = self.host.dial(self.session).map_err(into_source_error)?;
        Ok(Follower::new(dialer, Some(cursor), self.backoff)?)
    }
}

/// Only what Bowline itself says about the session or the token is permanent: a proxy may be set up wrong for a while.
fn into_source_error(error: anyhow::Error) -> SourceError {
    let is_refused = matches!(
        problem_code(&error),
        Some(
            problem::Code::NotAuthenticated
                | problem::Code::NotAllowed
                | problem::Code::UnknownSession
                | problem::Code::SessionGone
        )
    );
    let is_forgotten = matches!(error.downcast_ref(), Some(RegistryError::Unknown(_)));
    // Keeps the type of the error, which decides about the exit code.
    let cause = error.reallocate_into_boxed_dyn_error_without_backtrace();
    if is_refused || is_forgotten { SourceError::Permanent(cause) } else { SourceError::Temporary(cause) }
}

#[cfg(test)]
mod tests {
    use bowline_client::conversation::ConversationError;
    use bowline_client::remote::ApiError;

    use super::*;
    use crate::failure::{GET_TOKEN, LIST_SESSIONS};

    fn refused(code: problem::Code) -> anyhow::Error {
        ApiError::Refused { code, detail: "refused".to_owned(), oldest: None, answered: None }.into()
    }

    #[test]
    fn r40_a_history_that_can_never_be_read_is_told_from_one_that_may_be_later() {
        let proxy = ApiError::NotBowline { address: "http://h".to_owned(), status: 404 };
        for error in [refused(problem::Code::TooMany), proxy.into(), anyhow::anyhow!("a disk error")] {
            assert!(matches!(into_source_error(error), SourceError::Temporary(_)));
        }
        let revoked = into_source_error(refused(problem::Code::NotAuthenticated));
        let unknown = into_source_error(refused(problem::Code::UnknownSession));
        let forgotten = into_source_error(RegistryError::Unknown("dev".to_owned()).into());
        for (error, hint) in [(revoked, GET_TOKEN), (unknown, LIST_SESSIONS), (forgotten, LIST_SESSIONS)] {
            assert!(matches!(error, SourceError::Permanent(_)), "{error}");
            let failure = Failure::from(anyhow::Error::from(ConversationError::Source(error)));
            assert_eq!(failure.hint(), Some(hint), "{failure}");
        }
    }
}
