//! Reads what the agent prints: its messages, and its standard error as notices.

use std::time::{Duration, Instant};

use bowline_proto::agent::event::{AgentEvent, Level};

use super::super::core::Core;
use super::Agent;
use super::program::{PipeRead, STDERR, STDOUT};
use crate::agent::{MAX_LINE, ReadLine, plain_text};

/// Bytes that are read at a time, before viewers and others get their turn.
const READ: usize = 64 << 10;
/// The most bytes that are read of a program that has exited; processes that it left behind may go on printing.
const MAX_REST: usize = 4 << 20;
/// The most bytes of a line of standard error in a notice.
const MAX_ERROR_LINE: usize = 4 << 10;
/// The most notices of standard error in one second. The rest are counted.
const MAX_NOTICES: u32 = 20;

/// Limits the notices of standard error.
#[derive(Debug)]
pub(super) struct ErrorNotices {
    second: Instant,
    count: u32,
    suppressed: u32,
}

impl ErrorNotices {
    pub(super) fn new(now: Instant) -> ErrorNotices {
        ErrorNotices { second: now, count: 0, suppressed: 0 }
    }

    /// A notice of this line, unless there are too many.
    pub(super) fn handle_line(&mut self, line: &[u8], now: Instant) -> Option<AgentEvent> {
        if now >= self.second + Duration::from_secs(1) && self.suppressed == 0 {
            (self.second, self.count) = (now, 0);
        }
        self.count += 1;
        if self.count > MAX_NOTICES {
            self.suppressed += 1;
            return None;
        }
        let text = plain_text(line, MAX_ERROR_LINE);
        (!text.trim().is_empty()).then_some(AgentEvent::Notice { level: Level::Info, text })
    }

    /// Once the second is over, a notice of how many lines were suppressed in it.
    pub(super) fn take_suppressed(&mut self, now: Instant) -> Option<AgentEvent> {
        if self.suppressed == 0 || now < self.second + Duration::from_secs(1) {
            return None;
        }
        let text = format!("{} more lines that are not messages were left out", self.suppressed);
        *self = ErrorNotices::new(now);
        Some(AgentEvent::Notice { level: Level::Info, text })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.second + Duration::from_secs(1))
    }
}

impl Agent {
    /// Reads messages of the agent, once.
    pub(super) fn read_output(&mut self, core: &mut Core) {
        if self.is_stuck() {
            return;
        }
        let mut buf = vec![0; READ];
        self.read_messages(core, &mut buf);
        self.check_pipes(core);
    }

    /// Reads what a program that has exited still has in its pipes.
    pub(super) fn read_rest(&mut self, core: &mut Core) {
        let mut buf = vec![0; READ];
        let mut total = 0;
        while let PipeRead::Data(n) = self.read_messages(core, &mut buf) {
            total += n;
            if total > MAX_REST {
                break;
            }
        }
        // A last line without its end is not a message, but people may want to see it.
        let rest = self.program.as_mut().map(|program| program.lines.take_rest()).unwrap_or_default();
        if !rest.is_empty() {
            let text = format!("the agent's last line was cut off: {}", plain_text(&rest, MAX_ERROR_LINE));
            self.append_later(AgentEvent::Notice { level: Level::Warning, text });
        }
        while let PipeRead::Data(n) = self.read_error_lines(core, &mut buf) {
            total += n;
            if total > MAX_REST {
                break;
            }
        }
        let rest = self.program.as_mut().map(|program| program.error_lines.take_rest()).unwrap_or_default();
        if !rest.is_empty() {
            let notice = self.error_notices.handle_line(&rest, Instant::now());
            notice.into_iter().for_each(|notice| self.append_later(notice));
        }
    }

    /// Reads once from standard output, and passes whole lines to the adapter.
    fn read_messages(&mut self, core: &mut Core, buf: &mut [u8]) -> PipeRead {
        let Some(program) = &mut self.program else { return PipeRead::Closed };
        let read = program.read(core, STDOUT, buf);
        if let PipeRead::Data(n) = read {
            let mut lines = std::mem::take(&mut program.lines);
            self.runs.handle_activity(core.now());
            lines.handle_bytes(buf.get(..n).unwrap_or_default(), |line| match line {
                ReadLine::Line(line) => {
                    if let Some(adapter) = &mut self.adapter {
                        adapter.handle_line(line);
                    }
                    // What the next line means may depend on what follows from this one.
                    self.handle_news(core);
                }
                ReadLine::Skipped(bytes) => {
                    let text = format!("a line of {bytes} bytes was skipped (limit {MAX_LINE})");
                    self.unmerged.push(AgentEvent::Notice { level: Level::Warning, text });
                }
            });
            if let Some(program) = &mut self.program {
                program.lines = lines;
            }
            self.queue_unmerged();
        }
        read
    }

    /// Reads standard error, once.
    pub(super) fn read_errors(&mut self, core: &mut Core) {
        if self.is_stuck() {
            return;
        }
        let mut buf = vec![0; READ];
        self.read_error_lines(core, &mut buf);
    }

    fn read_error_lines(&mut self, core: &mut Core, buf: &mut [u8]) -> PipeRead {
        let Some(program) = &mut self.program else { return PipeRead::Closed };
        let read = program.read(core, STDERR, buf);
        if let PipeRead::Data(n) = read {
            let now = Instant::now();
            self.runs.handle_activity(core.now());
            let (notices, mut lines) = (&mut self.error_notices, Vec::new());
            program.error_lines.handle_bytes(buf.get(..n).unwrap_or_default(), |line| {
                let line = if let ReadLine::Line(line) = line { line } else { &b"(a very long line)"[..] };
                lines.extend(notices.handle_line(line, now));
            });
            lines.into_iter().for_each(|notice| self.append_later(notice));
        }
        read
    }
}
