//! Who may read a log, for as long as it is read.

use std::pin::pin;

use bowline_host::log::Log;
use bowline_proto::api::TokenScope;
use bowline_proto::ids::SessionId;
use futures_util::StreamExt;

use super::*;
use crate::auth::Auth;
use crate::testing;

/// A log may be long, and read slowly: a token that leaked must not read it to its end.
#[tokio::test]
async fn r48_whoever_is_revoked_reads_no_more_of_a_log() {
    let temp = tempfile::tempdir().unwrap();
    let home = testing::home(temp.path());
    let auth = Auth::open(&home).unwrap();
    let dir = home.session(&SessionId::from_random([0; 12]));
    std::fs::create_dir(dir.path()).unwrap();
    let (written, end) = (Log::create(&dir.log(), 4 * PIECE).unwrap(), 3 * PIECE);
    (0..end / 1024).for_each(|_| written.append(&[b'x'; 1024]).unwrap());
    let log = Kept::File(Arc::new(LogFile::open(&dir).unwrap()));

    let made = auth.create_token("t", TokenScope::Read, None).unwrap();
    let read = |to| pieces(auth.bearer(made.token.reveal()).unwrap(), log.clone(), 0, to);
    let (mut cut, mut whole) = (pin!(read(end)), pin!(read(PIECE)));
    for reader in [&mut cut, &mut whole] {
        assert_eq!(reader.next().await.unwrap().unwrap().len() as u64, PIECE);
    }
    auth.revoke(&made.id).unwrap();
    let why = cut.next().await.unwrap().map(|piece| piece.len()).unwrap_err();
    assert!(why.contains("revoked"), "{why}");
    assert!(cut.next().await.is_none());
    assert!(whole.next().await.is_none(), "what was sent whole has no error behind it");
}
