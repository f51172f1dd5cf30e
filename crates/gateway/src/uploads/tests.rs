use bytes::Bytes;
use futures_util::stream;
use tokio::time::sleep;

use super::*;
use crate::testing;

/// A body that arrives in pieces of this length, each after a pause.
fn arriving(pieces: usize, len: usize, pause: Duration) -> Body {
    Body::from_stream(stream::unfold(0, move |sent| async move {
        sleep(pause).await;
        (sent < pieces).then(|| (Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; len])), sent + 1))
    }))
}

#[tokio::test(start_paused = true)]
async fn r52_a_slow_upload_is_received_and_a_stalled_or_endless_one_is_cut() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let receive = async |pieces, len, pause: u64| {
        let received = receive(&app, &mut arriving(pieces, len, Duration::from_secs(pause))).await;
        received.map(|content| content.len()).map_err(|problem| problem.code())
    };
    assert_eq!(receive(50, (MAX_UPLOAD / 50) as usize, 11).await, Ok((MAX_UPLOAD / 50 * 50) as usize));
    assert_eq!(receive(2, 10, 31).await, Err(Code::TooSlow), "it stalls");
    assert_eq!(receive(1000, 1, 29).await, Err(Code::TooSlow), "it takes too long in all");
    assert_eq!(receive(11, 1 << 20, 0).await, Err(Code::TooLarge), "without a length in its head");
}

#[tokio::test(start_paused = true)]
async fn r52_uploads_of_one_caller_keep_nobody_out() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let [busy, other] = ["busy", "other"].map(|name| Caller::user(name, bowline_proto::api::TokenScope::Write));
    let mut turns = Vec::new();
    while let Ok(Ok(turn)) = tokio::time::timeout(Duration::from_secs(1), app.turns.upload(&busy)).await {
        turns.push(turn);
    }
    assert_eq!(turns.len(), 4, "the others of this caller wait");
    assert!(app.turns.upload(&other).await.is_ok());
    let refused = app.turns.upload(&busy).await.err().map(|refused| refused.code());
    assert_eq!(refused, Some(Code::Unreachable), "not for ever");
    turns.pop();
    assert!(app.turns.upload(&busy).await.is_ok());
}
