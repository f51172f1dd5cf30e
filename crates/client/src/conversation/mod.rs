//! An agent's conversation on a terminal: finished lines, and a few live rows below them.
//!
//! Only [`mod@attach`] and `page_load` do IO. The other modules have neither a clock nor a terminal. In the order that a record walks:
//!
//! - [`transcript`]: takes records, and gives out final lines and what is not final yet; `output`: blank lines between
//!   them;
//! - `blocks`: splits the agent's text, as it comes, into blocks of Markdown; `markdown`, `table`: their lines;
//! - `prompt`, `thinking`, `tools`, `plan`: their lines; `wording`: those about ends, approvals and times;
//! - [`mod@card`]: an approval, with everything that a decision needs;
//! - `text`: styled text, and how it is wrapped. Everything from the agent is escaped there;
//! - `view`: what the user sees and what keys do; `outgoing`: commands on their way to the session;
//! - `key_reader`, `editor`, `answer_form`: keys, the prompt that is being typed, the answer to an approval;
//! - `live_area`: paints the rows; `printer`: lines and rows on their way to the terminal;
//! - `following`: the session's events, and its history, which `page_load` reads; [`mod@attach`]: the loop that connects
//!   all this to the terminal.

mod answer_form;
pub mod attach;
mod blocks;
pub mod card;
mod editor;
mod following;
mod key_reader;
mod live_area;
mod markdown;
mod outgoing;
mod output;
mod page_load;
mod plan;
mod printer;
mod prompt;
mod table;
pub mod text;
mod thinking;
mod tools;
pub mod transcript;
mod view;
mod wording;

#[cfg(test)]
mod tests;

pub use attach::{
    ConversationEnd, ConversationError, ConversationOptions, ConversationSource, PageReader, SourceError,
    attach_conversation,
};
pub use card::card;
pub use text::Style;
pub use transcript::Transcript;
