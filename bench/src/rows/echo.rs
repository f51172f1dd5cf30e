//! Echo: the time from typing a key until the viewer receives it back from a program that echoes every byte.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bowline_proto::message::Lag;

use super::{Bench, ECHO, against_others, micros};
use crate::figure::{Budget, Figure, Row, median, quantile};
use crate::gateway::Gateway;
use crate::mux::{Mux, MuxSessions};
use crate::pty::{PtyChild, READ, SILENCE, is_readable};
use crate::relay::Relay;
use crate::session::Session;
use crate::viewer::Viewer;

/// The pause between two keys. Shorter than a typist's, but long enough for all work caused by a key.
const PAUSE: Duration = Duration::from_millis(3);
/// Keys that do not occur in the escape sequences of a redraw.
const KEYS: [u8; 6] = *b"QWVYNU";

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut typists = vec![Typist::relay(bench)?, Typist::viewer(bench)?];
    for mux in bench.muxes() {
        typists.push(Typist::mux(bench, mux)?);
    }
    let rounds = bench.pick(7, 3);
    let keys = bench.pick(400, 60);
    let times = type_in_turn(&mut typists, rounds, keys)?;
    let (relay, ours) = (&times[0], &times[1]);
    let mut rows = Vec::new();
    for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
        let of = |rounds: &[Vec<f64>]| rounds.iter().map(|samples| quantile(samples, q)).collect::<Vec<f64>>();
        let (relay, ours) = (of(relay), of(ours));
        let ratios: Vec<f64> = ours.iter().zip(&relay).map(|(ours, relay)| ours / relay).collect();
        rows.push(
            Row::new(format!("echo of a key, {name}"), Figure::new(median(&ours), "µs"))
                .against("bare relay", Figure::new(median(&relay), "µs"))
                .ratio(median(&ratios))
                .budget(Budget::RatioAtMost(1.4)),
        );
        let figure =
            |(typist, rounds): (&Typist, &Vec<Vec<f64>>)| Some((typist.mux?, Figure::new(median(&of(rounds)), "µs")));
        let muxes: Vec<_> = typists.iter().zip(&times).filter_map(figure).collect();
        rows.extend(against_others(&format!("echo in a terminal window, {name}"), &muxes, bench));
    }
    Ok(rows)
}

/// Types one key in each terminal in turn, so that a disturbance of the machine affects all of them. Returns microseconds
/// by typist, round and key.
pub(super) fn type_in_turn(typists: &mut [Typist], rounds: usize, keys: usize) -> Result<Vec<Vec<Vec<f64>>>> {
    let mut times = vec![Vec::with_capacity(rounds); typists.len()];
    for _ in 0..rounds {
        let mut round = vec![Vec::with_capacity(keys); typists.len()];
        for n in 0..keys {
            for turn in 0..typists.len() {
                let typist = (turn + n) % typists.len();
                std::thread::sleep(PAUSE);
                let took = typists[typist].key(KEYS[n % KEYS.len()])?;
                round[typist].push(micros(took));
            }
        }
        times.iter_mut().zip(round).for_each(|(times, round)| times.push(round));
    }
    Ok(times)
}

/// Types keys in a terminal with the program [`ECHO`].
pub(super) struct Typist {
    mux: Option<Mux>,
    terminal: Terminal,
    /// Held because it must outlive the terminal.
    _session: Option<Session>,
    /// Held because they must outlive the terminal.
    _mux_sessions: Option<MuxSessions>,
}

enum Terminal {
    Relay(Relay),
    Bare(PtyChild),
    Viewer(Box<Viewer>),
    /// The client of a multiplexer.
    Mux(PtyChild),
}

impl Typist {
    pub(super) fn relay(bench: &Bench<'_>) -> Result<Typist> {
        let terminal = Terminal::Relay(Relay::start(bench.dir, &ECHO)?);
        let mut typist = Typist { mux: None, terminal, _session: None, _mux_sessions: None };
        typist.wait_for(b'Y')?; // the last letter of READY
        Ok(typist)
    }

    /// The baseline of the gateway: two processes that copy.
    pub(super) fn relay_over_tcp(bench: &Bench<'_>) -> Result<Typist> {
        let terminal = Terminal::Relay(Relay::start_over_tcp(bench.dir, &ECHO)?);
        let mut typist = Typist { mux: None, terminal, _session: None, _mux_sessions: None };
        typist.wait_for(b'Y')?;
        Ok(typist)
    }

    /// A PTY, read and written directly.
    pub(super) fn bare() -> Result<Typist> {
        let terminal = Terminal::Bare(PtyChild::spawn(&ECHO, &[])?);
        let mut typist = Typist { mux: None, terminal, _session: None, _mux_sessions: None };
        typist.wait_for(b'Y')?;
        Ok(typist)
    }

    /// Through a gateway.
    pub(super) fn web(bench: &Bench<'_>, gateway: &Gateway) -> Result<Typist> {
        let session = bench.bowline.start(&ECHO)?;
        let viewer = Viewer::attach_and_wait(&gateway.route_to(&session), Lag::Skip, b"READY")?;
        let terminal = Terminal::Viewer(Box::new(viewer));
        Ok(Typist { mux: None, terminal, _session: Some(session), _mux_sessions: None })
    }

    pub(super) fn viewer(bench: &Bench<'_>) -> Result<Typist> {
        let session = bench.bowline.start(&ECHO)?;
        let viewer = Viewer::attach_and_wait(&session, Lag::Skip, b"READY")?;
        let terminal = Terminal::Viewer(Box::new(viewer));
        Ok(Typist { mux: None, terminal, _session: Some(session), _mux_sessions: None })
    }

    fn mux(bench: &Bench<'_>, mux: Mux) -> Result<Typist> {
        let sessions = bench.start_mux(mux, &ECHO, 1)?;
        let client = sessions.attach_and_wait(b"READY").with_context(|| bench.name(mux).to_owned())?;
        Ok(Typist { mux: Some(mux), terminal: Terminal::Mux(client), _session: None, _mux_sessions: Some(sessions) })
    }

    /// Types a key and waits for its echo.
    fn key(&mut self, key: u8) -> Result<Duration> {
        self.drain()?;
        let begun = Instant::now();
        match &mut self.terminal {
            Terminal::Relay(relay) => relay.stream.write_all(&[key])?,
            Terminal::Viewer(viewer) => viewer.write(&[key])?,
            Terminal::Mux(client) | Terminal::Bare(client) => client.write(&[key])?,
        }
        self.wait_for(key)?;
        Ok(begun.elapsed())
    }

    /// Discards earlier output, which could be mistaken for the next echo.
    fn drain(&mut self) -> Result<()> {
        let mut buf = [0; 4096];
        match &mut self.terminal {
            Terminal::Relay(_) | Terminal::Bare(_) => {}
            Terminal::Viewer(viewer) => viewer.drain()?,
            Terminal::Mux(client) => {
                while is_readable(client.as_fd(), Duration::ZERO) {
                    client.read(&mut buf)?;
                }
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, key: u8) -> Result<()> {
        let mut buf = [0; READ];
        let mut found = false;
        while !found {
            match &mut self.terminal {
                Terminal::Relay(relay) => {
                    let n = relay.stream.read(&mut buf)?;
                    found = buf[..n].contains(&key);
                    if n == 0 {
                        bail!("the relay ended");
                    }
                }
                Terminal::Viewer(viewer) => viewer.receive(|bytes| found |= bytes.contains(&key))?,
                Terminal::Bare(pty) => {
                    let n = pty.read(&mut buf)?;
                    found = buf[..n].contains(&key);
                }
                Terminal::Mux(client) => {
                    if !is_readable(client.as_fd(), SILENCE) {
                        bail!("no echo for {SILENCE:?}");
                    }
                    let n = client.read(&mut buf)?;
                    found = buf[..n].contains(&key);
                }
            }
        }
        Ok(())
    }
}
