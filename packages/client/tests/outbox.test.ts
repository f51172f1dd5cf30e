/** The outbox against a simple model, and its cost when it is nearly full. */
import { expect, test } from "vitest";
import { OUTBOX } from "../src/core/config.js";
import { Outbox } from "../src/core/link/outbox.js";
import { Rng } from "./sim/rng.js";

const LIMIT = 50;

/** The same stream as arrays: the bytes from `acked` on, those reported as unsent, and those still to be reported. */
class Model {
  acked = 0;
  next = 0;
  kept: number[] = [];
  reported: number[] = [];
  unreported: number[][] = [];

  get room(): number {
    return LIMIT - this.kept.length - this.reported.length - this.unreported.flat().length;
  }

  makeUnsent(from: number): void {
    const bytes = this.kept.splice(from - this.acked);
    if (bytes.length > 0) this.unreported.push(bytes);
  }
}

test("R16: also at its limit, every byte is either sent once or reported unsent, in order", () => {
  let refused = 0;
  for (let seed = 1; seed <= 30; seed++) {
    const rng = new Rng(seed);
    const outbox = new Outbox(LIMIT);
    const model = new Model();
    let typed = 0;
    const steps: Record<string, () => void> = {
      type: () => {
        const bytes = Array.from({ length: 1 + rng.below(20) }, () => typed++ % 251);
        const fits = bytes.length <= model.room;
        expect(outbox.push(Uint8Array.from(bytes))).toBe(fits);
        if (fits) model.kept.push(...bytes);
        else refused += 1;
      },
      send: () => {
        const expected = model.kept.slice(model.next - model.acked);
        const popped = outbox.pop(0);
        expect(popped && [popped.offset, ...popped.bytes]).toEqual(
          expected.length > 0 ? [model.next, ...expected] : undefined,
        );
        model.next += expected.length;
      },
      ack: () => {
        const to = model.acked + rng.below(model.next - model.acked + 1);
        expect(outbox.handleAck(to, 0)).toBe(true);
        model.kept.splice(0, to - model.acked);
        model.acked = to;
      },
      late: () => {
        const to = model.acked + rng.below(model.next - model.acked + 1);
        outbox.resume(to, true);
        model.makeUnsent(to);
        model.next = to;
      },
      report: () => {
        const more = model.unreported.shift();
        if (more) model.reported.push(...more);
        expect(outbox.pollUnsent()?.bytes).toEqual(more && Uint8Array.from(model.reported));
      },
      send_unsent: () => {
        outbox.sendUnsent();
        model.kept.push(...model.reported.splice(0));
      },
      discard_unsent: () => {
        outbox.discardUnsent();
        model.reported = [];
      },
    };
    for (let i = 0; i < 200; i++) {
      steps[rng.pick(Object.keys(steps))]!();
      expect(outbox.length).toBe(model.kept.length);
      expect([...outbox.undecided.bytes]).toEqual([...model.reported, ...model.unreported.flat()]);
    }
  }
  expect(refused).toBeGreaterThan(30);
});

test("neither a key nor an ack copies the bytes that wait", () => {
  const outbox = new Outbox(OUTBOX);
  const keys = 20_000;
  expect(outbox.push(new Uint8Array(OUTBOX - keys))).toBe(true);
  // Copying all of them each time would take minutes.
  let accepted = 0;
  while (outbox.push(Uint8Array.of(accepted & 0xff))) accepted += 1;
  expect(accepted).toBe(keys);
  let acked = 0;
  for (let sent = outbox.pop(0); acked < OUTBOX / 2; sent = outbox.pop(0)) {
    const end = sent!.offset + sent!.bytes.length;
    while (acked < end && outbox.handleAck(acked + 1, 0)) acked += 1;
  }
  expect(outbox.length).toBe(OUTBOX - acked);
});
