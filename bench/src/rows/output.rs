//! Output: how fast a large coloured text comes through, and what processor time that costs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bowline_proto::message::Lag;

use super::{Bench, beside_others, printer};
use crate::figure::{Budget, Figure, Row, median};
use crate::machine;
use crate::mux::Mux;
use crate::pty::{PtyChild, READ};
use crate::text::{as_printed, coloured, mark};
use crate::viewer::Viewer;

/// After the last byte: until the screen has caught up and is saved.
const SETTLED: Duration = Duration::from_millis(400);
/// Rounds of what is shown in a terminal window; these are only there to compare.
const SHOWN_ROUNDS: u32 = 3;

/// One pass of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub(super) seconds: f64,
    pub(super) cpu: f64,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let text = coloured(bench.pick(100_000_000, 20_000_000));
    let file = bench.file("text", &text)?;
    let printed = as_printed(&text);
    let script = printer(&file);
    let program = ["sh", "-c", script.as_str()];

    let bare = PtyChild::spawn(&program, &[])?;
    bare.read_until(b"READY")?;
    let session = bench.bowline.start(&program)?;
    let mut viewer = Viewer::attach_at(&session, Lag::Wait, b"READY")?;
    // The first round is not timed: it shows that every byte comes, and fills the log and the history.
    read_bare(&bare, 1, Some(&printed))?;
    read_viewer(&mut viewer, &[session.pid()], 1, Some(&printed))?;
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    for round in 2..2 + bench.pick(7, 3) {
        bares.push(read_bare(&bare, round, None)?);
        ours.push(read_viewer(&mut viewer, &[session.pid()], round, None)?);
    }
    ensure!(viewer.skipped() == 0, "the log overtook a viewer that waits, {} times", viewer.skipped());
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
            .beside("bare read loop", Figure::new(speed(&bares), "MB/s"))
            .ratio(median(&speeds))
            .budget(Budget::RatioAtLeast(0.65)),
        Row::new("processor time of the session, per GB", Figure::new(cpu(&ours), "s"))
            .beside("bare read loop", Figure::new(cpu(&bares), "s"))
            .ratio(median(&cpus))
            .budget(Budget::RatioAtMost(4.5)),
    ];
    rows.extend(shown(bench, &program, bytes)?);
    Ok(rows)
}

/// The same in a terminal window, where the others may leave out what would scroll past unseen.
fn shown(bench: &Bench<'_>, program: &[&str], bytes: f64) -> Result<Vec<Row>> {
    let (mut speeds, mut cpus) = (Vec::new(), Vec::new());
    for mux in bench.muxes() {
        let kept = bench.keep(mux, program, 1)?;
        let client = kept.attach_at(b"READY").with_context(|| bench.name(mux).to_owned())?;
        let mut passes = Vec::new();
        for round in 1..=bench.pick(SHOWN_ROUNDS, 1) {
            let before = kept.pids().into_iter().map(machine::cpu).sum::<Result<Duration>>()?;
            let begun = Instant::now();
            client.write(b"\r")?;
            client.read_until(mark(round).as_bytes())?;
            let seconds = begun.elapsed().as_secs_f64();
            std::thread::sleep(SETTLED);
            let after = kept.pids().into_iter().map(machine::cpu).sum::<Result<Duration>>()?;
            passes.push(Pass { seconds, cpu: (after - before).as_secs_f64() });
        }
        let speed = bytes / 1e6 / median(&passes.iter().map(|pass| pass.seconds).collect::<Vec<_>>());
        let cpu = median(&passes.iter().map(|pass| pass.cpu).collect::<Vec<_>>()) / (bytes / 1e9);
        speeds.push((mux, Figure::new(speed, "MB/s")));
        cpus.push((mux, Figure::new(cpu, "s")));
    }
    let mut rows = beside_others("output in a terminal window", &speeds, bench);
    let holders: Vec<(Mux, Figure)> = cpus;
    rows.extend(beside_others("processor time of the session, per GB", &holders, bench));
    Ok(rows)
}

/// Reads one round directly; the processor time is this thread's.
pub(super) fn read_bare(pty: &PtyChild, round: u32, expected: Option<&[u8]>) -> Result<Pass> {
    let mark = mark(round);
    let (mut buf, mut end) = (vec![0; READ], End::new(&mark, expected));
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

/// Reads one round as a viewer; the processor time is that of all these processes, the screen's included.
pub(super) fn read_viewer(viewer: &mut Viewer, pids: &[u32], round: u32, expected: Option<&[u8]>) -> Result<Pass> {
    let mark = mark(round);
    let mut end = End::new(&mark, expected);
    let spent = || pids.iter().map(|pid| machine::cpu(*pid)).sum::<Result<Duration>>();
    let (begun, cpu) = (Instant::now(), spent()?);
    viewer.write(b"\n")?;
    while !end.reached {
        viewer.receive(|bytes| end.take(bytes))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    std::thread::sleep(SETTLED);
    end.check()?;
    Ok(Pass { seconds, cpu: (spent()? - cpu).as_secs_f64() })
}

/// Notices the end of a round, which is the end of what came, at hardly any cost.
struct End<'a> {
    mark: &'a [u8],
    tail: Vec<u8>,
    reached: bool,
    /// What is still to come before the mark, where that is looked at.
    expected: Option<&'a [u8]>,
    differs: bool,
}

impl<'a> End<'a> {
    fn new(mark: &'a str, expected: Option<&'a [u8]>) -> End<'a> {
        End { mark: mark.as_bytes(), tail: Vec::new(), reached: false, expected, differs: false }
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
        ensure!(!self.differs && self.expected.is_none_or(<[u8]>::is_empty), "the text did not come as it was printed");
        Ok(())
    }
}
