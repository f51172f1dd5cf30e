/** What a page shows of its own messages, as they go from the queue into the conversation: each state, and each wrong turn. */
import type { AgentRecord, Command, ConversationState } from "@bowline/client";
import { EMPTY_CONVERSATION, fold, PostQueue, type PostResponse, readEvent } from "@bowline/client/core";
import { describe, expect, test } from "vitest";
import { activityOf, failedCommands, isAbortOf, messagesOf, messageText } from "../src/conversation/messages.ts";
import { Transcript } from "../src/conversation/transcript.ts";

const HERE = "session00001";
const OTHER = "session00002";
const AT = "2026-01-01T00:00:00Z";
const accepted = (id: string, seq: number, run = "r0"): PostResponse => ({
  kind: "http",
  status: 202,
  body: JSON.stringify({ id, seq, run, status: "accepted" }),
});
const refused = (status: number, code: string, detail: string): PostResponse => ({
  kind: "http",
  status,
  code,
  body: JSON.stringify({ code, detail }),
});
const LOST: PostResponse = { kind: "missing", why: "no network" };

/** A page that views one conversation: the queue, the fold and the transcript, without a network. */
class Page {
  readonly queue = new PostQueue();
  readonly transcript = new Transcript();
  state: ConversationState = EMPTY_CONVERSATION;
  now = 1000;
  /** The latest request of each entry. */
  readonly attempts = new Map<string, number>();
  #seq = 0;

  send(command: Command, session = HERE): string {
    const id = `command-${this.queue.entries.length}`;
    expect(this.queue.send(session, id, command, this.now)).toBeUndefined();
    this.#work();
    return id;
  }

  prompt(text = "Fix it", session = HERE): string {
    return this.send({ type: "prompt", text }, session);
  }

  answer(id: string, response: PostResponse): void {
    this.queue.handleResponse(id, this.attempts.get(id)!, response, 0, this.now);
    this.#work();
  }

  wait(milliseconds: number): void {
    this.now += milliseconds;
    this.queue.handleTimeout(0, this.now);
    this.#work();
  }

  /** An event of a session arrives. */
  event(event: object, session = HERE): void {
    const record: AgentRecord = { seq: this.#seq++, at: AT, event: readEvent(event) };
    const { command, run } = event as { command?: string; run?: string };
    if (command !== undefined) this.queue.handleRecorded(session, command, record.seq, run, this.now);
    if (session !== HERE) return;
    this.state = fold(this.state, record);
    this.transcript.append([record]);
    this.#work();
  }

  /** A reconnect: the last page of history replaces everything. */
  reload(records: readonly object[]): void {
    const page = records.map((event, seq) => ({ seq, at: AT, event: readEvent(event) }));
    this.state = page.reduce(fold, EMPTY_CONVERSATION);
    this.transcript.reset(page);
  }

  get messages() {
    return messagesOf(this.queue.entries, HERE, this.transcript);
  }

  get shown(): string[] {
    return this.messages.map((message) => messageText(message, 3));
  }

  get activity() {
    return activityOf(this.state, this.messages)?.text;
  }

  #work(): void {
    for (let action = this.queue.pollAction(); action; action = this.queue.pollAction())
      if (action.kind === "send") this.attempts.set(action.id, action.attempt);
  }
}

const source = (command: string) => ({ command, digest: "0123456789abcdef", by: "phone" });
const prompted = (command: string, run = "r0", text = "Fix it") => ({
  type: "prompt",
  run,
  text,
  attachments: [],
  ...source(command),
});
const started = (run = "r0") => ({ type: "run_started", run, cause: "prompt" });
const complete = (run = "r0", changes: object = {}) => ({
  type: "complete",
  run,
  started: true,
  success: true,
  aborted: false,
  interrupted: false,
  exit_code: null,
  signal: null,
  stop_reason: null,
  conversation: null,
  ...changes,
});

describe("a message", () => {
  test("R35: there is activity from the moment of sending until the last event", () => {
    const page = new Page();
    expect(page.activity).toBeUndefined();
    const id = page.prompt();
    expect([page.shown, page.activity]).toEqual([["Sending"], "Sending"]);
    page.answer(id, accepted(id, 0));
    expect([page.shown, page.activity]).toEqual([["Delivered"], "Waiting for the agent"]);
    page.event(prompted(id));
    expect(page.messages, "the transcript shows it").toEqual([]);
    expect(page.activity).not.toBeUndefined();
    page.event(started());
    page.event({ type: "text", run: "r0", block: "b", delta: "Done." });
    expect(page.activity).toBe("Writing");
    page.event(complete());
    expect(page.activity).toBeUndefined();
  });

  test("R37: the event proves the delivery before the response does", () => {
    const page = new Page();
    const id = page.prompt();
    page.event(prompted(id));
    expect(page.messages).toEqual([]);
    page.answer(id, LOST);
    expect(page.queue.entry(id)?.state.name).toBe("delivered");
  });

  test("R37: one that is retried and then delivered says so, and is shown once", () => {
    const page = new Page();
    const id = page.prompt();
    page.answer(id, LOST);
    expect(page.shown).toEqual(["Not sent yet: no network. Next try in 3 s"]);
    expect(page.activity).toBe("Sending again");
    page.wait(1000);
    expect(page.shown).toEqual(["Sending, try 2"]);
    page.answer(id, accepted(id, 0));
    expect(page.shown).toEqual(["Delivered"]);
    page.event(prompted(id));
    expect(page.shown).toEqual([]);
    expect(page.transcript.waiting.map(({ command }) => command)).toEqual([id]);
  });

  test("R37: one that failed says why, is no activity, and holds the next one until it is discarded", () => {
    const page = new Page();
    const id = page.prompt();
    const next = page.prompt("And this");
    page.answer(id, refused(400, "bad_request", "the text is empty"));
    expect(page.shown).toEqual(["Not sent: the text is empty", "Waiting for the failed message before it"]);
    expect(page.activity).toBeUndefined();
    page.queue.discard(id, page.now);
    page.wait(0);
    expect(page.messages.map(({ id }) => id)).toEqual([next]);
    expect(page.activity).toBe("Sending");
  });

  test("R37: one to a session that has ended failed because of that", () => {
    const page = new Page();
    const id = page.prompt();
    page.answer(id, refused(410, "session_gone", "the session has ended"));
    expect(page.shown).toEqual(["Not sent: the session has ended"]);
    expect(page.activity).toBeUndefined();
  });

  test("R35: there is activity while its session is being started again for it", () => {
    const page = new Page();
    const id = page.prompt();
    page.answer(id, refused(410, "session_gone", "the session has ended"));
    const activity = activityOf(page.state, page.messages, (message) => message === id);
    expect(activity?.text).toBe("Resuming the session");
    const next = page.prompt("And this");
    page.queue.discard(id, page.now);
    const held = page.messages.map((message) => ({ ...message, state: { name: "waiting", why: "held" } as const }));
    expect(activityOf(page.state, held, (message) => message === next)).toBeUndefined();
  });

  test("R35: offline and without a login, it waits and says for what", () => {
    const page = new Page();
    page.queue.handleOffline(page.now);
    const id = page.prompt();
    expect([page.shown, page.activity]).toEqual([["Not sent yet: no network"], "Waiting for the network"]);
    page.queue.handleOnline(page.now);
    page.wait(0);
    page.answer(id, refused(401, "not_authenticated", "log in"));
    expect([page.shown, page.activity]).toEqual([["Not sent: log in again"], "Waiting for your login"]);
  });
});

describe("another session's events", () => {
  test("R35: change nothing here", () => {
    const page = new Page();
    const id = page.prompt();
    const before = page.shown;
    page.event(prompted("elsewhere"), OTHER);
    page.event(complete(), OTHER);
    expect([page.shown, page.activity]).toEqual([before, "Sending"]);
    // Not even with the same id, which another session can record only for a command of its own.
    page.event(prompted(id), OTHER);
    expect(page.queue.entry(id)?.state.name).toBe("sending");
  });

  test("R35: a message for another session is neither shown nor activity here", () => {
    const page = new Page();
    page.prompt("For the other one", OTHER);
    expect([page.messages, page.activity]).toEqual([[], undefined]);
  });
});

describe("a reconnect", () => {
  test("R41: a page of history that has the prompt settles the message", () => {
    const page = new Page();
    const id = page.prompt();
    page.answer(id, LOST);
    page.reload([prompted(id), started(), complete()]);
    expect([page.messages, page.activity]).toEqual([[], undefined]);
  });

  test("R41: a page of history that begins after the prompt settles the message, too", () => {
    const page = new Page();
    const id = page.prompt();
    page.answer(id, accepted(id, 3));
    const late = [{ seq: 300, at: AT, event: readEvent({ type: "text", run: "r0", block: "b", delta: "On." }) }];
    page.transcript.reset(late);
    expect([page.messages, page.activity]).toEqual([[], undefined]);
  });

  test("R35: a late end of an earlier run leaves the current one alone", () => {
    const page = new Page();
    page.reload([prompted("a", "r0"), started("r0"), complete("r0"), prompted("b", "r1"), started("r1")]);
    expect(page.state.activity?.run).toBe("r1");
    page.event(complete("r0"));
    expect(page.state.activity?.run).toBe("r1");
  });

  test("R36: a run that waits for an answer says so", () => {
    const page = new Page();
    page.reload([prompted("a", "r0"), started("r0")]);
    const approval = {
      id: "a0",
      run: "r0",
      kind: "permission",
      tool: "Bash",
      title: "ls",
      detail: {},
      truncated: false,
      options: [],
      at: AT,
    };
    page.event({ type: "approval_requested", approval });
    expect(page.activity).toBe("Waiting for your answer");
    page.event({ type: "approval_resolved", approval: "a0", outcome: "allowed" });
    expect(page.activity).not.toBe("Waiting for your answer");
  });

  test("R35: a message that waits behind a run is not its activity", () => {
    const page = new Page();
    page.reload([prompted("a", "r0"), started("r0")]);
    page.prompt("Later");
    expect(activityOf(page.state, page.messages)?.stop).toBe("r0");
    page.event(complete("r0"));
    expect(page.activity).toBe("Sending");
  });
});

describe("other commands", () => {
  test("R42: a run is being stopped until its abort has failed", () => {
    const page = new Page();
    const id = page.send({ type: "abort", run: "r0" });
    const isStopping = () => page.queue.entries.some((entry) => isAbortOf(entry, HERE, "r0"));
    expect([isStopping(), page.queue.entries.some((entry) => isAbortOf(entry, OTHER, "r0"))]).toEqual([true, false]);
    expect(failedCommands(page.queue.entries, HERE)).toEqual([]);
    page.answer(id, refused(403, "not_allowed", "your login may only read"));
    expect(isStopping()).toBe(false);
    expect(failedCommands(page.queue.entries, HERE).map((entry) => entry.id)).toEqual([id]);
    expect([page.messages, page.activity]).toEqual([[], undefined]);
  });
});
