/** The golden vectors of sending commands: the same results as the Rust queue, step by step. */
import { describe, expect, test } from "vitest";
import * as core from "../src/core/index.js";
import { load } from "./vectors.js";

/** So many actions of a step are only counted. */
const MAX_ACTIONS = 20;
/** Of a stored text that is longer than this, only the length is compared. */
const MAX_STORED = 4096;

function textOf(value: any): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function responseOf({ status, why, code, retry_after, body }: any): core.PostResponse {
  if (status === undefined) return { kind: "missing", why };
  const retryAfter = retry_after === undefined ? undefined : retry_after * 1000;
  return { kind: "http", status, code, retryAfter, body: textOf(body) };
}

describe("policy/responses.json", () => {
  test.each(load("policy/responses.json").cases as any[])("R37: $response is $class", (vector) => {
    const { response, why: _, not_before, binding = false, ...expected } = vector;
    const {
      notBefore,
      binding: isBinding = false,
      ...outcome
    }: any = core.classifyResponse("c1", responseOf(response));
    expect(outcome).toEqual(expected);
    expect([notBefore, isBinding]).toEqual([not_before === undefined ? undefined : not_before * 1000, binding]);
  });
});

describe.each(["responses", "lanes", "waiting", "time", "storage", "limits"])("post/%s.json", (name) => {
  test.each(load(`post/${name}.json`).transcripts as any[])("$name", ({ steps }) => {
    const queue = new core.PostQueue();
    for (const [i, step] of steps.entries()) {
      expect(act(queue, step.do, step.at), `step ${i}: ${JSON.stringify(step.do)}`).toEqual(step.then);
    }
  });
});

/** Performs one step, then polls until there is nothing more. */
function act(queue: core.PostQueue, action: any, now: number): any {
  const [[verb, what]] = Object.entries<any>(action) as [[string, any]];
  const jitter = what?.jitter ?? 0;
  const then: any = {};
  const refuse = (refused: string | undefined) => {
    if (refused !== undefined) then.refused = refused;
    return refused === undefined;
  };
  const verbs: Record<string, () => void> = {
    send: () => refuse(queue.send(what.session, what.id, what.command, now)),
    fill: () => {
      then.accepted = 0;
      for (let i = 0; i < what.count; i++) {
        const command = { type: what.type, text: "x".repeat(what.bytes) };
        if (refuse(queue.send(what.session, `${what.prefix}${i}`, command, now))) then.accepted += 1;
      }
    },
    restore: () => {
      const entries = what.map(({ id, stored }: any) => ({ id, stored: textOf(stored) }));
      const leftOut = queue.restore(entries, now);
      if (leftOut.length) then.left_out = leftOut;
    },
    response: () => queue.handleResponse(what.id, what.attempt, responseOf(what), jitter, now),
    recorded: () => queue.handleRecorded(what.session, what.id, what.seq, what.run, now),
    removed: () => queue.handleRemoved(what.id, now),
    login: () => queue.handleLogin(now),
    offline: () => queue.handleOffline(now),
    online: () => queue.handleOnline(now),
    hidden: () => queue.handleHidden(now),
    wake: () => queue.handleWake(now),
    timeout: () => queue.handleTimeout(jitter, now),
    send_again: () => (then.done = queue.sendAgain(what.id, now)),
    discard: () => (then.done = queue.discard(what.id, now)),
    dismiss: () => (then.done = queue.dismiss(what.id)),
  };
  verbs[verb]!();
  const actions: core.PostAction[] = [];
  for (let action = queue.pollAction(); action; action = queue.pollAction()) actions.push(action);
  if (actions.length >= MAX_ACTIONS) then.action_count = actions.length;
  else if (actions.length) then.actions = actions.map((action) => actionJson(queue, action));
  const timeout = queue.pollTimeout();
  if (timeout !== undefined) then.timeout = timeout;
  if (queue.needsLogin) then.needs_login = true;
  return then;
}

function actionJson(queue: core.PostQueue, { kind, id, ...rest }: core.PostAction): any {
  const entry = queue.entry(id);
  if (kind === "store") {
    const stored = core.toStored(entry!);
    const bytes = new TextEncoder().encode(stored).length;
    return bytes > MAX_STORED ? { store: id, stored_bytes: bytes } : { store: id, stored: JSON.parse(stored) };
  }
  if (kind === "show") return { show: id, state: entry?.state ?? null };
  return { [kind]: id, ...rest };
}
