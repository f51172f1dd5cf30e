//! Memory: the average of an idle agent session among fifty of them, without its agent.

use anyhow::Result;

use super::Bench;
use super::memory::settled_memory;
use crate::figure::{Budget, Figure, Row};
use crate::gateway::Gateway;
use crate::session::Session;
use crate::watcher::{Transport, Watcher};

/// The most memory of a session process, in KiB.
const MAX: f64 = 1024.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let count = bench.pick(50, 10);
    let gateway = Gateway::start(&bench.bowline)?;
    let sessions = (0..count).map(|_| bench.bowline.start_agent()).collect::<Result<Vec<Session>>>()?;
    // Each has had a run.
    let mut client = gateway.client()?;
    for session in &sessions {
        let mut watcher = Watcher::open(&gateway, session, Transport::Sse)?;
        super::agent_prompt::send(&mut client, session, 100, std::time::Duration::from_micros(100))?;
        watcher.receive_run(|_| Ok(()))?;
    }
    drop((client, gateway));
    let pids: Vec<u32> = sessions.iter().map(Session::pid).collect();
    let (mean, most) = settled_memory(&pids, count)?;
    Ok(vec![
        Row::new(format!("memory of one of {count} idle agent sessions"), Figure::new(mean, "KiB"))
            .budget(Budget::AtMost(MAX)),
        Row::new("the largest of these", Figure::new(most, "KiB")),
    ])
}
