//! What is particular to single ACP agents, in one table. An agent is known by the name that it gives itself.
//!
//! What several agents do differently, and any other might, is handled for all of them: an option is chosen by its id,
//! a tool call may begin with its permission request, and every request is answered.

/// How an agent departs from what the protocol says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks {
    /// Texts without the id of a message are warnings of the program, not words of the model. After the program reported
    /// a `systemError`, such a text is the error, and the run has failed, although it ends with `end_turn`.
    pub(super) warns_in_text: bool,
    /// A tool that runs a command has no input; its title is the command.
    pub(super) title_is_command: bool,
    /// It answers `session/load` long before it has replayed the history, and works on requests meanwhile. So a prompt
    /// must wait, or history would be taken for the answer to it. Neither the answer to another request nor the list of
    /// commands tells when the replay is over: Gemini sends both in the midst of it. But it always has one update of the
    /// history in line for its output, and adds the next one when that is written. So it is over when there was none
    /// between a request, sent after everything before was read, and its answer.
    pub(super) replays_after_load: bool,
    /// It drops a link to a file outside of the project without a word, so its path is in the text instead.
    pub(super) drops_links: bool,
    /// The tool that writes the list of steps, of which the agent sends no `plan`.
    pub(super) todo_tool: Option<&'static str>,
    /// It sends blocking requests of its own, and waits for ever if they are refused as unknown.
    pub(super) has_cursor_requests: bool,
}

/// The quirks of the agent with this name; none for an agent that is not in the table.
pub(super) fn quirks(agent: &str) -> Quirks {
    let none = Quirks::default();
    // Some names have a scope in front, which has changed before.
    match agent.rsplit('/').next().unwrap_or_default() {
        "codex-acp" => Quirks { warns_in_text: true, ..none },
        "gemini-cli" => Quirks { title_is_command: true, replays_after_load: true, ..none },
        "qwen-code" => Quirks { drops_links: true, ..none },
        "OpenCode" => Quirks { todo_tool: Some("todowrite"), ..none },
        name if name.to_ascii_lowercase().starts_with("cursor") => Quirks { has_cursor_requests: true, ..none },
        _ => none,
    }
}
