//! The delay of an agent's line until a client of the event stream has it, against the same program on a bare pipe.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Bench, micros};
use crate::agent::BareAgent;
use crate::figure::{Budget, Figure, Row, median, quantile};
use crate::gateway::Gateway;
use crate::session::Session;
use crate::watcher::{Transport, Watcher};

/// The time between two lines: that of an agent that writes 200 pieces of text a second.
const INTERVAL: Duration = Duration::from_millis(5);
/// How much later than on the bare pipe a line may arrive, in µs.
const MAX_MORE: f64 = 2000.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let (rounds, lines) = (bench.pick(7, 3), bench.pick(1000, 100));
    let gateway = Gateway::start(&bench.bowline)?;
    let session = bench.bowline.start_agent()?;
    let mut bare = BareAgent::start()?;
    let (mut bares, mut sse, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        bares.push(bare.delays(lines, INTERVAL)?.into_iter().map(micros).collect::<Vec<f64>>());
        sse.push(delays(&gateway, &session, Transport::Sse, lines)?);
        sockets.push(delays(&gateway, &session, Transport::WebSocket, lines)?);
    }
    let of = |rounds: &[Vec<f64>], q: f64| {
        Figure::new(median(&rounds.iter().map(|delays| quantile(delays, q)).collect::<Vec<f64>>()), "µs")
    };
    let mut rows = Vec::new();
    for (client, delays) in [("an SSE client", sse), ("a WebSocket client", sockets)] {
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            let what = format!("a line of an agent until {client} has it, {name}");
            let row = Row::new(what, of(&delays, q)).against("bare pipe", of(&bares, q));
            let budget = (q > 0.9).then_some(Budget::AtMostMore(MAX_MORE));
            rows.push(Row { budget, ..row });
        }
    }
    Ok(rows)
}

/// Prompts for lines, and returns the delay of each for a client that was just connected.
fn delays(gateway: &Gateway, session: &Session, transport: Transport, lines: u64) -> Result<Vec<f64>> {
    let mut watcher = Watcher::open(gateway, session, transport)?;
    super::agent_prompt::send(&mut gateway.client()?, session, lines, INTERVAL)?;
    let mut delays = Vec::new();
    watcher.receive_run(|event| {
        let Some(stamp) = event.stamp() else { return Ok(()) };
        ensure!(stamp.number == delays.len() as u64, "line {} instead of {}", stamp.number, delays.len());
        delays.push(micros(event.read_at.checked_sub(stamp.at).context("a line was read before it was written")?));
        Ok(())
    })?;
    ensure!(delays.len() as u64 == lines, "{} of {lines} lines arrived", delays.len());
    Ok(delays)
}
