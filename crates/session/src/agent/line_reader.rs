//! Splits what an agent prints into lines of a bounded length.

/// The longest line in bytes, with the carriage return before its line break. A longer one is skipped.
pub const MAX_LINE: usize = 8 << 20;

/// A line, or the end of one that was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadLine<'a> {
    /// Without its line break.
    Line(&'a [u8]),
    /// A line of this many bytes was skipped.
    Skipped(u64),
}

/// Collects bytes until a line is complete.
#[derive(Debug, Default)]
pub struct LineReader {
    /// The beginning of a line.
    partial: Vec<u8>,
    /// The bytes of a line that is too long, so far.
    skipping: Option<u64>,
}

impl LineReader {
    /// Passes each line that these bytes complete to `each`. Empty lines are left out.
    pub fn handle_bytes(&mut self, mut bytes: &[u8], mut each: impl FnMut(ReadLine<'_>)) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default());
            bytes = rest;
            if let Some(skipped) = self.skipping.take() {
                each(ReadLine::Skipped(skipped + line.len() as u64));
            } else if self.partial.is_empty() {
                emit(line, &mut each);
            } else {
                self.partial.extend_from_slice(line);
                let whole = std::mem::take(&mut self.partial);
                emit(&whole, &mut each);
            }
        }
        if let Some(skipped) = &mut self.skipping {
            *skipped += bytes.len() as u64;
            return;
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > MAX_LINE {
            self.skipping = Some(self.partial.len() as u64);
            self.partial = Vec::new();
        }
    }

    /// What came after the last line break, once there is nothing more.
    pub fn take_rest(&mut self) -> Vec<u8> {
        self.skipping = None;
        std::mem::take(&mut self.partial)
    }
}

fn emit(line: &[u8], each: &mut impl FnMut(ReadLine<'_>)) {
    if line.len() > MAX_LINE {
        return each(ReadLine::Skipped(line.len() as u64));
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.is_empty() {
        each(ReadLine::Line(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut reader, mut found) = (LineReader::default(), Vec::new());
        for chunk in chunks {
            reader.handle_bytes(chunk, |line| match line {
                ReadLine::Line(line) => found.push(String::from_utf8_lossy(line).into_owned()),
                ReadLine::Skipped(bytes) => found.push(format!("skipped {bytes}")),
            });
        }
        found
    }

    #[test]
    fn lines_are_the_same_wherever_the_reads_end() {
        let all = b"{\"a\":1}\n\nx\r\n{\"b\":\"\xc3\xa9\"}\nrest";
        for cut in 0..=all.len() {
            assert_eq!(lines(&[&all[..cut], &all[cut..]]), ["{\"a\":1}", "x", "{\"b\":\"\u{e9}\"}"], "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = all.iter().map(std::slice::from_ref).collect();
        assert_eq!(lines(&bytes).len(), 3);
    }

    #[test]
    fn r52_a_line_that_is_too_long_is_skipped_and_its_memory_is_freed() {
        let long = vec![b'x'; MAX_LINE + 10];
        let whole = [&long[..], b"\nafter\n"].concat();
        let expected = [format!("skipped {}", MAX_LINE + 10), "after".to_owned()];
        assert_eq!(lines(&[&whole]), expected, "in one read");
        assert_eq!(lines(&whole.chunks(64 << 10).collect::<Vec<_>>()), expected, "in many reads");
        let mut reader = LineReader::default();
        reader.handle_bytes(&long, |_| panic!("no line is complete"));
        assert_eq!(reader.partial.capacity(), 0);
        let exact = [&vec![b'y'; MAX_LINE][..], b"\n"].concat();
        assert_eq!(lines(&exact.chunks(1 << 20).collect::<Vec<_>>())[0].len(), MAX_LINE);
    }

    /// A line of 8 MiB that ends with CR LF was a line in one read, and too long in several.
    #[test]
    fn a_carriage_return_counts_however_the_line_is_read() {
        for len in [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1] {
            let line = [&vec![b'x'; len][..], b"\r\n"].concat();
            let whole = lines(&[&line]);
            assert_eq!(lines(&[&line[..=len], &line[len + 1..]]), whole, "{len}, cut before the line break");
            assert_eq!(lines(&line.chunks(64 << 10).collect::<Vec<_>>()), whole, "{len}, in many reads");
            assert_eq!(whole[0].starts_with("skipped"), len >= MAX_LINE, "{len}");
        }
    }

    #[test]
    fn what_has_no_line_break_is_left_at_the_end() {
        let mut reader = LineReader::default();
        reader.handle_bytes(b"a\nhal", |_| {});
        reader.handle_bytes(b"f", |_| panic!("not a line"));
        assert_eq!(reader.take_rest(), b"half");
        assert_eq!(reader.take_rest(), b"");
    }
}
