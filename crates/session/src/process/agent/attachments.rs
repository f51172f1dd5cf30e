//! The attachments of prompts: checked when a prompt is accepted, read when the agent gets it.

use std::collections::BTreeSet;
use std::io;

use bowline_host::home::SessionDir;
use bowline_host::uploads::{self, UploadId};
use bowline_proto::agent::event::{AgentEvent, Level};
use bowline_proto::agent::run::Prompt;
use bowline_proto::problem::Code;

use super::super::core::Core;
use super::Agent;
use super::commands::Refusal;
use crate::agent::Attachment;

/// The attachments of a prompt; more are refused with `too_large`.
const MAX_ATTACHMENTS: usize = 16;
/// The bytes of all attachments of a prompt; more are refused with `too_large`. An agent gets them in one line, a third
/// longer.
const MAX_ATTACHED: u64 = 20 << 20;

/// Checks that the attachments of a prompt exist and are not too many or too large. Returns each of them once.
pub(super) fn check(dir: &SessionDir, ids: Vec<String>) -> Result<Vec<String>, Refusal> {
    let mut seen = BTreeSet::new();
    let ids: Vec<String> = ids.into_iter().filter(|id| seen.insert(id.clone())).collect();
    if ids.len() > MAX_ATTACHMENTS {
        let message = format!("the prompt has {} attachments; send at most {MAX_ATTACHMENTS}", ids.len());
        return Err(Refusal::new(Code::TooLarge, message));
    }
    let mut total = 0;
    for id in &ids {
        let unknown = || Refusal::new(Code::NotFound, format!("no upload of this session has the id {id:?}"));
        let upload = id.parse::<UploadId>().map_err(|_| unknown())?;
        total += match uploads::open(dir, &upload) {
            Ok(open) => open.len,
            Err(error) if error.kind() == io::ErrorKind::NotFound || bowline_host::files::is_damage(&error) => {
                return Err(unknown());
            }
            Err(error) => {
                let message = format!("the upload {id:?} cannot be read: {error}");
                return Err(Refusal::new(bowline_host::files::code(&error), message));
            }
        };
    }
    if total > MAX_ATTACHED {
        let message = format!("the attachments have {total} bytes together; send at most {MAX_ATTACHED}");
        return Err(Refusal::new(Code::TooLarge, message));
    }
    Ok(ids)
}

impl Agent {
    /// Reads the attachments of a prompt that the agent gets now. Those that are gone are left out, with a notice.
    pub(super) fn read_attachments(&mut self, core: &Core, prompt: &Prompt) -> Vec<Attachment> {
        let (mut read, mut left) = (Vec::new(), MAX_ATTACHED);
        for id in &prompt.attachments {
            match read_attachment(&core.dir, id) {
                Ok(attachment) if attachment.content.len() as u64 <= left => {
                    left -= attachment.content.len() as u64;
                    read.push(attachment);
                }
                unread => {
                    let why = unread.err().map_or_else(|| "too long".to_owned(), |error| error.to_string());
                    let text = format!("the attachment {id} is no longer there, so the agent did not get it: {why}");
                    self.append_later(AgentEvent::Notice { level: Level::Warning, text });
                }
            }
        }
        read
    }
}

fn read_attachment(dir: &SessionDir, id: &str) -> io::Result<Attachment> {
    let id: UploadId = id.parse().map_err(io::Error::other)?;
    let (media_type, content) = uploads::read(dir, &id)?;
    Ok(Attachment { name: id.name().to_owned(), media_type, path: uploads::path(dir, &id)?, content })
}
