//! The live view of an agent session in this terminal, for `bowline attach` and `bowline agent`.

use std::process::ExitCode;

use bowline_client::conversation::{
    ConversationEnd, ConversationOptions, ConversationSource, PageReader, SourceError, attach_conversation,
};
use bowline_client::post::Poster;
use bowline_client::{Follower, Options, Outcome};
use bowline_proto::backoff::Backoff;
use bowline_proto::message::Cursor;

use crate::attach;
use crate::conversation;
use crate::failure::{Code, Failure};
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
        Box::new(move || Ok(host.history(&session, HistoryRange { before: None, after: None })?))
    }

    fn follow(&mut self, cursor: Cursor) -> Result<Follower, SourceError> {
        Ok(Follower::new(self.host.dial(self.session)?, Some(cursor), self.backoff)?)
    }
}
