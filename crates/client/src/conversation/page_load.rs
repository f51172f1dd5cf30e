//! Reads a page of the history on a thread of its own, so that keys and signals work meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use bowline_proto::api::EventPage;

use super::attach::{PageReader, SourceError};

/// A page that is being read. Dropping it ignores the page; its thread ends when the reader returns.
#[derive(Debug)]
pub(super) struct PageLoad {
    result: Receiver<Result<EventPage, SourceError>>,
    /// Readable once there is a result: the thread has closed the other end.
    signal: UnixStream,
}

impl PageLoad {
    pub(super) fn start(read: PageReader) -> io::Result<PageLoad> {
        let (signal, other_end) = UnixStream::pair()?;
        let (sender, result) = mpsc::channel();
        std::thread::Builder::new().name("history".to_owned()).spawn(move || {
            let _other_end = other_end;
            // The owner may not want it any more.
            let _ = sender.send(read());
        })?;
        Ok(PageLoad { result, signal })
    }

    /// The descriptor to poll: it is readable once [`poll`](PageLoad::poll) has the result.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }

    /// The page, or why it cannot be read. `None` while it is being read.
    pub(super) fn poll(&self) -> Option<Result<EventPage, SourceError>> {
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(SourceError::Temporary("its reader failed".into()))),
        }
    }
}
