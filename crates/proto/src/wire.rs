//! Generates the TypeScript types of messages and HTTP bodies, and tests that the committed files are up to date.
//!
//! `BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire` regenerates them.

use std::fmt::Write as _;

use ts_rs::{Config, TS};

use crate::agent::approval::{
    Answered, Approval, ApprovalKind, ApprovalOption, Detail, OptionKind, Outcome, Question, QuestionOption,
};
use crate::agent::command::FirstPrompt;
use crate::agent::config::{Choice, Choices, Config as AgentConfig, ConfigOption, OptionValue, SlashCommand};
use crate::agent::event::{AgentEvent, Blob, Cause, CommandSource, Complete, Delta, Level, RunError, ToolCall};
use crate::agent::state::{ConversationState, OpenRun, OpenTool, Step};
use crate::agent::usage::{Context, Tokens, Usage, Used};
use crate::api::{
    AgentList, AgentProtocol, AgentStatus, ApprovalList, CodeReply, CommandAccepted, CommandStatus, EventPage,
    EventRecord, IfExists, Login, LoginReply, NewAgent, NewCommand, NewSession, NewTerminal, NewToken, Restart,
    Revoked, Secret, SessionChange, SessionList, TicketReply, TokenInfo, TokenKind, TokenList, TokenReply, TokenScope,
    UploadReply, WaitingApproval,
};
use crate::board::{BoardClientMessage, BoardMessage, WatchedSession};
use crate::files::{FileEntry, FileKind, FileList, FolderEntry, FolderList};
use crate::ids::{ClientId, Epoch, SessionId, SessionName};
use crate::message::{
    Attached, ClientMessage, Cursor, Grant, Hello, Lag, Missed, Permissions, PresenceEntry, Reason, Scope,
    ServerMessage, SnapshotLength, TerminalCommand, Theme, Verdict,
};
use crate::problem::{Code, Problem, Retained};
use crate::session::{Activity, AgentInfo, Call, CallKind, ExitStatus, Kind, SessionInfo, State, TerminalInfo};
use crate::size::Size;

const MESSAGES: &str = "\
/**
 * The protocol messages, as TypeScript types.
 *
 * Generated from the Rust types in crates/proto; do not edit. To regenerate:
 *
 *     BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire
 *
 * Offsets and counts are u64 on the wire and `number` here; the reader refuses values above 2^53 - 1.
 */
";

const BODIES: &str = "\
/**
 * The bodies of the HTTP API, as TypeScript types.
 *
 * Generated from the Rust types in crates/proto; do not edit. To regenerate:
 *
 *     BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire
 */
import type { Approval, Code, ConversationState, Epoch, Outcome, SessionId, SessionInfo, Size } from \"../core/wire.js\";
";

/// Appends the declaration of one type, with its doc comments.
fn declare<T: TS>(out: &mut String) {
    let config = Config::new().with_large_int("number");
    let docs = T::docs().unwrap_or_default().replace("/**\n * ", "/** ").replace("\n */\n", " */\n");
    // A field has at most one line of documentation.
    let decl = T::decl(&config).replace(" \n/**\n * ", "\n  /** ").replace("\n */\n", " */\n  ").replace(", }", ",\n}");
    let decl = decl.lines().map(break_fields).collect::<Vec<_>>().join("\n");
    // Links of rustdoc mean nothing in TypeScript.
    let text = format!("\n{docs}export {decl}").replace("[`", "`").replace("`]", "`");
    writeln!(out, "{text}").expect("writing to a string does not fail");
}

/// Starts a new line before each field in one line of a declaration.
fn break_fields(line: &str) -> String {
    if line.trim_start().starts_with("/**") {
        return line.to_owned();
    }
    let is_name = |word: &str| {
        let name = word.strip_suffix(':').unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '?'))
    };
    let mut broken = String::new();
    for (i, word) in line.split(' ').enumerate() {
        match i {
            0 => {}
            _ if is_name(word) && broken.ends_with(['{', ',']) => broken.push_str("\n  "),
            _ => broken.push(' '),
        }
        broken.push_str(word);
    }
    broken
}

fn messages() -> String {
    let mut out = MESSAGES.to_owned();
    declare::<SessionId>(&mut out);
    declare::<SessionName>(&mut out);
    declare::<Epoch>(&mut out);
    declare::<ClientId>(&mut out);
    declare::<Size>(&mut out);
    declare::<SessionInfo>(&mut out);
    // `terminal` and `agent` are flattened: their fields are at the same level as the others.
    let end = out.trim_end_matches([';', '\n']).len();
    out.replace_range(end.., " & Partial<TerminalInfo> & Partial<AgentInfo>;\n");
    declare::<TerminalInfo>(&mut out);
    declare::<AgentInfo>(&mut out);
    declare::<Activity>(&mut out);
    declare::<Used>(&mut out);
    declare::<Tokens>(&mut out);
    declare::<Context>(&mut out);
    declare::<SlashCommand>(&mut out);
    declare::<Approval>(&mut out);
    declare::<ApprovalKind>(&mut out);
    declare::<Detail>(&mut out);
    declare::<ApprovalOption>(&mut out);
    declare::<OptionKind>(&mut out);
    declare::<Question>(&mut out);
    declare::<QuestionOption>(&mut out);
    declare::<Outcome>(&mut out);
    declare::<Answered>(&mut out);
    declare::<ConversationState>(&mut out);
    declare::<OpenRun>(&mut out);
    declare::<OpenTool>(&mut out);
    declare::<Step>(&mut out);
    declare::<AgentConfig>(&mut out);
    declare::<Choices>(&mut out);
    declare::<Choice>(&mut out);
    declare::<ConfigOption>(&mut out);
    declare::<AgentEvent>(&mut out);
    // `source` is flattened, and may be missing.
    let resolved = out.rfind("\"approval_resolved\"").expect("an event");
    let end = resolved + out[resolved..].find('}').expect("its end") + 1;
    out.insert_str(end, " & Partial<CommandSource>");
    declare::<CommandSource>(&mut out);
    declare::<Cause>(&mut out);
    declare::<Delta>(&mut out);
    declare::<ToolCall>(&mut out);
    declare::<Blob>(&mut out);
    declare::<OptionValue>(&mut out);
    declare::<Usage>(&mut out);
    declare::<Level>(&mut out);
    declare::<Complete>(&mut out);
    declare::<RunError>(&mut out);
    declare::<Call>(&mut out);
    declare::<CallKind>(&mut out);
    declare::<Kind>(&mut out);
    declare::<State>(&mut out);
    declare::<ExitStatus>(&mut out);
    declare::<Code>(&mut out);
    // Unlike other values, a code added by a newer server keeps its name.
    let end = out.rfind("\"unknown\"").expect("`unknown` is the last code");
    out.replace_range(end.., "(string & {});\n");
    declare::<Cursor>(&mut out);
    declare::<Lag>(&mut out);
    declare::<Hello>(&mut out);
    declare::<Grant>(&mut out);
    declare::<Theme>(&mut out);
    declare::<ClientMessage>(&mut out);
    declare::<TerminalCommand>(&mut out);
    declare::<Attached>(&mut out);
    declare::<Verdict>(&mut out);
    declare::<Reason>(&mut out);
    declare::<Scope>(&mut out);
    declare::<Missed>(&mut out);
    declare::<SnapshotLength>(&mut out);
    declare::<Permissions>(&mut out);
    declare::<PresenceEntry>(&mut out);
    declare::<ServerMessage>(&mut out);
    declare::<BoardMessage>(&mut out);
    declare::<BoardClientMessage>(&mut out);
    declare::<WatchedSession>(&mut out);
    out
}

fn bodies() -> String {
    let mut out = BODIES.to_owned();
    declare::<NewSession>(&mut out);
    declare::<NewTerminal>(&mut out);
    declare::<NewAgent>(&mut out);
    declare::<FirstPrompt>(&mut out);
    declare::<IfExists>(&mut out);
    declare::<SessionList>(&mut out);
    declare::<SessionChange>(&mut out);
    declare::<Restart>(&mut out);
    declare::<NewCommand>(&mut out);
    declare::<CommandAccepted>(&mut out);
    declare::<CommandStatus>(&mut out);
    declare::<UploadReply>(&mut out);
    declare::<Secret>(&mut out);
    declare::<Login>(&mut out);
    declare::<LoginReply>(&mut out);
    declare::<TokenScope>(&mut out);
    declare::<NewToken>(&mut out);
    declare::<TokenReply>(&mut out);
    declare::<TokenList>(&mut out);
    declare::<TokenInfo>(&mut out);
    declare::<TokenKind>(&mut out);
    declare::<Revoked>(&mut out);
    declare::<CodeReply>(&mut out);
    declare::<TicketReply>(&mut out);
    declare::<Problem>(&mut out);
    declare::<AgentList>(&mut out);
    declare::<AgentStatus>(&mut out);
    declare::<AgentProtocol>(&mut out);
    declare::<ApprovalList>(&mut out);
    declare::<WaitingApproval>(&mut out);
    declare::<EventPage>(&mut out);
    declare::<EventRecord>(&mut out);
    declare::<Retained>(&mut out);
    declare::<FileList>(&mut out);
    declare::<FileEntry>(&mut out);
    declare::<FileKind>(&mut out);
    declare::<FolderList>(&mut out);
    declare::<FolderEntry>(&mut out);
    out
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the developer decides whether to regenerate the files")]
fn the_typescript_types_are_up_to_date() {
    for (file, generated) in [("core/wire.ts", messages()), ("api/bodies.ts", bodies())] {
        let path = format!("{}/../../packages/client/src/{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("BOWLINE_BLESS").is_some() {
            std::fs::write(path, generated).expect("the file is writable");
            continue;
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == generated,
            "packages/client/src/{file} differs from the Rust types. Regenerate it and review the difference:\n\
             BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire"
        );
    }
}
