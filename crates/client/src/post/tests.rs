//! Tests with a delivery whose responses the test gives.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_proto::post::{Delivery, FailureReason, Response, SendError, State, WaitReason};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::wait::send_with;
use super::{Change, Deliver, DeliveryError, Poster, send_and_wait};

/// Longer than any wait should take, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
const SESSION: &str = "k3v9x0q2m7aa";

/// A request that waits for its response.
struct Request {
    id: String,
    command: Value,
    respond: Sender<Response>,
}

/// Hands each request to the test, and waits for the response.
struct ScriptedDelivery(Mutex<Sender<Request>>);

impl Deliver for ScriptedDelivery {
    fn deliver(&self, session: &str, id: &str, command: &Value, within: Duration) -> Response {
        assert_eq!((session, within), (SESSION, Duration::from_secs(15)));
        let (respond, response) = channel();
        let request = Request { id: id.to_owned(), command: command.clone(), respond };
        let _ = self.0.lock().unwrap().send(request);
        response.recv().unwrap_or(Response::Missing { why: "the test has ended".to_owned() })
    }
}

fn scripted_delivery() -> (ScriptedDelivery, Receiver<Request>) {
    let (requests, received) = channel();
    (ScriptedDelivery(Mutex::new(requests)), received)
}

/// A poster whose clock the test sets.
fn start() -> (Poster, Receiver<Request>, Arc<AtomicU64>) {
    let (poster, requests, now, _) = start_on_a_machine_that_sleeps();
    (poster, requests, now)
}

/// A poster whose clock the test sets. Setting the flag means that the machine has slept.
fn start_on_a_machine_that_sleeps() -> (Poster, Receiver<Request>, Arc<AtomicU64>, Arc<AtomicBool>) {
    let (deliver, requests) = scripted_delivery();
    let (now, slept) = (Arc::new(AtomicU64::new(1_700_000_000_000)), Arc::new(AtomicBool::new(false)));
    let (clock, flag) = (Arc::clone(&now), Arc::clone(&slept));
    let wall = Box::new(move || clock.load(Ordering::SeqCst));
    let poster = Poster::with_clock(deliver, wall, Box::new(move || flag.swap(false, Ordering::SeqCst))).unwrap();
    (poster, requests, now, slept)
}

/// Waits until the entry has such a state.
fn wait_for(poster: &Poster, id: &str, is_wanted: impl Fn(&State) -> bool) -> State {
    loop {
        while let Some(change) = poster.poll_change() {
            if let Change::Shown(entry) = change
                && entry.id == id
                && is_wanted(&entry.state)
            {
                return entry.state;
            }
        }
        let timeout = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&poster.fd(), PollFlags::IN)], Some(&timeout)).unwrap();
        assert_eq!(ready, 1, "no change in time");
    }
}

fn prompt(text: &str) -> Value {
    json!({"type": "prompt", "text": text})
}

fn accepted(id: &str) -> Response {
    let body = json!({"id": id, "seq": 7, "run": "r3", "status": "accepted"}).to_string();
    Response::Http { status: 202, code: None, retry_after: None, body }
}

fn refused(status: u16, code: &str) -> Response {
    let body = json!({"detail": "no"}).to_string();
    Response::Http { status, code: Some(code.to_owned()), retry_after: None, body }
}

fn missing() -> Response {
    Response::Missing { why: "connection refused".to_owned() }
}

#[test]
fn r37_a_command_is_sent_again_with_its_id_until_it_is_accepted() {
    let (poster, requests, now) = start();
    let id = poster.send(SESSION, prompt("hi")).unwrap();
    let first = requests.recv_timeout(TIMEOUT).unwrap();
    assert_eq!((&first.id, &first.command), (&id, &prompt("hi")));
    first.respond.send(missing()).unwrap();
    wait_for(&poster, &id, |state| matches!(state, State::Retrying { tries: 1, .. }));
    now.fetch_add(600, Ordering::SeqCst);
    poster.run_timers();
    let second = requests.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(second.id, id);
    second.respond.send(accepted(&id)).unwrap();
    let state = wait_for(&poster, &id, |state| matches!(state, State::Delivered(_)));
    assert_eq!(state, State::Delivered(Delivery::Accepted { seq: 7, run: Some("r3".to_owned()) }));
    assert_eq!(poster.poll_change(), None);
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&poster.fd(), PollFlags::IN)], Some(&at_once)).unwrap();
    assert_eq!(ready, 0, "nothing is left to poll");
}

#[test]
fn r37_an_abort_is_delivered_while_the_request_of_a_prompt_hangs() {
    let (poster, requests, _) = start();
    let waiting = [poster.send(SESSION, prompt("one")).unwrap(), poster.send(SESSION, prompt("two")).unwrap()];
    let hanging = requests.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(hanging.id, waiting[0]);
    wait_for(&poster, &waiting[1], |state| *state == State::Waiting { why: WaitReason::Turn });
    let abort = poster.send(SESSION, json!({"type": "abort", "run": "r3"})).unwrap();
    let request = requests.recv_timeout(TIMEOUT).unwrap();
    request.respond.send(accepted(&abort)).unwrap();
    wait_for(&poster, &abort, |state| matches!(state, State::Delivered(_)));
    assert_eq!(poster.poll_change(), None, "the prompts wait as before");
    assert!(requests.try_recv().is_err(), "the second prompt waits for the first");
}

#[test]
fn the_event_of_a_command_settles_it_while_its_request_hangs() {
    let (poster, requests, _) = start();
    let id = poster.send(SESSION, prompt("hi")).unwrap();
    let hanging = requests.recv_timeout(TIMEOUT).unwrap();
    poster.handle_recorded(SESSION, &id, 9, Some("r4"));
    let state = wait_for(&poster, &id, |state| matches!(state, State::Delivered(_)));
    assert_eq!(state, State::Delivered(Delivery::Accepted { seq: 9, run: Some("r4".to_owned()) }));
    hanging.respond.send(refused(400, "bad_request")).unwrap();
    let next = poster.send(SESSION, prompt("next")).unwrap();
    assert_eq!(requests.recv_timeout(TIMEOUT).unwrap().id, next);
}

#[test]
fn a_dropped_poster_ends_at_once_and_ignores_the_request_that_hangs() {
    let (poster, requests, _) = start();
    poster.send(SESSION, prompt("one")).unwrap();
    poster.send(SESSION, prompt("two")).unwrap();
    let hanging = requests.recv_timeout(TIMEOUT).unwrap();
    drop(poster);
    let id = hanging.id.clone();
    hanging.respond.send(accepted(&id)).unwrap();
    // The thread of the request is the last one that can make another.
    assert!(matches!(requests.recv_timeout(TIMEOUT), Err(RecvTimeoutError::Disconnected)));
}

#[test]
fn a_failed_command_is_sent_again_or_discarded_by_the_user() {
    let (poster, requests, _) = start();
    let id = poster.send(SESSION, prompt("one")).unwrap();
    requests.recv_timeout(TIMEOUT).unwrap().respond.send(refused(410, "session_gone")).unwrap();
    wait_for(&poster, &id, |state| matches!(state, State::Failed(_)));
    assert!(poster.send_again(&id));
    requests.recv_timeout(TIMEOUT).unwrap().respond.send(refused(401, "not_authenticated")).unwrap();
    wait_for(&poster, &id, |state| *state == State::Waiting { why: WaitReason::Login });
    poster.handle_login();
    requests.recv_timeout(TIMEOUT).unwrap().respond.send(refused(403, "not_allowed")).unwrap();
    wait_for(&poster, &id, |state| matches!(state, State::Failed(_)));
    assert!(poster.discard(&id));
    assert_eq!(poster.poll_change(), Some(Change::Hidden(id)));
    assert_eq!(poster.send_with_id(SESSION, "", prompt("x")), Err(SendError::Invalid));
}

/// The clock was wrong by an hour, and is corrected while an entry waits for its next try.
#[test]
fn r37_a_clock_that_is_set_back_delays_no_try() {
    let (poster, requests, now) = start();
    let id = poster.send(SESSION, prompt("hi")).unwrap();
    requests.recv_timeout(TIMEOUT).unwrap().respond.send(missing()).unwrap();
    let state = wait_for(&poster, &id, |state| matches!(state, State::Retrying { .. }));
    let State::Retrying { at: before, .. } = state else { panic!("{state:?}") };
    now.fetch_sub(3_600_000, Ordering::SeqCst);
    wait_for(&poster, &id, |state| matches!(state, State::Retrying { at, .. } if *at < before));
    now.fetch_add(1_000, Ordering::SeqCst);
    let second = requests.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(second.id, id);
}

#[test]
fn r11_a_machine_that_slept_tries_at_once() {
    let (poster, requests, _, slept) = start_on_a_machine_that_sleeps();
    let id = poster.send(SESSION, prompt("hi")).unwrap();
    requests.recv_timeout(TIMEOUT).unwrap().respond.send(missing()).unwrap();
    wait_for(&poster, &id, |state| matches!(state, State::Retrying { .. }));
    slept.store(true, Ordering::SeqCst);
    // The wall clock stands still, so that no timer is due.
    assert_eq!(requests.recv_timeout(TIMEOUT).unwrap().id, id);
}

#[test]
fn a_user_who_wants_to_try_now_does_not_wait() {
    let (poster, requests, _) = start();
    let id = poster.send(SESSION, prompt("hi")).unwrap();
    requests.recv_timeout(TIMEOUT).unwrap().respond.send(missing()).unwrap();
    wait_for(&poster, &id, |state| matches!(state, State::Retrying { .. }));
    poster.handle_wake();
    assert_eq!(requests.recv_timeout(TIMEOUT).unwrap().id, id);
}

/// Gives these responses, one after the other, by the real clock.
struct Responses(Mutex<Vec<Response>>);

impl Deliver for Responses {
    fn deliver(&self, _: &str, _: &str, _: &Value, _: Duration) -> Response {
        self.0.lock().unwrap().remove(0)
    }
}

fn wait_with(responses: Vec<Response>, within: Duration) -> (Result<Delivery, DeliveryError>, Vec<&'static str>) {
    let mut shown = Vec::new();
    let result = send_and_wait(Responses(Mutex::new(responses)), SESSION, "c1", prompt("hi"), within, |entry| {
        shown.push(match entry.state {
            State::Retrying { .. } => "retrying",
            State::Delivered(_) => "delivered",
            State::Failed(_) => "failed",
            State::Waiting { .. } | State::Sending { .. } => "",
        });
    });
    shown.retain(|name| !name.is_empty());
    (result, shown)
}

#[test]
fn one_command_is_sent_and_waited_for() {
    let (result, shown) = wait_with(vec![missing(), accepted("c1")], TIMEOUT);
    assert_eq!(result.unwrap(), Delivery::Accepted { seq: 7, run: Some("r3".to_owned()) });
    assert_eq!(shown.last(), Some(&"delivered"));
    let (result, shown) = wait_with(vec![refused(410, "session_gone")], TIMEOUT);
    assert!(matches!(result, Err(DeliveryError::Failed(failure)) if failure.reason == FailureReason::SessionGone));
    assert_eq!(shown, ["failed"]);
    let (result, _) = wait_with(vec![refused(401, "not_authenticated")], TIMEOUT);
    assert!(matches!(result, Err(DeliveryError::NeedsLogin)));
}

#[test]
fn waiting_for_one_command_ends_at_the_deadline() {
    let (deliver, _requests) = scripted_delivery();
    let result = send_and_wait(deliver, SESSION, "c1", prompt("hi"), Duration::ZERO, |_| ());
    let error = result.unwrap_err();
    assert!(matches!(error, DeliveryError::TimedOut { .. }));
    assert_eq!(error.to_string(), "no response within 0 s; the command may have been received");
}

/// `bowline send --wait 30m` to a gateway that is away for a quarter of an hour.
#[test]
fn waiting_for_one_command_may_take_longer_than_the_ten_minutes_of_the_queue() {
    let (poster, requests, now) = start();
    let gateway = std::thread::spawn(move || {
        requests.recv_timeout(TIMEOUT).unwrap().respond.send(missing()).unwrap();
        let again = requests.recv_timeout(TIMEOUT).unwrap();
        again.respond.send(accepted(&again.id)).unwrap();
        again.id
    });
    let mut failed = Vec::new();
    let result = send_with(&poster, SESSION, "c1", prompt("hi"), TIMEOUT, |entry| match &entry.state {
        State::Retrying { .. } => _ = now.fetch_add(900_000, Ordering::SeqCst),
        State::Failed(failure) => failed.push(failure.reason.clone()),
        State::Waiting { .. } | State::Sending { .. } | State::Delivered(_) => {}
    });
    assert_eq!(result.unwrap(), Delivery::Accepted { seq: 7, run: Some("r3".to_owned()) });
    assert_eq!((gateway.join().unwrap().as_str(), failed), ("c1", vec![FailureReason::Expired]));
}
