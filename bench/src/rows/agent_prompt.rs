//! The time to accept a prompt, against a bare append and `fdatasync` of a line of the same size.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Bench, millis};
use crate::agent;
use crate::figure::{Budget, Figure, Row, median, quantile};
use crate::gateway::Gateway;
use crate::http::Client;
use crate::session::Session;
use crate::watcher::{Transport, Watcher};

/// How much longer than one append and `fdatasync`, in ms.
const MAX_MORE: f64 = 1.0;
/// The pause after each prompt, in which its end is recorded.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let prompts = bench.pick(300, 30);
    let gateway = Gateway::start(&bench.bowline)?;
    let session = bench.bowline.start_agent()?;
    let mut client = gateway.client()?;
    let mut watcher = Watcher::open(&gateway, &session, Transport::Sse)?;
    // The first one shows how long the line of a prompt is.
    send(&mut client, &session, 0, Duration::ZERO)?;
    watcher.receive_run(|_| Ok(()))?;
    let journal = fs::read_to_string(bench.bowline.session_dir(&session.id).join("events.jsonl"))?;
    let is_prompt = |line: &&str| line.contains(r#""event":{"type":"prompt""#);
    let line = format!("{}\n", journal.lines().find(is_prompt).context("the journal has no prompt")?);
    // In the same file system.
    let path = bench.bowline.session_dir(&session.id).join("bare");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..prompts {
        std::thread::sleep(PAUSE);
        let begun = Instant::now();
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        bares.push(millis(begun.elapsed()));
        std::thread::sleep(PAUSE);
        ours.push(millis(send(&mut client, &session, 0, Duration::ZERO)?));
        watcher.receive_run(|_| Ok(()))?;
    }
    fs::remove_file(&path)?;
    let figure = |times: &[f64], q: f64| Figure::new(quantile(times, q), "ms");
    let p50 = Row::new("a prompt until it is accepted, p50", Figure::new(median(&ours), "ms"))
        .against("append and fdatasync", figure(&bares, 0.5))
        .budget(Budget::AtMostMore(MAX_MORE));
    let p99 = Row::new("a prompt until it is accepted, p99", figure(&ours, 0.99))
        .against("append and fdatasync", figure(&bares, 0.99));
    Ok(vec![p50, p99])
}

/// Posts a prompt for `lines` lines of the agent, one every `interval`. Returns how long it took until it was accepted.
pub(super) fn send(client: &mut Client, session: &Session, lines: u64, interval: Duration) -> Result<Duration> {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let id = format!("bench-{}", SENT.fetch_add(1, Ordering::Relaxed));
    let command = json!({"type": "prompt", "text": agent::prompt(lines, interval)});
    let body = json!({"id": id, "command": command}).to_string();
    let begun = Instant::now();
    let (status, answer) = client.call("POST", &format!("/v1/sessions/{}/commands", session.id), &body)?;
    let took = begun.elapsed();
    ensure!(status == 202, "a prompt was answered with {status}: {answer}");
    let answer: Value = serde_json::from_str(&answer)?;
    ensure!(answer["status"] == "accepted", "a prompt was not accepted: {answer}");
    Ok(took)
}
