//! Single orders of inputs, each with the end that a user expects.

use super::*;

#[test]
fn r33_an_abort_that_races_a_normal_end_is_a_success() {
    use Input::{AbortFirst, EndWell, Prompt, Ready};
    let world = run_of(&[Prompt, Ready, AbortFirst, EndWell]);
    let ends = completes(&world);
    assert_eq!(ends.len(), 1);
    assert!(ends[0].success && !ends[0].aborted);
    assert_eq!(world.runs.check_abort(RunId(0)), Err(Refused::NotRunning), "an abort after the end is refused");
}

#[test]
fn r33_prompts_behind_a_failure_end_without_being_started() {
    use Input::{EndBadly, Prompt, Ready};
    let ends = completes(&run_of(&[Prompt, Ready, Prompt, Prompt, EndBadly]));
    assert_eq!(ends.iter().map(|end| end.started).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(ends[1].error.as_ref().unwrap().code, "earlier_run_failed");
}

#[test]
fn r33_the_next_prompt_starts_after_an_abort_even_in_a_new_program() {
    use Input::{AbortFirst, Exit, Prompt, Ready, Timeout};
    let world = run_of(&[Prompt, Ready, Prompt, AbortFirst, Timeout, Timeout, Exit, Ready]);
    assert_eq!(world.sent, [RunId(0), RunId(1)]);
    let ends = completes(&world);
    assert!(ends.len() == 1 && ends[0].aborted && ends[0].started && ends[0].exit_code == Some(1), "{ends:?}");
}

/// An agent that cannot start says so at once, although no prompt waits for it.
#[test]
fn r33_an_agent_that_exits_or_closes_its_pipes_while_it_starts_is_noticed_without_a_prompt() {
    for (inputs, text) in [
        (vec![Input::Exit], "the agent's program exited with code 1; the next prompt tries again"),
        (
            vec![Input::Closed, Input::Timeout],
            "the agent closed its pipes while it started; the next prompt tries again",
        ),
        (vec![Input::Timeout], "the agent has not become ready for 60 seconds; the next prompt tries again"),
    ] {
        let mut world = World::new();
        world.runs.handle_opened(Duration::ZERO);
        world.perform(world.runs.clone().poll_output().unwrap());
        world.runs.poll_output();
        inputs.iter().for_each(|input| world.apply(*input));
        assert_eq!(world.journal, [AgentEvent::Notice { level: Level::Error, text: text.to_owned() }]);
    }
}

/// The end of the tools takes longer than an agent may take to end its run.
#[test]
fn r42_an_agent_that_ended_an_aborted_run_is_not_asked_to_exit_because_of_its_tools() {
    use Input::{AbortFirst, EndBadly, Prompt, Ready, SomeTime, Timeout, ToolsLeft};
    let inputs = [Prompt, Ready, Prompt, AbortFirst, SomeTime, ToolsLeft, SomeTime, SomeTime, SomeTime, SomeTime];
    let mut world = run_of(&inputs);
    assert!(!world.terminated && world.sent == [RunId(0)], "the next prompt waits for the tools");
    assert!(run_of(&[Prompt, Ready, AbortFirst, ToolsLeft, Timeout]).terminated, "but not for ever");
    world.apply(EndBadly);
    assert_eq!(world.sent, [RunId(0), RunId(1)]);
    assert!(completes(&world)[0].aborted);
}

#[test]
fn r33_a_run_that_is_being_aborted_when_the_session_is_ended_is_interrupted_too() {
    use Input::{AbortFirst, EndSession, Exit, Prompt, Ready};
    let ends = completes(&run_of(&[Prompt, Ready, AbortFirst, EndSession, Exit]));
    assert!(ends.len() == 1 && ends[0].aborted && ends[0].interrupted && ends[0].error.is_none(), "{ends:?}");
}

/// Until then, it took the two seconds that an agent may take to end its run.
#[test]
fn r31_an_agent_that_ends_its_run_when_the_session_is_ended_is_asked_to_exit_at_once() {
    use Input::{EndBadly, EndSession, Prompt, Ready};
    assert!(!run_of(&[Prompt, Ready, EndSession]).terminated);
    assert!(run_of(&[Prompt, Ready, EndSession, EndBadly]).terminated);
}

/// A double click is one abort; a second one half a second later means it.
#[test]
fn r42_a_second_abort_asks_the_program_to_exit_at_once() {
    use Input::{AbortFirst, Prompt, Ready, SomeTime};
    assert!(!run_of(&[Prompt, Ready, AbortFirst, AbortFirst]).terminated);
    assert!(run_of(&[Prompt, Ready, AbortFirst, SomeTime, AbortFirst]).terminated);
}

/// The end of a run was among the last words of a program that has exited: the next prompt gets a new program.
#[test]
fn r33_a_prompt_is_not_sent_to_a_program_that_has_exited() {
    use Input::{Prompt, Ready};
    let mut world = run_of(&[Prompt, Ready, Prompt]);
    world.runs.handle_gone();
    world.apply(Input::EndWell);
    assert_eq!(world.sent, [RunId(0)]);
    world.apply(Input::Exit);
    world.apply(Input::Ready);
    assert_eq!(world.sent, [RunId(0), RunId(1)]);
}

#[test]
fn r33_an_agent_that_starts_may_take_its_time_while_it_prints() {
    use Input::{Activity, Prompt, SomeTime, Timeout};
    let mut world = run_of(&[Prompt, SomeTime, Activity]);
    assert_eq!(world.runs.poll_timeout(), Some(ABORT_AGAIN + START_SILENCE));
    world.apply(Timeout);
    let ends = completes(&world);
    assert_eq!(ends[0].error.as_ref().unwrap().code, "agent_silent");
    assert!(world.terminated && !ends[0].started);
}

#[test]
fn r37_sixteen_prompts_wait_and_the_next_is_refused() {
    let mut world = run_of(&[Input::Prompt, Input::Ready]);
    for _ in 0..MAX_WAITING {
        world.apply(Input::Prompt);
    }
    assert_eq!(world.runs.check_prompt(), Err(Refused::QueueFull));
    world.apply(Input::EndWell);
    assert_eq!(world.runs.check_prompt(), Ok(RunId(17)));
}

/// The agent's own turn can begin before it was sent a prompt whose run has already started.
#[test]
fn r33_a_turn_of_the_agents_own_does_not_end_the_run_that_comes_next() {
    let mut world = World::new();
    for input in [Input::Prompt, Input::Ready, Input::Prompt, Input::EndWell] {
        world.apply(input);
    }
    assert_eq!((world.runs.current(), world.runs.handle_own_turn()), (Some(RunId(1)), None));
    world.apply(Input::EndAndGoOn);
    assert_eq!(world.runs.current(), Some(RunId(2)), "it goes on by itself");
    assert_eq!(world.journal.last(), Some(&AgentEvent::RunStarted { run: RunId(2), cause: Cause::Agent }));
    world.apply(Input::Prompt);
    assert_eq!(world.sent, [RunId(0), RunId(1)], "the prompt waits for its end");
    world.apply(Input::EndWell);
    assert_eq!(world.sent, [RunId(0), RunId(1), RunId(3)]);
}

/// A run of the agent's own has a higher number than the prompts that wait behind it.
#[test]
fn r33_an_abort_of_later_runs_goes_by_their_order() {
    let ready = || {
        let mut world = World::new();
        for input in [Input::Prompt, Input::Ready, Input::Prompt, Input::EndAndGoOn] {
            world.apply(input);
        }
        let order: Vec<RunId> = world.runs.open.iter().map(|open| open.run).collect();
        assert_eq!(order, [RunId(2), RunId(1)]);
        world
    };
    let aborted =
        |world: &World| fold(&world.journal).open.iter().map(|open| (open.run, open.aborted)).collect::<Vec<_>>();
    let mut first = ready();
    first.apply(Input::AbortAll);
    assert!(first.runs.is_cancelling());
    assert_eq!(aborted(&first), [(RunId(2), true)], "the prompt behind it is aborted, too");
    let mut last = ready();
    last.abort(1, true);
    while let Some(output) = last.runs.poll_output() {
        last.perform(output);
    }
    assert!(!last.runs.is_cancelling(), "the run in front of it goes on");
    assert_eq!(aborted(&last), [(RunId(2), false)]);
}
