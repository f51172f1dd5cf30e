//! An ACP agent with little overhead, which writes lines at exact times, and the same program on bare pipes.
//!
//! A prompt `COUNT INTERVAL`, such as `1000 2000`, makes it write COUNT lines, one every INTERVAL microseconds. Each line is
//! one event: texts and thoughts take turns, so no two of them are merged. The text of each is its [`Stamp`]. Any other
//! prompt ends at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::cleanup::Process;

/// Commands that the agent announces: about as many, and as long, as those of agents in use.
const COMMANDS: usize = 60;

/// The time on a clock that all processes share.
pub(crate) fn now() -> Duration {
    clock_gettime(ClockId::Monotonic).try_into().unwrap_or_default()
}

/// The text of a line: its number, and when it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamp {
    pub(crate) number: u64,
    pub(crate) at: Duration,
}

impl Stamp {
    fn text(self) -> String {
        format!("<{} {}>", self.number, self.at.as_nanos())
    }

    /// Finds the stamp in a line or message.
    pub(crate) fn find(text: &str) -> Option<Stamp> {
        let (stamp, _) = text.split_once("\"<")?.1.split_once(">\"")?;
        let (number, nanos) = stamp.split_once(' ')?;
        Some(Stamp { number: number.parse().ok()?, at: Duration::from_nanos(nanos.parse().ok()?) })
    }
}

/// The text of a prompt for which the agent writes `count` lines.
pub(crate) fn prompt(count: u64, interval: Duration) -> String {
    format!("{count} {}", interval.as_micros())
}

/// Answers requests until standard input ends.
pub(crate) fn run() -> Result<()> {
    for line in std::io::stdin().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let result = match request["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}),
            Some("session/new" | "session/load") => conversation(),
            Some("session/prompt") => {
                work(request["params"]["prompt"][0]["text"].as_str().unwrap_or_default())?;
                json!({"stopReason": "end_turn"})
            }
            _ => continue,
        };
        write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))?;
        if request["method"] == "session/new" {
            write(&update(&json!({"sessionUpdate": "available_commands_update", "availableCommands": commands()})))?;
        }
    }
    Ok(())
}

/// What the agent says about a conversation.
fn conversation() -> Value {
    let modes = ["default", "plan", "accept-edits"];
    let modes: Vec<Value> =
        modes.iter().map(|id| json!({"id": id, "name": id, "description": "How to work"})).collect();
    json!({"sessionId": "bench-1", "modes": {"currentModeId": "default", "availableModes": modes}})
}

fn commands() -> Vec<Value> {
    let description = "Reviews the changes of this branch, and says what should be done before it is merged";
    (0..COMMANDS).map(|n| json!({"name": format!("command-{n}"), "description": description})).collect()
}

/// Writes the lines of a prompt, if it asks for any.
fn work(prompt: &str) -> Result<()> {
    let Some((count, interval)) = prompt.split_once(' ') else { return Ok(()) };
    let (Ok(count), Ok(interval)) = (count.parse::<u64>(), interval.parse()) else { return Ok(()) };
    let (begun, interval) = (now(), Duration::from_micros(interval));
    for number in 0..count {
        let due = begun + interval * u32::try_from(number)?;
        std::thread::sleep(due.saturating_sub(now()));
        let kind = if number % 2 == 0 { "agent_message_chunk" } else { "agent_thought_chunk" };
        let text = Stamp { number, at: now() }.text();
        write(&update(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})))?;
    }
    Ok(())
}

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "bench-1", "update": update}})
}

/// Writes a line at once.
fn write(message: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{message}\n").as_bytes())?;
    Ok(out.flush()?)
}

/// The agent's program on bare pipes. Dropping it kills the program.
#[derive(Debug)]
pub(crate) struct BareAgent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    _process: Process,
}

impl BareAgent {
    pub(crate) fn start() -> Result<BareAgent> {
        let mut child =
            Command::new(std::env::current_exe()?).arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let process = Process::adopt(child.id())?;
        let stdin = child.stdin.take().context("the agent has no stdin")?;
        let stdout = BufReader::new(child.stdout.take().context("the agent has no stdout")?);
        Ok(BareAgent { child, stdin, stdout, _process: process })
    }

    /// Prompts for `count` lines. Returns the delay of each, from when it was written until it was read.
    pub(crate) fn delays(&mut self, count: u64, interval: Duration) -> Result<Vec<Duration>> {
        let text = prompt(count, interval);
        let params = json!({"prompt": [{"type": "text", "text": text}]});
        writeln!(self.stdin, "{}", json!({"id": 1, "method": "session/prompt", "params": params}))?;
        let (mut line, mut delays) = (String::new(), Vec::new());
        while delays.len() < count as usize {
            line.clear();
            self.stdout.by_ref().take(1 << 20).read_line(&mut line)?;
            let read_at = now();
            let stamp = Stamp::find(&line).with_context(|| format!("not a line of the agent: {line:?}"))?;
            anyhow::ensure!(stamp.number == delays.len() as u64, "line {} instead of {}", stamp.number, delays.len());
            delays.push(read_at - stamp.at);
        }
        line.clear();
        self.stdout.read_line(&mut line)?; // the end of the turn
        Ok(delays)
    }
}

impl Drop for BareAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_in_a_message() {
        let stamp = Stamp { number: 7, at: Duration::from_nanos(1_234_567_890_123) };
        let message = update(&json!({"content": {"text": stamp.text()}})).to_string();
        assert_eq!(Stamp::find(&message), Some(stamp));
        assert_eq!(Stamp::find("{\"title\":\"<b>\"}"), None);
    }
}
