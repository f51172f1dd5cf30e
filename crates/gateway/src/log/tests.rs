//! A revoked token stops a log download.

use std::pin::pin;

use bowline_host::log::Log;
use bowline_proto::api::TokenScope;
use bowline_proto::ids::SessionId;
use futures_util::StreamExt;

use super::*;
use crate::auth::Auth;
use crate::testing;

/// A log download may take long, so a leaked token must not be able to finish it after it is revoked.
#[tokio::test]
async fn r48_a_revoked_token_stops_a_log_download() {
    let temp = tempfile::tempdir().unwrap();
    let home = testing::home(temp.path());
    let auth = Auth::open(&home).unwrap();
    let dir = home.session(&SessionId::from_random([0; 12]));
    std::fs::create_dir(dir.path()).unwrap();
    let (written, end) = (Log::create(&dir.log(), 1 << 20, 0).unwrap(), 3 * CHUNK);
    (0..end / 1024).for_each(|_| written.append(&[b'x'; 1024]).unwrap());
    let log = LogSource::File(Arc::new(LogFile::open(&dir).unwrap()));

    let token = auth.create_token("t", TokenScope::Read, None).unwrap();
    let first = log.read(0, CHUNK).await.ok().unwrap();
    let read = |to| chunks(auth.bearer(token.token.reveal()).unwrap(), log.clone(), 0, to, first.clone());
    let (mut cut, mut whole) = (pin!(read(end)), pin!(read(CHUNK)));
    for reader in [&mut cut, &mut whole] {
        assert_eq!(reader.next().await.unwrap().unwrap().len() as u64, CHUNK);
    }
    auth.revoke(&token.id).unwrap();
    let why = cut.next().await.unwrap().map(|chunk| chunk.len()).unwrap_err();
    assert!(why.contains("revoked"), "{why}");
    assert!(cut.next().await.is_none());
    assert!(whole.next().await.is_none(), "a finished download does not fail afterwards");
}
