//! Conversations that outlive the program and the session that began them.

use serde_json::{Value, json};

use super::{Bench, with_each};

/// A word that only the first prompt of a conversation contains.
const WORD: &str = "walrus-4711";

impl Bench {
    /// Has a first exchange that later prompts can be checked against. Returns the end of its run.
    #[track_caller]
    pub(super) fn begin_conversation(&mut self, session: &str) -> Value {
        self.converse(session, &format!("Remember the word {WORD}."), "I will.")
    }

    /// Sends a prompt, and checks that the model was sent the first one with it.
    #[track_caller]
    pub(super) fn continue_conversation(&mut self, session: &str) -> Value {
        let end = self.converse(session, "Which word was it?", "You said it.");
        assert!(self.stub.was_sent(&[WORD, "Which word was it?"]), "the model does not get the conversation so far");
        end
    }
}

#[test]
fn r32_a_program_that_was_killed_is_started_again_with_its_conversation() {
    with_each(|bench| {
        let id = bench.start();
        let first = bench.begin_conversation(&id);
        bench.kill_agent(&id);
        bench.wait_until_resumable();
        let second = bench.continue_conversation(&id);
        assert_eq!(first["conversation"], second["conversation"]);
    });
}

#[test]
fn r32_a_conversation_is_resumed_in_another_session() {
    with_each(|bench| {
        let first = bench.start();
        let conversation = bench.begin_conversation(&first)["conversation"].clone();
        bench.end(&first);
        bench.wait_until_resumable();
        let second = bench.start_with(&json!({"resume": conversation}));
        let end = bench.continue_conversation(&second);
        assert_eq!(end["conversation"], conversation);
        let prompts = bench.world.events_of(&second, "prompt");
        let texts = bench.world.events_of(&second, "text");
        assert_eq!(prompts.len(), 1, "what the program replays is not recorded again");
        assert!(texts.iter().all(|event| event["run"] == end["run"]), "{texts:?}");
    });
}
