//! A journal of random events. Runs and calls have few names, so that the events meet each other.

use serde_json::{Value, json};

use super::{Journal, abort, complete, config, delta, prompt, requested, resolved, run_started, tool, usage};

#[path = "../sim/rng.rs"]
#[allow(dead_code, reason = "the simulations need more of it")]
mod rng;

use rng::Rng;

pub(crate) fn random(seed: u64, events: usize) -> Journal {
    let mut rng = Rng::new(seed);
    Journal::new(format!("random events of seed {seed}"), (0..events).map(|_| event(&mut rng)).collect())
}

fn event(rng: &mut Rng) -> Value {
    let run = format!("r{}", rng.below(5));
    let id = format!("a{}", rng.below(6));
    let call = format!("t{}", rng.below(8));
    let some_run = Some(run.as_str()).filter(|_| !rng.one_in(8));
    match rng.below(24) {
        0..=2 => prompt(&run),
        3..=5 => run_started(&run, if rng.one_in(3) { "agent" } else { "prompt" }),
        6..=8 => complete(&run),
        9 => abort(&run, rng.one_in(2)),
        10 => requested(&id, some_run),
        11 => resolved(&id),
        12 | 13 => delta("text", some_run, Some("t1").filter(|_| rng.one_in(4))),
        14 | 15 => delta("thinking", some_run, Some("t1").filter(|_| rng.one_in(4))),
        16..=19 => {
            let title = Some(format!("{call} {}", rng.below(10))).filter(|_| rng.one_in(2));
            let status = ["pending", "in_progress", "completed", "failed"][rng.below(4) as usize];
            let kind = if rng.one_in(2) { "tool_call" } else { "tool_update" };
            tool(kind, some_run, &call, title.as_deref(), Some(status).filter(|_| !rng.one_in(3)))
        }
        20 => {
            let cost = Some(rng.below(1_000_000) as f64 / 1e7).filter(|_| rng.one_in(2));
            let context = rng.one_in(2).then(|| rng.below(1000));
            usage(some_run, rng.below(10_000), cost, context)
        }
        21 => config(&format!("m{}", rng.below(3))),
        22 => match rng.below(4) {
            0 => json!({"type": "title", "title": format!("title {}", rng.below(3))}),
            1 => json!({"type": "conversation", "id": format!("c{}", rng.below(3))}),
            2 => json!({"type": "degraded", "error": "full"}),
            _ => json!({"type": "exit", "code": 0, "signal": null}),
        },
        _ => json!({"type": "started", "epoch": format!("{:08x}", rng.below(1 << 32)), "pid": 1, "version": "0.1.0"}),
    }
}
