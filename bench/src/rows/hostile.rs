//! What the owner notices of hostile clients: the time of a list, an attach, an echo and an event while they attack, and
//! the memory that is left when they are gone.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bowline_proto::message::Lag;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Bench, ECHO};
use crate::attack::Class;
use crate::cleanup::Process;
use crate::figure::{Budget, Figure, Row, median, quantile};
use crate::gateway::Gateway;
use crate::machine;
use crate::session::{Bowline, Session};
use crate::text::coloured;
use crate::viewer::Viewer;

/// How much slower everything may be for the owner during an attack.
const MAX_SLOWDOWN: f64 = 3.0;
/// How much memory an attack may leave behind, in MiB.
const MAX_LEFT: f64 = 32.0;
/// How long the memory may take to return after an attack.
const SETTLE: Duration = Duration::from_secs(20);
/// The pause between two measurements of the owner.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes on each screen of the session that is attacked.
const SCREEN: usize = 400_000;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (class, name) in [(Class::Stranger, "strangers"), (Class::Reader, "readers"), (Class::Writer, "writers")] {
        rows.extend(under_attack(bench, class, name).with_context(|| format!("attacked by {name}"))?);
    }
    Ok(rows)
}

fn under_attack(bench: &Bench<'_>, class: Class, name: &str) -> Result<Vec<Row>> {
    let bowline = bench.bowline.with_state_dir(name);
    let gateway = Gateway::start(&bowline)?;
    let text = bench.file("hostile-text", &coloured(SCREEN))?;
    let printer = format!("cat {}; while :; do date; sleep 0.1; done", text.display());
    let session = bowline.start(&["sh", "-c", &printer])?;
    let stubborn = bowline.start(&["sh", "-c", "trap '' HUP; printf READY; while :; do sleep 1; done"])?;
    Viewer::attach_and_wait(&stubborn, Lag::Skip, b"READY")?;
    let stopped = bowline.start(&ECHO)?;
    let own = bowline.start(&ECHO)?;
    let mut owner = Owner::new(&gateway, &own)?;

    let time = Duration::from_secs(bench.pick(60, 5));
    let calm = owner.measure_for(time / 4)?;
    let pids = [gateway.pid(), session.pid()];
    let memory = || pids.iter().map(|pid| Ok(machine::rss(*pid)? as f64 / 1024.0)).collect::<Result<Vec<f64>>>();
    let before = memory()?;
    let growth =
        || Ok::<_, anyhow::Error>(memory()?.iter().zip(&before).map(|(now, before)| now - before).collect::<Vec<_>>());
    let frozen = Frozen::stop(stopped.pid())?;
    let attack = Attackers::start(&bowline, class, &gateway, [&session, &stubborn, &stopped])?;
    let attacked = owner.measure_for(time)?;
    let during = growth()?;
    let made = attack.end()?;
    drop(frozen);
    std::thread::sleep(SETTLE);
    let left = growth()?;

    ensure!(calm.failed == 0, "the owner was refused without an attack");
    let mut rows = vec![
        Row::new(
            format!("{name}: requests and connections in {} s", time.as_secs()),
            Figure::new(made as f64, "in all"),
        ),
        Row::new(format!("{name}: calls of the owner that failed"), Figure::new(attacked.failed as f64, "in all"))
            .budget(Budget::AtMost(0.0)),
    ];
    for ((what, calm), (_, attacked)) in calm.all().into_iter().zip(attacked.all()) {
        rows.push(
            Row::new(format!("{name}: {what} meanwhile"), Figure::new(median(attacked), "ms"))
                .against("without them", Figure::new(median(calm), "ms"))
                .budget(Budget::RatioAtMost(MAX_SLOWDOWN)),
        );
        rows.push(Row::new(format!("{name}: {what}, p99"), Figure::new(quantile(attacked, 0.99), "ms")));
    }
    for (n, process) in ["gateway", "session"].into_iter().enumerate() {
        let what = format!("{name}: memory of the {process}, more than before");
        rows.push(Row::new(what, Figure::new(during[n], "MiB")));
    }
    rows.push(
        Row::new(format!("{name}: both together, 20 s after they are gone"), Figure::new(left.iter().sum(), "MiB"))
            .budget(Budget::AtMost(MAX_LEFT)),
    );
    Ok(rows)
}

/// The owner of the gateway, at work in a session of its own.
struct Owner<'a> {
    gateway: &'a Gateway,
    session: &'a Session,
    viewer: Viewer,
    events: Events,
    renames: u32,
}

/// Milliseconds of each measurement, and how many failed.
#[derive(Default)]
struct Times {
    list: Vec<f64>,
    attach: Vec<f64>,
    echo: Vec<f64>,
    event: Vec<f64>,
    failed: usize,
}

impl Times {
    fn all(&self) -> [(&'static str, &[f64]); 4] {
        [("list", &self.list), ("attach", &self.attach), ("echo", &self.echo), ("event after a rename", &self.event)]
    }

    /// Measures everything once.
    fn add(&mut self, owner: &mut Owner<'_>) -> Result<()> {
        self.list.push(timed(|| owner.list())?);
        self.attach.push(timed(|| owner.attach().map(drop))?);
        self.echo.push(timed(|| owner.type_key())?);
        self.event.push(timed(|| owner.rename())?);
        Ok(())
    }
}

impl<'a> Owner<'a> {
    fn new(gateway: &'a Gateway, session: &'a Session) -> Result<Owner<'a>> {
        let viewer = Viewer::attach_and_wait(&gateway.route_to(session), Lag::Skip, b"READY")?;
        Ok(Owner { gateway, session, viewer, events: Events::open(gateway)?, renames: 0 })
    }

    fn measure_for(&mut self, time: Duration) -> Result<Times> {
        let (until, mut times) = (Instant::now() + time, Times::default());
        while Instant::now() < until {
            if let Err(error) = times.add(self) {
                if times.failed == 0 {
                    eprintln!("  the owner was refused: {error:#}");
                }
                times.failed += 1;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(times)
    }

    fn list(&self) -> Result<()> {
        let (status, body) = self.gateway.call("GET", "/v1/sessions", "")?;
        ensure!(status == 200 && body.contains(&self.session.id), "the list is {status} {body}");
        Ok(())
    }

    fn attach(&self) -> Result<Viewer> {
        Ok(Viewer::attach(&self.gateway.route_to(self.session), Lag::Skip, 0)?.0)
    }

    /// Types a key and waits for its echo.
    fn type_key(&mut self) -> Result<()> {
        self.viewer.drain()?;
        self.viewer.write(b"Q")?;
        self.viewer.read_until(b"Q").map(drop)
    }

    /// Renames the owner's session, and waits for the event that says so.
    fn rename(&mut self) -> Result<()> {
        self.renames += 1;
        let name = format!("own-{}", self.renames);
        let path = format!("/v1/sessions/{}", self.session.id);
        let (status, body) = self.gateway.call("PATCH", &path, &json!({"name": name}).to_string())?;
        ensure!(status == 200, "the rename is {status} {body}");
        self.events.wait_for(&self.session.id, &name)
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// An event stream (SSE) of the owner.
struct Events {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Events {
    fn open(gateway: &Gateway) -> Result<Events> {
        let stream = gateway.request("GET", "/v1/events", "")?;
        Ok(Events { lines: BufReader::new(stream).lines() })
    }

    /// Reads until a session has a name.
    fn wait_for(&mut self, id: &str, name: &str) -> Result<()> {
        for line in &mut self.lines {
            let line = line?;
            let Some(message) = line.strip_prefix("data:") else { continue };
            let message: Value = serde_json::from_str(message.trim())?;
            if message["session"]["id"] == id && message["session"]["name"] == name {
                return Ok(());
            }
        }
        bail!("the event stream ended")
    }
}

/// The process of the hostile clients; dropping it ends them.
struct Attackers {
    child: Child,
    _process: Process,
}

impl Attackers {
    fn start(bowline: &Bowline, class: Class, gateway: &Gateway, sessions: [&Session; 3]) -> Result<Attackers> {
        let (class, token) = match class {
            Class::Stranger => ("stranger", String::new()),
            Class::Reader => ("reader", bowline.new_token("read")?),
            Class::Writer => ("writer", bowline.new_token("write")?),
        };
        let child = Command::new(std::env::current_exe()?)
            .args(["attack", class, &gateway.address().to_string()])
            .args(sessions.map(|session| session.id.as_str()))
            .env("BOWLINE_TOKEN", token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let _process = Process::adopt(child.id())?;
        Ok(Attackers { child, _process })
    }

    /// Ends the attack. Returns how many requests and connections were made.
    fn end(mut self) -> Result<u64> {
        drop(self.child.stdin.take());
        let mut made = String::new();
        self.child.stdout.take().context("no stdout")?.read_to_string(&mut made)?;
        self.child.wait()?;
        made.trim().parse().context("the attack ended early")
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stopped process, which continues on drop.
struct Frozen(Pid);

impl Frozen {
    fn stop(pid: u32) -> Result<Frozen> {
        let pid = Pid::from_raw(pid as i32).context("process id 0 is not valid")?;
        kill_process(pid, Signal::STOP)?;
        Ok(Frozen(pid))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}
