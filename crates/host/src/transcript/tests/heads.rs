//! The checkpoint of a transcript: what lists read of it, and which versions are used and replaced.

use super::*;

/// A list of this version must not fight with a newer session process over the file.
#[test]
fn r20_a_checkpoint_of_a_newer_version_is_ignored_and_left_to_its_process() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    (0..100).for_each(|_| _ = transcript.append(text(1000)).unwrap());
    let state = transcript.state().clone();
    transcript.checkpoint().unwrap();
    let ours = fs::read_to_string(dir.head()).unwrap();
    // As long as it likes, and of a form that this version cannot read.
    let newer = format!(r#"{{"version":{},"fold":"{}"}}"#, head::VERSION + 1, "x".repeat(head::MAX as usize));
    fs::write(dir.head(), &newer).unwrap();
    let lock = crate::lock::Lock::take(&dir.lock()).unwrap().unwrap();
    assert_eq!(read_state_and_checkpoint(&dir).unwrap(), state);
    assert_eq!(fs::read_to_string(dir.head()).unwrap().len(), newer.len(), "its process runs");
    fs::write(dir.head(), ours.replace(&head::VERSION.to_string(), "1001")).unwrap();
    assert_eq!(read_state_and_checkpoint(&dir).unwrap(), state);
    assert_eq!(fs::read_to_string(dir.head()).unwrap(), ours, "an older one is replaced");
    fs::write(dir.head(), &newer).unwrap();
    drop(lock);
    assert_eq!(read_state_and_checkpoint(&dir).unwrap(), state);
    assert_eq!(fs::read_to_string(dir.head()).unwrap(), ours, "no process is left that would write it");
}

/// Events before the checkpoint are overwritten here, and the reader does not notice.
#[test]
fn r40_a_list_reads_no_events_before_the_checkpoint() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    (0..100).for_each(|_| _ = transcript.append(text(1000)).unwrap());
    let state = transcript.state().clone();
    assert!(!dir.head().exists());
    assert_eq!(read_state_and_checkpoint(&dir).unwrap(), state, "this read writes the checkpoint");
    let mut events = fs::read(dir.events()).unwrap();
    let len = events.len();
    events[..len - 5000].fill(b'x');
    fs::write(dir.events(), events).unwrap();
    assert_eq!(read_state(&dir).unwrap(), state);
    assert_eq!(read_listed(&dir, false).unwrap(), state.fold.listed());
}

/// The state in the checkpoint is damaged here, and the list does not notice.
#[test]
fn r40_a_list_reads_little_of_a_conversation_with_thousands_of_prompts() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    for n in 0..2000 {
        transcript.append(prompt(n)).unwrap();
        transcript.append(AgentEvent::Complete(Complete { run: RunId(n), ..Complete::default() })).unwrap();
    }
    transcript.checkpoint().unwrap();
    let listed = transcript.fold().listed();
    let mut head = fs::read(dir.head()).unwrap();
    let line = head.iter().position(|byte| *byte == b'\n').unwrap();
    assert!(line < 1000 && head.len() > 100_000, "{line} of {} bytes", head.len());
    head[line + 1..].fill(b'x');
    fs::write(dir.head(), head).unwrap();
    assert_eq!(read_listed(&dir, false).unwrap(), listed);
    transcript.append(text(3)).unwrap();
    assert_eq!(read_listed(&dir, false).unwrap(), transcript.fold().listed(), "events after the checkpoint count");
}

/// The line for lists is longer than what is read of most checkpoints.
#[test]
fn r36_a_list_has_the_long_texts_of_approvals() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    let approval = serde_json::json!({
        "id": "a0", "run": null, "kind": "permission", "tool": "x", "title": "t", "at": "t",
        "detail": {"command": "x".repeat(20_000)},
    });
    let approval = serde_json::from_value(approval).unwrap();
    transcript.append(AgentEvent::ApprovalRequested { approval }).unwrap();
    transcript.checkpoint().unwrap();
    let listed = head::read_listed(&dir.head(), transcript.file()).unwrap();
    assert_eq!(listed, transcript.fold().listed());
    assert_eq!(listed.approvals, transcript.fold().approvals);
}
