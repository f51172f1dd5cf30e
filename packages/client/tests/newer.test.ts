/** A page that was loaded before an upgrade: it reads what a newer gateway sends, and shows what it can. */
import { describe, expect, test } from "vitest";
import * as core from "../src/core/index.js";
import { A, openJournals } from "./sim/conversations.js";
import { description } from "./sim/gateway.js";
import { piece } from "./sim/journal.js";
import { load } from "./vectors.js";

const FUTURE = "from_the_future";
/** Strings that name something, or without whose meaning the rest cannot be read. An unknown one makes a message malformed. */
const IDENTIFIERS = ["id", "name", "client", "session", "epoch", "run", "approval", "verdict", "scope", "lag", "was"];

/** A copy of a list with another value at one place. */
const replaced = (list: any[], at: number, value: any) => list.map((item, i) => (i === at ? value : item));

/** A copy of a value for each object in it, with one more field there. */
function withMoreFields(value: any, free: (key: string) => boolean): any[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => withMoreFields(item, free).map((changed) => replaced(value, i, changed)));
  }
  if (typeof value !== "object" || value === null) return [];
  const nested = Object.entries(value).flatMap(([key, item]) =>
    free(key) ? [] : withMoreFields(item, free).map((changed) => ({ ...value, [key]: changed })),
  );
  return [{ ...value, [FUTURE]: { type: FUTURE, list: [1] } }, ...nested];
}

/** A copy of a value for each string in it, with an unknown one in its place, and the key of that. */
function withUnknownStrings(value: any, key = ""): { key: string; changed: any }[] {
  if (typeof value === "string") return [{ key, changed: FUTURE }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) =>
    withUnknownStrings(item, Array.isArray(value) ? key : name).map(({ key, changed }) => ({
      key,
      changed: Array.isArray(value) ? replaced(value, Number(name), changed) : { ...value, [name]: changed },
    })),
  );
}

const unreadable: unknown[] = [];
describe.each([
  ["messages/to_client.json", core.readServerMessage],
  ["messages/board.json", core.boardReader((error) => unreadable.push(error))],
] as const)("R20: %s of a newer gateway", (file, read) => {
  test.each(load(file).good as any[])("$name", ({ json }) => {
    unreadable.length = 0;
    const known = read(json);
    // What is in an event is not read here.
    const more = withMoreFields(json, (key) => key === "event");
    expect(more.length).toBeGreaterThan(0);
    for (const changed of more) expect(read(changed), JSON.stringify(changed)).toEqual(known);
    for (const { key, changed } of withUnknownStrings(json)) {
      if (key === "type") expect(() => read(changed)).not.toThrow();
      else if (!IDENTIFIERS.includes(key)) expect(read(changed), `${key}: ${JSON.stringify(changed)}`).toBeDefined();
    }
  });
});

describe("R20: events of a newer session process", () => {
  const records: any[] = load("agent/fold.json").written.flatMap(({ steps }: any) =>
    steps.map(({ record }: any) => record),
  );
  // The agent's own data is passed on whole.
  const isFree = (key: string) => ["input", "content", "locations", "entries", "message"].includes(key);

  test("more fields change nothing", () => {
    for (const { event } of records) {
      const known = core.readEvent(event);
      for (const changed of withMoreFields(event, isFree)) {
        expect(core.readEvent(changed), JSON.stringify(changed)).toEqual(known);
      }
    }
  });

  test("an unknown value costs at most itself, and an unknown type only its event", () => {
    for (const { event } of records) {
      if (core.readEvent(event).type === "unknown") continue;
      for (const { key, changed } of withUnknownStrings(event)) {
        const read = core.readEvent(changed);
        if (key === "type" && changed.type === FUTURE) expect(read).toEqual({ type: "unknown" });
        else if (!IDENTIFIERS.includes(key)) expect(read.type, `${key}: ${JSON.stringify(event)}`).toBe(event.type);
        expect(() => core.fold(core.EMPTY_CONVERSATION, { seq: 0, at: "t", event: read })).not.toThrow();
      }
    }
  });

  test("a conversation counts each of them, keeps its connection, and goes on", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read();
    await world.advance(100);
    const changes = records.flatMap(({ event }) => withUnknownStrings(event).map(({ changed }) => changed));
    // An epoch that is not one could not be resumed from. Of the others, some are enough.
    const appended = changes.filter(({ epoch }, i) => epoch === undefined && i % 9 === 0);
    for (const [i, event] of appended.entries()) {
      journal.append(event);
      gateway.send({ type: FUTURE, session: A, seq: i });
      gateway.send({ type: "error", code: FUTURE, message: "x" });
    }
    gateway.send({ type: "session", session: { ...description(journal), kind: FUTURE, state: FUTURE } });
    gateway.pump();
    // The simulated network carries one message each millisecond or so.
    await world.advance(5_000);
    journal.append(piece("the end"));
    gateway.pump();
    await world.advance(200);
    reader.expectUpToDate(journal, "everything was counted");
    expect([reader.stateNames, reader.resets, gateway.requests.length]).toEqual([["open"], 1, 1]);
  });
});

describe("R20: the answer of a newer gateway to a command", () => {
  const answer = (status: number, code: string, body: object) =>
    core.classifyResponse("c", { kind: "http", status, code, body: JSON.stringify(body) });

  test("an unknown refusal is final, and an unknown outcome is delivered", () => {
    for (const status of [400, 402, 404, 409, 418, 422, 451]) {
      expect(answer(status, FUTURE, { detail: "no" })).toEqual({
        class: "failed",
        failure: { reason: "refused", code: FUTURE, message: "no" },
      });
    }
    expect(answer(409, "already_answered", { outcome: FUTURE, by: "x" })).toMatchObject({
      class: "delivered",
      delivery: { how: "already_answered", outcome: "unknown" },
    });
    expect(answer(202, FUTURE, { id: "c", seq: 7, status: FUTURE, lane: 1 })).toMatchObject({ class: "delivered" });
  });

  test("an entry that a newer page has stored in a state of its own has failed, and is not sent", () => {
    const entry = { version: 1, id: "c", session: A, order: 1, made: 1, command: { type: "prompt", text: "x" } };
    for (const stored of [
      { ...entry, version: 2 },
      { ...entry, failed: { reason: FUTURE, message: "x" } },
      { ...entry, failed: FUTURE },
    ]) {
      expect(core.fromStored("c", JSON.stringify(stored)).state).toMatchObject({
        name: "failed",
        reason: "unreadable",
      });
    }
    expect(core.fromStored("c", JSON.stringify({ ...entry, mood: FUTURE })).state.name).toBe("waiting");
  });
});
