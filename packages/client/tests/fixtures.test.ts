/** The golden vectors in fixtures/: the same results as the Rust state machines, step by step. */
import { describe, expect, test } from "vitest";
import * as core from "../src/core/index.js";
import { fields, hex, load, unhex } from "./vectors.js";

describe("frames", () => {
  const file = load("frames/frames.json");

  test.each(file.frames as any[])("$name", (vector) => {
    const bytes = fields(vector);
    const { frame, used } = core.decodeFrame(bytes)!;
    expect(used).toBe(bytes.length);
    const decoded = typeof frame === "string" ? { kind: "text", text: frame } : { kind: "binary", hex: hex(frame) };
    expect(decoded).toEqual(vector.decoded);
    expect(hex(core.encodeFrame(frame))).toBe(hex(bytes));
  });

  test.each(file.incomplete as any[])("incomplete: $why", (vector) => {
    expect(core.decodeFrame(unhex(vector.hex))).toBeUndefined();
  });

  test.each(file.bad as any[])("bad: $why", (vector) => {
    expect(() => core.decodeFrame(unhex(vector.hex))).toThrow(expect.objectContaining({ code: vector.error }));
  });
});

describe("payloads", () => {
  const file = load("frames/payloads.json");
  const isSafe = (vector: any) => BigInt(vector.decoded.offset ?? 0) <= BigInt(Number.MAX_SAFE_INTEGER);
  const [safe, unsafe] = [file.payloads.filter(isSafe), file.payloads.filter((vector: any) => !isSafe(vector))];

  test.each(safe as any[])("$name", (vector) => {
    const binary = core.decodeBinary(fields(vector));
    const { bytes, ...rest } = binary;
    const decoded = { ...rest, ...("offset" in rest ? { offset: String(rest.offset) } : {}), hex: hex(bytes) };
    expect(decoded).toEqual(vector.decoded);
    expect(hex(core.encodeBinary(binary))).toBe(hex(fields(vector)));
  });

  test.each(unsafe as any[])("an offset above 2^53 - 1 is refused, not rounded: $name", (vector) => {
    expect(() => core.decodeBinary(fields(vector))).toThrow(/above 2\^53 - 1/);
  });

  test("some vectors have offsets above 2^53 - 1", () => expect(unsafe).not.toHaveLength(0));

  test.each(file.bad as any[])("bad: $why", (vector) => {
    expect(() => core.decodeBinary(unhex(vector.hex))).toThrow(core.FrameError);
  });
});

function refuse(error: core.UnreadableSession): never {
  throw error;
}

describe.each([
  ["messages/to_server.json", core.readClientMessage],
  ["messages/to_client.json", core.readServerMessage],
  ["messages/board.json", core.boardReader(refuse)],
] as const)("%s", (name, read) => {
  const file = load(name);

  test.each(file.good as any[])("$name", (vector) =>
    expect(read(vector.json)).toEqual(vector.canonical ?? vector.json),
  );
  test.each(file.unknown as any[])("unknown: $why", (vector) => expect(read(vector.json)).toBeUndefined());
  test.each(file.bad as any[])("bad: $why", (vector) => expect(() => read(vector.json)).toThrow());
});

function closedOf(value: any): core.ConnectionEnd {
  if (value === "failed" || (value.code === undefined && value.status === undefined)) return { kind: "failed" };
  if (value.code !== undefined) {
    return { kind: "code", code: value.code, reason: value.reason ?? "", done: value.done ?? false };
  }
  const retryAfter = value.retry_after == null ? undefined : value.retry_after * 1000;
  return { kind: "refused", status: value.status, fromGateway: value.bowline_code, retryAfter };
}

describe("policy", () => {
  test.each(load("policy/classifier.json").cases as any[])("R2: $closed is $class", (vector) => {
    const { closed, why: _, not_before, ...expected } = vector;
    const outcome: any = core.classify(closedOf(closed));
    const { notBefore, ...rest } = outcome;
    expect(rest).toEqual(expected);
    expect(notBefore).toBe(not_before === undefined ? undefined : not_before * 1000);
  });

  test("every close code has the class that its range says", () => {
    for (let code = 0; code <= 0xffff; code++) {
      const { class: actual } = core.classify({ kind: "code", code, reason: "", done: false });
      const permanent = ["permanent", "needs_login", "superseded"].includes(actual);
      const listed = [1002, 1003, 1007, 1008, 1009].includes(code) || (code >= 4400 && code <= 4499);
      if (permanent !== (listed && ![4408, 4425, 4429].includes(code))) expect.fail(`close code ${code} is ${actual}`);
    }
  });

  test("backoff", () => {
    const { presets, cases } = load("policy/backoff.json");
    expect(presets).toEqual({ native: core.NATIVE, browser: core.BROWSER });
    for (const vector of cases) {
      const ms = core.delay(vector.preset === "native" ? core.NATIVE : core.BROWSER, vector.n, vector.jitter);
      expect(ms === undefined ? null : Math.round(ms), JSON.stringify(vector)).toBe(vector.ms ?? null);
    }
  });
});

describe("link/client.json", () => {
  test.each(load("link/client.json").transcripts as any[])("$name", ({ config, steps }) => {
    const client = new core.Client({ ...config, renderedEvery: config.rendered_every });
    for (const [i, step] of steps.entries()) {
      expect(actOnClient(client, step.do, step.at), `step ${i}: ${JSON.stringify(step.do)}`).toEqual(step.then);
    }
  });
});

/** Performs one step, then polls until there is nothing more. */
function actOnClient(client: core.Client, action: any, now: number): any {
  const [[verb, what]] = Object.entries<any>(action) as [[string, any]];
  const then: any = {};
  const verbs: Record<string, () => void> = {
    connected: () => client.handleConnected(now),
    disconnected: () => client.handleDisconnected(now),
    text: () => client.handleFrame(JSON.stringify(what), now),
    binary: () => client.handleFrame(unhex(what), now),
    rendered: () => client.handleRendered(what),
    input: () => {
      const bytes = unhex(what);
      const why = client.handleInput(bytes, now);
      const names = { full: "Full", "read-only": "ReadOnly", ended: "Ended" };
      then.taken = why ? names[why] : bytes.length;
    },
    resize: () => client.handleResize(what),
    claim_size: () => client.claimSize(what),
    repaint: () => client.repaint(),
    command: () => expect(client.command(what.id, what.command, now)).toBeUndefined(),
    wake: () => client.handleWake(now),
    timeout: () => client.handleTimeout(now),
    send_unsent: () => client.sendUnsent(now),
    discard_unsent: () => client.discardUnsent(),
    ended: () => client.handleEnded(now),
  };
  verbs[verb]!();
  const events = poll(() => client.pollEvent()).map(eventJson);
  const transmits = poll(() => client.pollTransmit(now)).map(transmitJson);
  if (events.length) then.events = events;
  if (transmits.length) then.transmits = transmits;
  const timeout = client.pollTimeout();
  if (timeout !== undefined) then.timeout = timeout;
  return then;
}

function transmitJson(transmit: core.Transmit): any {
  if (transmit.kind === "close") return { close: transmit.code };
  if (typeof transmit.frame === "string") return { text: JSON.parse(transmit.frame) };
  const binary = core.decodeBinary(transmit.frame);
  if (binary.kind !== "input") throw new Error(`a client must send input, not ${binary.kind}`);
  return { input: { offset: binary.offset, hex: hex(binary.bytes) } };
}

function eventJson(event: core.ClientEvent): any {
  switch (event.kind) {
    case "attached":
      return { attached: { verdict: event.attached.verdict, offset: event.attached.offset } };
    case "snapshot_begin": {
      const { kind: _, missed, ...rest } = event;
      return { snapshot_begin: { ...rest, missed: missed ?? null } };
    }
    case "snapshot_part":
      return { snapshot_part: hex(event.bytes) };
    case "snapshot_end":
      return { snapshot_end: event.offset };
    case "output":
      return { output: { offset: event.offset, hex: hex(event.bytes) } };
    case "resize":
      return { resize: event.size };
    case "exit":
      return { exit: { ...event.status, offset: event.offset } };
    case "closing":
      return { closing: event.code };
    case "message":
      return { message: event.message };
    case "unsent":
      return { unsent: { hex: hex(event.unsent.bytes), doubtful: event.unsent.doubtful } };
    case "command_unsent":
      return { command_unsent: event.id };
    case "state":
      return { state: event.state };
  }
}

describe("link/reconnect.json", () => {
  test.each(load("link/reconnect.json").transcripts as any[])("$name", ({ config, steps }) => {
    const preset = config.preset === "browser" ? core.BROWSER : core.NATIVE;
    const reconnector = new core.Reconnector("tries" in config ? { ...preset, tries: config.tries } : preset);
    for (const [i, step] of steps.entries()) {
      const then = actOnReconnector(reconnector, step.do, step.at);
      expect(then, `step ${i}: ${JSON.stringify(step.do)}`).toEqual(step.then);
    }
  });
});

function actOnReconnector(reconnector: core.Reconnector, action: any, now: number): any {
  const [[verb, what]] = Object.entries<any>(action) as [[string, any]];
  const [generation, jitter] = [what?.generation ?? 0, what?.jitter ?? 0];
  const verbs: Record<string, () => void> = {
    start: () => reconnector.start(now),
    opened: () => reconnector.handleOpened(generation),
    attached: () => reconnector.handleAttached(generation, now),
    closed: () => reconnector.handleClosed(generation, closedOf(what), jitter, now),
    wake: () => reconnector.handleWake(now),
    hidden: () => reconnector.handleHidden(now),
    redial: () => reconnector.redial(now),
    timeout: () => reconnector.handleTimeout(jitter, now),
    ended: () => reconnector.handleEnded(),
  };
  verbs[verb]!();
  const then: any = {};
  const actions = poll(() => reconnector.pollAction()).map(actionJson);
  if (actions.length) then.actions = actions;
  const timeout = reconnector.pollTimeout();
  if (timeout !== undefined) then.timeout = timeout;
  return then;
}

function actionJson(action: core.Action): any {
  switch (action.kind) {
    case "dial":
      return { dial: action.generation, ...(action.freshTicket ? { fresh_ticket: true } : {}) };
    case "drop":
      return { drop: action.generation };
    case "show": {
      const { name, ...rest } = action.status;
      return { show: name, ...rest };
    }
  }
}

function poll<T>(next: () => T | undefined): T[] {
  const all: T[] = [];
  for (let item = next(); item !== undefined; item = next()) all.push(item);
  return all;
}
