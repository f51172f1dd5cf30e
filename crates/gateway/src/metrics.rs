//! What the gateway counts, for `/metrics`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline_proto::message::Reason;
use bowline_proto::problem::Code;
use metrics::{Gauge, counter, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the resume latency's buckets, in seconds.
const LATENCY: [f64; 12] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0];

/// Counts for the whole process, however many gateways it has.
static COUNTED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Starts counting, once in a process.
pub(crate) fn install() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*counted {
        return Ok(handle.clone());
    }
    let latency = Matcher::Full("bowline_resume_seconds".to_owned());
    let handle = PrometheusBuilder::new().set_buckets_for_metric(latency, &LATENCY)?.install_recorder()?;
    metrics::describe_gauge!("bowline_sessions", "Sessions, by state");
    metrics::describe_gauge!("bowline_attachments", "Viewers attached through this gateway");
    metrics::describe_gauge!("bowline_event_streams", "Event streams open");
    metrics::describe_counter!("bowline_verdicts_total", "Resumes, by verdict and reason");
    metrics::describe_counter!("bowline_output_bytes_total", "Bytes from sessions to viewers");
    metrics::describe_counter!("bowline_lagging_snapshots_total", "Snapshots for viewers that could not keep up");
    metrics::describe_counter!("bowline_refusals_total", "Refused calls and connections, by code");
    metrics::describe_histogram!("bowline_resume_seconds", "From a hello to its answer");
    *counted = Some(handle.clone());
    Ok(handle)
}

/// How often what was recorded for histograms is added up. Until then every value is kept.
const ADD_UP: Duration = Duration::from_secs(5);

/// Keeps the memory of histograms bounded, whether or not anybody asks for `/metrics`. Never returns.
pub(crate) async fn add_up(counted: &PrometheusHandle) {
    let mut due = tokio::time::interval(ADD_UP);
    loop {
        due.tick().await;
        counted.run_upkeep();
    }
}

/// A call or connection was refused.
pub(crate) fn refused(code: Code) {
    counter!("bowline_refusals_total", "code" => code.name()).increment(1);
}

/// Bytes went from a session to a viewer.
pub(crate) fn output(bytes: usize) {
    counter!("bowline_output_bytes_total").increment(bytes as u64);
}

/// A hello was answered.
pub(crate) fn attached(exact: bool, reason: Option<Reason>, after: Duration) {
    let verdict = if exact { "exact" } else { "snapshot" };
    let reason = reason.map_or("none", |reason| match reason {
        Reason::Fresh => "fresh",
        Reason::Trimmed => "trimmed",
        Reason::Epoch => "epoch",
        Reason::Ahead => "ahead",
        Reason::Lagging => "lagging",
        Reason::Resize => "resize",
        Reason::Repaint => "repaint",
        Reason::Unknown => "unknown",
    });
    counter!("bowline_verdicts_total", "verdict" => verdict, "reason" => reason).increment(1);
    histogram!("bowline_resume_seconds").record(after.as_secs_f64());
}

/// A viewer could not keep up.
pub(crate) fn lagging() {
    counter!("bowline_lagging_snapshots_total").increment(1);
}

/// Sessions of each state.
pub(crate) fn sessions(running: usize, exited: usize, lost: usize) {
    for (state, count) in [("running", running), ("exited", exited), ("lost", lost)] {
        gauge!("bowline_sessions", "state" => state).set(count as f64);
    }
}

/// An open stream, counted until it is dropped.
pub(crate) struct OpenStream(Gauge);

impl OpenStream {
    pub(crate) fn attachment() -> OpenStream {
        OpenStream::count(gauge!("bowline_attachments"))
    }

    pub(crate) fn events() -> OpenStream {
        OpenStream::count(gauge!("bowline_event_streams"))
    }

    fn count(gauge: Gauge) -> OpenStream {
        gauge.increment(1.0);
        OpenStream(gauge)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
