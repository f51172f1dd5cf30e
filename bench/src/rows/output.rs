//! Output: the speed and processor time of printing a large coloured text.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bowline_proto::message::Lag;

use super::{Bench, against_others, printer_script};
use crate::figure::{Budget, Figure, Row, median};
use crate::machine;
use crate::pty::{PtyChild, READ};
use crate::text::{as_printed, coloured, mark};
use crate::viewer::Viewer;

/// Time after the last byte for the session to update and save its screen.
const SETTLE: Duration = Duration::from_millis(400);
/// Rounds for each multiplexer. Fewer than for the rows with a budget.
const MUX_ROUNDS: u32 = 3;

/// The cost of printing the text once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub(super) seconds: f64,
    /// Processor time, in seconds.
    pub(super) cpu: f64,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let text = coloured(bench.pick(100_000_000, 20_000_000));
    let file = bench.file("text", &text)?;
    let printed = as_printed(&text);
    let script = printer_script(&file);
    let program = ["sh", "-c", script.as_str()];

    let bare = PtyChild::spawn(&program, &[])?;
    bare.read_until(b"READY")?;
    let session = bench.bowline.start(&program)?;
    let mut viewer = Viewer::attach_and_wait(&session, Lag::Wait, b"READY")?;
    // The first round is not timed: it checks every byte, and fills the log and the scrollback.
    read_bare(&bare, 1, Some(&printed))?;
    read_viewer(&mut viewer, &[session.pid()], 1, Some(&printed))?;
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    for round in 2..2 + bench.pick(7, 3) {
        bares.push(read_bare(&bare, round, None)?);
        ours.push(read_viewer(&mut viewer, &[session.pid()], round, None)?);
    }
    ensure!(viewer.skipped() == 0, "a viewer with lag `wait` got {} snapshots in place of output", viewer.skipped());
    drop((viewer, session, bare));

    let bytes = printed.len() as f64;
    let speed = |passes: &[Pass]| bytes / 1e6 / median(&passes.iter().map(|p| p.seconds).collect::<Vec<_>>());
    let cpu = |passes: &[Pass]| median(&passes.iter().map(|p| p.cpu).collect::<Vec<_>>()) / (bytes / 1e9);
    let pairs = || bares.iter().zip(&ours);
    let speeds: Vec<f64> = pairs().map(|(bare, ours)| bare.seconds / ours.seconds).collect();
    let cpus: Vec<f64> = pairs().map(|(bare, ours)| ours.cpu / bare.cpu).collect();
    let megabytes = text.len() / 1_000_000;
    let mut rows = vec![
        Row::new(format!("output of {megabytes} MB to a local viewer"), Figure::new(speed(&ours), "MB/s"))
            .against("bare read loop", Figure::new(speed(&bares), "MB/s"))
            .ratio(median(&speeds))
            .budget(Budget::RatioAtLeast(0.65)),
        Row::new("processor time of the session, per GB", Figure::new(cpu(&ours), "s"))
            .against("bare read loop", Figure::new(cpu(&bares), "s"))
            .ratio(median(&cpus))
            .budget(Budget::RatioAtMost(4.5)),
    ];
    rows.extend(in_a_window(bench, &program, bytes)?);
    Ok(rows)
}

/// The same for each multiplexer, in a terminal window. Some may leave out lines that scroll past unseen.
fn in_a_window(bench: &Bench<'_>, program: &[&str], bytes: f64) -> Result<Vec<Row>> {
    let (mut speeds, mut cpus) = (Vec::new(), Vec::new());
    for mux in bench.muxes() {
        let sessions = bench.start_mux(mux, program, 1)?;
        let client = sessions.attach_and_wait(b"READY").with_context(|| bench.name(mux).to_owned())?;
        let mut passes = Vec::new();
        for round in 1..=bench.pick(MUX_ROUNDS, 1) {
            let before = sessions.pids().into_iter().map(machine::cpu).sum::<Result<Duration>>()?;
            let begun = Instant::now();
            client.write(b"\r")?;
            client.read_until(mark(round).as_bytes())?;
            let seconds = begun.elapsed().as_secs_f64();
            std::thread::sleep(SETTLE);
            let after = sessions.pids().into_iter().map(machine::cpu).sum::<Result<Duration>>()?;
            passes.push(Pass { seconds, cpu: (after - before).as_secs_f64() });
        }
        let speed = bytes / 1e6 / median(&passes.iter().map(|pass| pass.seconds).collect::<Vec<_>>());
        let cpu = median(&passes.iter().map(|pass| pass.cpu).collect::<Vec<_>>()) / (bytes / 1e9);
        speeds.push((mux, Figure::new(speed, "MB/s")));
        cpus.push((mux, Figure::new(cpu, "s")));
    }
    let mut rows = against_others("output in a terminal window", &speeds, bench);
    rows.extend(against_others("processor time of the session, per GB", &cpus, bench));
    Ok(rows)
}

/// Reads one round directly from a PTY. The processor time is that of this thread.
pub(super) fn read_bare(pty: &PtyChild, round: u32, expected: Option<&[u8]>) -> Result<Pass> {
    let mark = mark(round);
    let (mut buf, mut end) = (vec![0; READ], EndDetector::new(&mark, expected));
    let (begun, cpu) = (Instant::now(), machine::own_cpu());
    pty.write(b"\n")?;
    while !end.reached {
        let n = pty.read(&mut buf)?;
        end.take(&buf[..n]);
    }
    let pass = Pass { seconds: begun.elapsed().as_secs_f64(), cpu: (machine::own_cpu() - cpu).as_secs_f64() };
    end.check()?;
    Ok(pass)
}

/// Reads one round as a viewer. The processor time is that of the processes `pids`, including the update of the screen.
pub(super) fn read_viewer(viewer: &mut Viewer, pids: &[u32], round: u32, expected: Option<&[u8]>) -> Result<Pass> {
    let mark = mark(round);
    let mut end = EndDetector::new(&mark, expected);
    let spent = || pids.iter().map(|pid| machine::cpu(*pid)).sum::<Result<Duration>>();
    let (begun, cpu) = (Instant::now(), spent()?);
    viewer.write(b"\n")?;
    while !end.reached {
        viewer.receive(|bytes| end.take(bytes))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    std::thread::sleep(SETTLE);
    end.check()?;
    Ok(Pass { seconds, cpu: (spent()? - cpu).as_secs_f64() })
}

/// Detects the mark at the end of a round at little cost: the mark must be the last thing received.
struct EndDetector<'a> {
    mark: &'a [u8],
    tail: Vec<u8>,
    reached: bool,
    /// The rest of the expected text, if the text is compared.
    expected: Option<&'a [u8]>,
    differs: bool,
}

impl<'a> EndDetector<'a> {
    fn new(mark: &'a str, expected: Option<&'a [u8]>) -> EndDetector<'a> {
        EndDetector { mark: mark.as_bytes(), tail: Vec::new(), reached: false, expected, differs: false }
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some(expected) = self.expected {
            let n = bytes.len().min(expected.len());
            self.differs |= bytes[..n] != expected[..n];
            self.expected = Some(&expected[n..]);
        }
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(self.mark.len())..]);
        let old = self.tail.len().saturating_sub(self.mark.len());
        self.tail.drain(..old);
        self.reached = self.tail == self.mark;
    }

    fn check(&self) -> Result<()> {
        ensure!(
            !self.differs && self.expected.is_none_or(<[u8]>::is_empty),
            "the received text differs from the printed one"
        );
        Ok(())
    }
}
