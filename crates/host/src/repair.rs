//! Repairs an agent session whose process died: ends what is left of its agent, then its open runs and approvals.
//!
//! Any process that notices may do this. It holds the lock under which sessions are restarted, so no session process
//! starts meanwhile, and it decides by the journal, so a second repair finds nothing to do. The session is `lost` before
//! and after.

use std::io;

use bowline_proto::ids::Epoch;
use bowline_proto::session::{AgentInfo, Kind, State};

use crate::alive::is_alive;
use crate::change_lock::{ChangeKey, try_lock};
use crate::home::Home;
use crate::leftovers;
use crate::machine::this_boot;
use crate::meta::Meta;
use crate::registry::{self, Entry};
use crate::transcript::{Opened, Transcript};

/// Whether the session has something that only a repair can end.
pub fn is_needed(entry: &Entry) -> bool {
    let is_open = |agent: &AgentInfo| agent.activity.is_some() || !agent.approvals.is_empty();
    let is_lost = entry.is_local && entry.meta.kind == Kind::Agent && entry.info.state == State::Lost;
    is_lost && (entry.info.agent.as_ref().is_some_and(is_open) || leftovers::has_agent(&entry.dir))
}

/// Repairs the session if that is needed, and reads it again. Returns `None` if another process is changing it, or has
/// restarted it. A session that cannot be repaired is returned as it is, and the reason is logged.
pub fn repair_if_needed(home: &Home, entry: Entry) -> Option<Entry> {
    if !is_needed(&entry) {
        return Some(entry);
    }
    match repair(home, &entry) {
        Ok(true) => {
            let entry = registry::read(entry.dir.clone()).unwrap_or(entry);
            (entry.info.state != State::Running).then_some(entry)
        }
        Ok(false) => None,
        Err(error) => {
            tracing::warn!(%error, session = %entry.info.id, "cannot repair a lost agent session");
            Some(entry)
        }
    }
}

/// Repairs a lost session. Returns `false` if another process is changing it; then that one repairs it, or restarts it.
pub fn repair(home: &Home, entry: &Entry) -> io::Result<bool> {
    let lock = try_lock(home, &ChangeKey::Session(entry.info.id.clone())).map_err(io::Error::other)?;
    let Some(_lock) = lock else { return Ok(false) };
    if is_alive(&entry.dir) || !entry.dir.meta().exists() {
        return Ok(true);
    }
    leftovers::end(&entry.dir)?;
    let Opened { mut transcript, was_cut } = Transcript::open(&entry.dir)?;
    end_open(&mut transcript, was_cut, &entry.meta)?;
    transcript.checkpoint()?;
    Ok(true)
}

/// Ends what an earlier session process left open. `before` is what `meta.json` said then.
pub fn end_open(transcript: &mut Transcript, was_cut: bool, before: &Meta) -> io::Result<()> {
    // After a reboot, the end of the journal may be lost although no line is damaged.
    let is_open = transcript.fold().exit.is_none() && transcript.fold().next_seq > 0;
    let is_new_epoch = was_cut || (is_open && before.boot != this_boot() && !transcript.fold().is_repaired());
    let mut random = [0; 4];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    transcript.repair((is_new_epoch && transcript.fold().next_seq > 0).then(|| Epoch::from_random(random)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bowline_proto::agent::event::{AgentEvent, CommandSource, RunId};
    use bowline_proto::ids::SessionId;

    use super::*;
    use crate::agents::{ConversationLimits, ModePolicy, Protocol};
    use crate::alive::take_lock;
    use crate::machine::this_host;
    use crate::meta::{AgentMeta, Makers};
    use crate::timestamp::timestamp;

    /// An agent session whose process died while a run was open.
    fn lost(home: &Home) -> Entry {
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([1; 12]));
        fs::create_dir(dir.path()).unwrap();
        let mut transcript = Transcript::open(&dir).unwrap().transcript;
        let source = CommandSource { command: "c".into(), digest: "d".into(), by: "local".into() };
        let prompt =
            AgentEvent::Prompt { run: RunId(0), source: source.clone(), text: "hi".into(), attachments: vec![] };
        let epoch = Epoch::from_random([1; 4]);
        let approval = serde_json::json!({
            "id": "a0", "run": "r0", "kind": "permission", "tool": "x", "title": "t", "at": "t", "detail": {},
        });
        let approval = AgentEvent::ApprovalRequested { approval: serde_json::from_value(approval).unwrap() };
        let later =
            AgentEvent::Prompt { run: RunId(1), source: source.clone(), text: "ho".into(), attachments: vec![] };
        for event in [AgentEvent::Started { epoch, pid: 7, version: "0.1.0".into() }, prompt, later, approval] {
            transcript.append(event).unwrap();
        }
        let agent = AgentMeta {
            agent: "fake".into(),
            protocol: Protocol::Acp,
            command: Vec::new(),
            env: Vec::new(),
            table_env: Vec::new(),
            resume: None,
            mode: None,
            model: None,
            mode_policy: ModePolicy::default(),
            limits: ConversationLimits::default(),
        };
        let meta = Meta {
            id: dir.id().clone(),
            name: None,
            kind: Kind::Agent,
            cwd: "/".into(),
            detached_ttl: 0,
            request: None,
            makers: Makers::default(),
            open_files: None,
            created: timestamp(),
            host: this_host(),
            boot: this_boot(),
            terminal: None,
            agent: Some(agent),
        };
        meta.write(&dir.meta()).unwrap();
        registry::read(dir).unwrap()
    }

    #[test]
    fn a_session_that_another_process_restarted_meanwhile_is_not_returned_as_an_ended_one() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let entry = lost(&home);
        assert!(is_needed(&entry));
        let process = take_lock(&entry.dir).unwrap().unwrap();
        assert!(repair_if_needed(&home, entry.clone()).is_none());
        // The process dies, too: now there is something to repair.
        drop(process);
        let repaired = repair_if_needed(&home, entry).unwrap();
        assert_eq!((repaired.info.state, is_needed(&repaired)), (State::Lost, false));
    }

    /// Lists repair nothing, but they must not show a run that is over, or an approval that cannot be answered.
    #[test]
    fn r35_a_list_shows_no_activity_of_a_lost_session() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let entry = lost(&home);
        let open = |entry: Entry| {
            let agent = entry.info.agent.unwrap();
            (entry.info.state, agent.activity.is_some(), agent.queued, agent.approvals.len())
        };
        assert_eq!(open(entry), (State::Lost, true, 1, 1), "what there is to repair");
        assert_eq!(open(registry::list(&home).unwrap().remove(0)), (State::Lost, false, 0, 0));
    }
}
