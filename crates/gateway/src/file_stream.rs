//! A file of a session as the body of a response.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bowline_proto::problem::Code;
use bytes::Bytes;
use futures_util::stream::{self, Stream};

use crate::auth::Caller;
use crate::problem::Problem;
use crate::sessions::blocking;

/// Bytes that are read at a time. A client that does not read its response keeps one or two of these in memory.
const CHUNK: u64 = 32 << 10;
/// Lets nothing run or load, should a browser show the file as a page.
pub(crate) const POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Streams the bytes of a file from `from` to `to`. If they cannot be read any more, or the caller's token is revoked, the
/// response ends short of its `Content-Length`, which every client treats as an error.
pub(crate) fn file_stream(
    caller: Caller,
    file: File,
    from: u64,
    to: u64,
) -> impl Stream<Item = Result<Bytes, String>> + Send {
    let file = Arc::new(file);
    stream::try_unfold((caller, file, from), move |(caller, file, at)| async move {
        if at >= to {
            return Ok(None);
        }
        let reader = file.clone();
        let read = blocking(move || {
            let mut chunk = vec![0; (to - at).min(CHUNK) as usize];
            let read = reader.read_exact_at(&mut chunk, at);
            read.map_err(|error| Problem::new(Code::Unreachable, format!("the file cannot be read: {error}")))?;
            Ok(chunk)
        });
        let chunk = tokio::select! {
            biased;
            () = caller.revoked() => return Err("the token or login was revoked".to_owned()),
            chunk = read => chunk.map_err(|problem| problem.close().1)?,
        };
        let next = at + chunk.len() as u64;
        Ok(Some((Bytes::from(chunk), (caller, file, next))))
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bowline_proto::api::TokenScope;
    use futures_util::StreamExt;

    use super::*;
    use crate::auth::Auth;
    use crate::testing;

    #[tokio::test]
    async fn r48_a_revoked_token_stops_a_download() {
        let temp = tempfile::tempdir().unwrap();
        let auth = Auth::open(&testing::home(temp.path())).unwrap();
        let path = temp.path().join("7");
        std::fs::write(&path, vec![b'x'; 3 * CHUNK as usize]).unwrap();
        let token = auth.create_token("t", TokenScope::Read, None).unwrap();
        let read = |to| {
            let caller = auth.bearer(token.token.reveal()).unwrap();
            file_stream(caller, File::open(&path).unwrap(), 0, to)
        };
        let (mut cut, mut short) = (pin!(read(3 * CHUNK)), pin!(read(4 * CHUNK)));
        assert_eq!(cut.next().await.unwrap().unwrap().len() as u64, CHUNK);
        for _ in 0..3 {
            assert_eq!(short.next().await.unwrap().unwrap().len() as u64, CHUNK);
        }
        assert!(short.next().await.unwrap().is_err(), "a file that is shorter than it was is an error");
        auth.revoke(&token.id).unwrap();
        let why = cut.next().await.unwrap().map(|chunk| chunk.len()).unwrap_err();
        assert!(why.contains("revoked"), "{why}");
        assert!(cut.next().await.is_none());
    }
}
