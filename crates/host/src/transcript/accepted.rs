//! Finds a command that an agent session accepted before it ended.

use bowline_proto::api::CommandAccepted;
use bowline_proto::problem::Code;
use bowline_proto::session::Kind;
use serde_json::Value;

use super::{command_digest, read_state};
use crate::control::ControlError;
use crate::files;
use crate::registry::Entry;

/// Looks up a command in the files of an ended session. A client that did not get the answer sends it again, and must not
/// be told that it failed. An unknown command is refused with `session_gone`.
pub fn find_accepted(entry: &Entry, id: String, command: &Value) -> Result<CommandAccepted, ControlError> {
    let refused = |code, message: String| ControlError::Refused { code, message, answered: None };
    let gone = || refused(Code::SessionGone, "the session has ended".to_owned());
    if entry.meta.kind != Kind::Agent {
        return Err(gone());
    }
    let fold = match read_state(&entry.dir) {
        Ok(state) => state.fold,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound || files::is_damage(&error) => return Err(gone()),
        Err(error) => return Err(refused(files::code(&error), format!("cannot read the journal: {error}"))),
    };
    let known = fold.accepted(&id).ok_or_else(gone)?;
    if known.digest != command_digest(command) {
        return Err(refused(Code::IdReused, "another command already used this id".to_owned()));
    }
    Ok(CommandAccepted::new(id, known.seq, known.run, true))
}
