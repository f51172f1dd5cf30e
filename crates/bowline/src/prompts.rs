//! The text of a prompt: from the arguments or standard input, and its limit.

use std::io::Read;

use bowline_proto::agent::command::{AgentCommand, MAX_COMMAND};
use serde_json::{Value, json};

use crate::failure::{Code, Failure};

/// Joins the words of the command line. A single `-` stands for standard input.
pub(crate) fn text(words: &[String]) -> anyhow::Result<String> {
    match words {
        [dash] if dash == "-" => read_stdin(),
        words => Ok(words.join(" ")),
    }
}

/// Reads a prompt from standard input to its end.
pub(crate) fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    // One byte more than fits shows that it is too long.
    std::io::stdin().lock().take(MAX_COMMAND as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_COMMAND {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|bad| {
        let message = format!("standard input is not UTF-8 at byte {}", bad.utf8_error().valid_up_to());
        Failure::new(Code::Other, message, "a prompt is text; `iconv -t UTF-8` converts other encodings").into()
    })
}

/// The command that prompts an agent. Fails for a text that no session would accept.
pub(crate) fn command(text: &str) -> anyhow::Result<Value> {
    if text.trim().is_empty() {
        return Err(Failure::new(Code::Usage, "the prompt is empty", "say what the agent should do").into());
    }
    let command = json!(AgentCommand::Prompt { text: text.to_owned(), attachments: Vec::new() });
    if command.to_string().len() > MAX_COMMAND {
        return Err(too_long());
    }
    Ok(command)
}

fn too_long() -> anyhow::Error {
    let message = format!("the prompt is too long (limit {} KiB, as JSON)", MAX_COMMAND >> 10);
    Failure::new(Code::Other, message, "put the text into a file of the project, and name that in the prompt").into()
}
