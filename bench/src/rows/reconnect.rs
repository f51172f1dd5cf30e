//! The gateway of a thousand viewers, each of a different session, is killed; all of them reconnect and resume.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bowline_proto::message::Lag;

use super::{Bench, ECHO};
use crate::figure::{Budget, Figure, Row, quantile};
use crate::gateway::Gateway;
use crate::session::Session;
use crate::viewer::Viewer;

/// Viewers that connect at the same time. With a thread for each of them, the benchmark would measure the threads.
const AT_A_TIME: usize = 32;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let count: usize = bench.pick(1000, 100);
    let mut gateway = Gateway::start(&bench.bowline)?;
    let sessions = (0..count).map(|_| bench.bowline.start(&ECHO)).collect::<Result<Vec<Session>>>()?;
    let attach = |session| Viewer::attach_and_wait(&gateway.route_to(session), Lag::Wait, b"READY");
    let mut viewers = sessions.iter().map(attach).collect::<Result<Vec<Viewer>>>()?;
    // Every session prints something while there is no gateway, so that the viewers miss output.
    for viewer in &mut viewers {
        viewer.write(b"typed before the kill")?;
    }
    let killed = Instant::now();
    gateway = gateway.kill_and_restart(&bench.bowline)?;
    let restarted = killed.elapsed();
    let routes: Vec<_> = sessions.iter().map(|session| gateway.route_to(session)).collect();
    let each = count.div_ceil(AT_A_TIME);
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = viewers
            .chunks_mut(each)
            .zip(routes.chunks(each))
            .map(|(viewers, routes)| {
                scope.spawn(move || -> Result<Vec<f64>> {
                    let mut times = Vec::new();
                    for (viewer, route) in viewers.iter_mut().zip(routes) {
                        ensure!(viewer.reconnect(route)?, "a viewer was not resumed exactly");
                        times.push(killed.elapsed().as_secs_f64());
                    }
                    Ok(times)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().ok().context("a viewer panicked")?);
        joined.collect::<Result<Vec<_>>>()
    })?;
    let times: Vec<f64> = times.into_iter().flatten().collect();
    Ok(vec![
        Row::new(
            format!("{count} viewers, from a kill of the gateway until the last is exact"),
            Figure::new(quantile(&times, 1.0), "s"),
        )
        .budget(Budget::AtMost(5.0)),
        Row::new("until half of them are", Figure::new(quantile(&times, 0.5), "s")),
        Row::new("until the next gateway listens", Figure::new(restarted.as_secs_f64(), "s")),
    ])
}
