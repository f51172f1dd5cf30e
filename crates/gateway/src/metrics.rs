//! Metrics for `/metrics`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline_proto::message::Reason;
use bowline_proto::problem::Code;
use metrics::{Gauge, counter, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the resume latency buckets, in seconds.
const LATENCY: [f64; 12] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0];

/// The recorder is global, so all gateways of a process share it.
static HANDLE: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Installs the recorder, once per process, and returns its handle.
pub(crate) fn install() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    let mut installed = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let latency = Matcher::Full("bowline_resume_seconds".to_owned());
    let handle = PrometheusBuilder::new().set_buckets_for_metric(latency, &LATENCY)?.install_recorder()?;
    metrics::describe_gauge!("bowline_sessions", "Sessions, by state");
    metrics::describe_gauge!("bowline_attachments", "Viewers attached through this gateway");
    metrics::describe_gauge!("bowline_event_streams", "Open event streams");
    metrics::describe_counter!("bowline_verdicts_total", "Attaches and resumes, by verdict and reason");
    metrics::describe_counter!("bowline_output_bytes_total", "Bytes relayed from sessions to viewers");
    metrics::describe_counter!("bowline_lagging_snapshots_total", "Snapshots sent to viewers that could not keep up");
    metrics::describe_counter!("bowline_refusals_total", "Refused requests and connections, by problem code");
    metrics::describe_histogram!("bowline_resume_seconds", "Seconds from a hello to its reply");
    *installed = Some(handle.clone());
    Ok(handle)
}

/// How often histogram samples are folded into buckets. Until then every sample is kept in memory.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Bounds the memory of histograms even if `/metrics` is never scraped. Never returns.
pub(crate) async fn run_upkeep(handle: &PrometheusHandle) {
    let mut due = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        due.tick().await;
        handle.run_upkeep();
    }
}

pub(crate) fn refused(code: Code) {
    counter!("bowline_refusals_total", "code" => code.name()).increment(1);
}

pub(crate) fn output(bytes: usize) {
    counter!("bowline_output_bytes_total").increment(bytes as u64);
}

/// Records the reply to a hello; `after` is the time since the hello.
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

/// Records a snapshot for a viewer that could not keep up.
pub(crate) fn lagging() {
    counter!("bowline_lagging_snapshots_total").increment(1);
}

pub(crate) fn sessions(running: usize, exited: usize, lost: usize) {
    for (state, count) in [("running", running), ("exited", exited), ("lost", lost)] {
        gauge!("bowline_sessions", "state" => state).set(count as f64);
    }
}

/// Counts an open stream until it is dropped.
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
