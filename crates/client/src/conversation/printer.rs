//! What is on its way to the terminal: final lines and the live rows. A terminal that accepts no bytes for a while, such as
//! one behind a stalled `ssh`, delays them and nothing else.

use std::collections::VecDeque;
use std::io;

use super::live_area::LiveArea;
use super::view::LiveRows;

/// Bytes that wait for the terminal. When there are more, no events are taken from the session.
const MAX_WAITING: usize = 256 << 10;
/// What a line that waits takes besides its bytes: its place in the list, and its allocation.
const LINE_OVERHEAD: usize = 32;
/// An empty queue with a larger capacity than this is freed.
const MAX_IDLE_QUEUE: usize = 64 << 10;

/// Lines and rows for a terminal. No IO: [`flush`](Printer::flush) is told how to write.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    area: LiveArea,
    /// Final lines that are not in the queue yet, and the bytes that they take.
    lines: Vec<String>,
    line_bytes: usize,
    /// Bytes that the terminal has not accepted yet.
    queue: VecDeque<u8>,
}

impl Printer {
    /// Takes a final line. It is printed with the next painting.
    pub(crate) fn push_line(&mut self, line: String) {
        self.line_bytes += line.len() + LINE_OVERHEAD;
        self.lines.push(line);
    }

    /// Whether no more lines should come until the terminal has accepted some.
    pub(crate) fn is_full(&self) -> bool {
        self.line_bytes + self.queue.len() > MAX_WAITING
    }

    /// Whether output still waits for the terminal. Until it is written, nothing is painted, since newer rows would only
    /// wait behind it.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Queues the lines, and the live rows below them.
    pub(crate) fn paint(&mut self, live: LiveRows, columns: usize) {
        self.line_bytes = 0;
        let lines = std::mem::take(&mut self.lines);
        self.queue.extend(self.area.paint(&lines, live.rows, live.cursor, columns));
    }

    /// Queues bytes, which change no row.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.queue.extend(bytes);
    }

    /// Queues bytes after which the terminal shows something else than the live rows.
    pub(crate) fn start_over(&mut self, bytes: &[u8]) {
        self.area.forget();
        self.put(bytes);
    }

    /// Writes as much as the terminal accepts. `write` returns how many bytes it took.
    pub(crate) fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        while !self.queue.is_empty() {
            let written = write(self.queue.as_slices().0)?;
            if written == 0 {
                return Ok(());
            }
            self.queue.drain(..written);
        }
        if self.queue.capacity() > MAX_IDLE_QUEUE {
            self.queue = VecDeque::new();
        }
        Ok(())
    }

    /// The bytes that are left, and those that print the remaining lines in the place of the live rows.
    pub(crate) fn finish(mut self, columns: usize) -> Vec<u8> {
        let mut out = Vec::from(self.queue);
        out.extend(self.area.clear(columns));
        for line in self.lines {
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use bowline_proto::size::Size;
    use bowline_session::screen::Screen;

    use super::*;

    fn live(row: &str) -> LiveRows {
        LiveRows { rows: vec![row.to_owned()], cursor: (0, 0) }
    }

    /// A terminal that accepts this many bytes at most.
    fn accept<'a>(shown: &'a mut Vec<u8>, mut room: usize) -> impl FnMut(&[u8]) -> io::Result<usize> + 'a {
        move |bytes| {
            let taken = bytes.len().min(room);
            shown.extend_from_slice(&bytes[..taken]);
            room -= taken;
            Ok(taken)
        }
    }

    #[test]
    fn empty_lines_that_wait_are_bounded() {
        let mut printer = Printer::default();
        let count = (0..MAX_WAITING).take_while(|_| {
            printer.push_line(String::new());
            !printer.is_full()
        });
        assert_eq!(count.count(), MAX_WAITING / LINE_OVERHEAD);
        printer.paint(live("> "), 30);
        printer.put(&[b' '; MAX_WAITING]);
        assert!(printer.is_full(), "bytes in the queue count, too");
    }

    #[test]
    fn a_terminal_that_stalls_gets_everything_later_and_bounds_what_waits() {
        let (mut printer, mut shown) = (Printer::default(), Vec::new());
        printer.push_line("first".to_owned());
        printer.paint(live("> "), 30);
        printer.flush(accept(&mut shown, 3)).unwrap();
        assert!(printer.is_waiting() && !printer.is_full());
        let mut count = 0;
        while !printer.is_full() {
            printer.push_line(format!("line {count}"));
            count += 1;
        }
        assert!(count > 1000, "{count}");
        printer.flush(accept(&mut shown, usize::MAX)).unwrap();
        assert!(!printer.is_waiting());
        printer.paint(live("> x"), 30);
        assert!(printer.is_waiting(), "until the terminal has them");
        while printer.is_waiting() {
            printer.flush(accept(&mut shown, 1000)).unwrap();
        }
        assert!(!printer.is_full() && printer.queue.capacity() <= MAX_IDLE_QUEUE);
        let mut screen = Screen::new(Size::new(30, 10).unwrap(), 1 << 20);
        screen.advance(&shown);
        let lines: Vec<String> = (0..count).map(|line| format!("line {line}")).collect();
        assert_eq!(screen.text(1 << 20).trim_end(), format!("first\n{}\n> x", lines.join("\n")));
    }

    #[test]
    fn what_is_left_is_printed_at_the_end_without_the_live_rows() {
        let (mut printer, mut shown) = (Printer::default(), Vec::new());
        printer.push_line("one".to_owned());
        printer.paint(live("> draft"), 30);
        printer.flush(accept(&mut shown, 10)).unwrap();
        printer.push_line("two".to_owned());
        shown.extend(printer.finish(30));
        let mut screen = Screen::new(Size::new(30, 10).unwrap(), 100);
        screen.advance(&shown);
        assert_eq!(screen.text(100).trim_end(), "one\ntwo");
    }

    #[test]
    fn an_error_of_the_terminal_is_returned() {
        let mut printer = Printer::default();
        printer.put(b"x");
        assert!(printer.flush(|_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
    }
}
