//! Control requests for the screen. One rendering is made at a time, and shared by all requests that waited for it: many
//! callers that request the screen cost little more than one.

use std::collections::VecDeque;

use crate::emulator::Rendering;

/// The control connections that wait for the screen.
#[derive(Debug, Default)]
pub(super) struct ScreenRequests {
    /// Those that get the rendering that is being made. `None` while none is.
    rendering: Option<Vec<u64>>,
    /// Those that get the next ones. What is being made may lack output from before their request.
    waiting: VecDeque<(Rendering, Vec<u64>)>,
}

impl ScreenRequests {
    pub(super) fn add(&mut self, conn: u64, wanted: Rendering) {
        // A connection gets its replies in the order of its requests.
        let is_first = !self.waiting.iter().any(|(_, conns)| conns.contains(&conn));
        let same = self.waiting.iter_mut().find(|(rendering, _)| is_first && *rendering == wanted);
        match same {
            Some((_, conns)) => conns.push(conn),
            None => self.waiting.push_back((wanted, vec![conn])),
        }
    }

    /// What to render now. `None` if no request waits, or another rendering is being made.
    pub(super) fn start_next(&mut self) -> Option<Rendering> {
        if self.rendering.is_some() {
            return None;
        }
        let (rendering, conns) = self.waiting.pop_front()?;
        self.rendering = Some(conns);
        Some(rendering)
    }

    /// The rendering is made. Returns the connections that get it.
    pub(super) fn finish(&mut self) -> Vec<u64> {
        self.rendering.take().unwrap_or_default()
    }

    /// A connection was closed.
    pub(super) fn forget(&mut self, conn: u64) {
        for (_, conns) in &mut self.waiting {
            conns.retain(|other| *other != conn);
        }
        self.waiting.retain(|(_, conns)| !conns.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::control::ScreenFormat;

    const TEXT: Rendering = Rendering { format: ScreenFormat::Text, scrollback: 0 };
    const JSON: Rendering = Rendering { format: ScreenFormat::Json, scrollback: 9 };

    #[test]
    fn r52_requests_that_wait_share_a_rendering_begun_after_them() {
        let mut requests = ScreenRequests::default();
        requests.add(1, TEXT);
        assert_eq!((requests.start_next(), requests.start_next()), (Some(TEXT), None));
        for (conn, wanted) in [(2, TEXT), (3, JSON), (4, TEXT), (5, JSON), (6, JSON)] {
            requests.add(conn, wanted);
        }
        requests.forget(5);
        assert_eq!(requests.start_next(), None, "one is made at a time");
        assert_eq!(requests.finish(), [1], "the others came after it was begun");
        assert_eq!((requests.start_next(), requests.finish()), (Some(TEXT), vec![2, 4]));
        assert_eq!((requests.start_next(), requests.finish()), (Some(JSON), vec![3, 6]));
        assert_eq!(requests.start_next(), None);
    }

    #[test]
    fn a_connection_gets_its_replies_in_order() {
        let mut requests = ScreenRequests::default();
        for wanted in [TEXT, JSON, TEXT] {
            requests.add(1, wanted);
        }
        requests.add(2, JSON);
        let mut made = Vec::new();
        while let Some(rendering) = requests.start_next() {
            made.push((rendering, requests.finish()));
        }
        assert_eq!(made, [(TEXT, vec![1]), (JSON, vec![1, 2]), (TEXT, vec![1])]);
    }

    #[test]
    fn nothing_is_rendered_for_connections_that_are_gone() {
        let mut requests = ScreenRequests::default();
        requests.add(1, TEXT);
        requests.forget(1);
        assert_eq!(requests.start_next(), None);
    }
}
