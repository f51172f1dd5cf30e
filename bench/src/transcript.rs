//! Long conversations: the files of ended agent sessions, generated to any size.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::session::Bowline;

const AT: &str = "2026-01-01T00:00:00.000000Z";
/// In each run: tools that are used, and pieces of text after each.
const TOOLS: usize = 20;
const PIECES: usize = 10;

/// Makes an ended session whose journal has about `bytes` bytes, with the checkpoint that it has after a list. Returns its
/// id.
pub(crate) fn generate(bowline: &Bowline, bytes: usize) -> Result<String> {
    let id = bowline.start_agent()?.id.clone();
    bowline.run(&["kill", "--keep", &id])?;
    let path = bowline.session_dir(&id).join("events.jsonl");
    let events = journal(&fs::read_to_string(&path)?, bytes)?;
    fs::write(&path, events)?;
    let listed = bowline.run(&["ls", "--json"])?;
    ensure!(listed.contains(&id), "`bowline ls` does not list the session that was generated");
    Ok(id)
}

/// Copies the files of an ended session, with another id.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for file in ["events.jsonl", "head", "lock"] {
        fs::copy(from.join(file), to.join(file)).with_context(|| file.to_owned())?;
    }
    let mut meta: Value = serde_json::from_slice(&fs::read(from.join("meta.json"))?)?;
    meta["id"] = to.file_name().and_then(|name| name.to_str()).into();
    Ok(fs::write(to.join("meta.json"), meta.to_string())?)
}

/// The journal of a short session, with runs before its exit.
fn journal(short: &str, bytes: usize) -> Result<String> {
    let (start, exit) = short.trim_end().rsplit_once('\n').context("the session recorded no exit")?;
    let (_, exit) = exit.split_once(",\"at\"").context("the exit has no time")?;
    let mut journal = Journal { next: start.lines().count(), text: format!("{start}\n") };
    for run in 0.. {
        if journal.text.len() >= bytes {
            break;
        }
        journal.put_run(run);
    }
    writeln!(journal.text, "{{\"seq\":{},\"at\"{exit}", journal.next)?;
    Ok(journal.text)
}

struct Journal {
    next: usize,
    text: String,
}

impl Journal {
    /// Appends an event, given as the fields after its type, in braces.
    fn put(&mut self, kind: &str, fields: &Value) {
        let fields = fields.to_string();
        let (seq, fields) = (self.next, fields.trim_start_matches('{'));
        let _ = writeln!(self.text, "{{\"seq\":{seq},\"at\":\"{AT}\",\"event\":{{\"type\":\"{kind}\",{fields}}}");
        self.next += 1;
    }

    /// About 110 KB: a prompt, and an agent that thinks, uses tools, and writes.
    fn put_run(&mut self, number: usize) {
        let (run, command) = (format!("r{number}"), format!("3f2c8a1e-8f0b-4d3c-9a64-{number:012}"));
        let text = "The tests of the parser fail since yesterday. Find out why, and fix it. ".repeat(4);
        let digest = format!("{number:016x}");
        self.put(
            "prompt",
            &json!({"run": run, "command": command, "digest": digest, "by": "local", "text": text, "attachments": []}),
        );
        self.put("run_started", &json!({"run": run, "cause": "prompt"}));
        for tool in 0..TOOLS {
            let (call, path) = (format!("call_{number}_{tool}"), format!("/home/me/project/src/parser_{tool}.rs"));
            let thought = "The error comes from the second branch, which does not expect an empty line. ";
            for _ in 0..PIECES {
                self.put("thinking", &json!({"run": run, "block": format!("{run}.{}", 2 * tool), "delta": thought}));
            }
            let input = json!({"command": format!("sed -n 1,200p {path}"), "timeout": 120});
            self.put(
                "tool_call",
                &json!({"run": run, "call": call, "name": "bash", "kind": "execute", "title": format!("Read {path}"),
                    "status": "in_progress", "input": input, "locations": [{"path": path}]}),
            );
            let line = "    let next = self.lines.next().ok_or_else(|| Error::at(self.line, \"an end\"))?;\n";
            let content = json!([{"type": "content", "content": {"type": "text", "text": line.repeat(24)}}]);
            self.put("tool_update", &json!({"run": run, "call": call, "status": "completed", "content": content}));
            for _ in 0..PIECES {
                let delta = "I changed the branch so that it accepts an empty line, too. ";
                self.put("text", &json!({"run": run, "block": format!("{run}.{}", 2 * tool + 1), "delta": delta}));
            }
        }
        self.put("usage", &json!({"run": run, "tokens": {"input": 41_000, "output": 2_300}}));
        self.put(
            "complete",
            &json!({"run": run, "started": true, "success": true, "aborted": false, "interrupted": false,
                "exit_code": null, "signal": null, "stop_reason": "end_turn", "conversation": "bench-1"}),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_has_every_number_once() {
        let short = "{\"seq\":0,\"at\":\"\",\"event\":{\"type\":\"started\"}}\n\
                     {\"seq\":1,\"at\":\"\",\"event\":{\"type\":\"exit\"}}\n";
        let long = journal(short, 300_000).unwrap();
        assert!((300_000..450_000).contains(&long.len()), "{}", long.len());
        let events: Vec<Value> = long.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(events.iter().enumerate().all(|(n, event)| event["seq"] == n));
        assert_eq!(events.last().unwrap()["event"]["type"], "exit");
    }
}
