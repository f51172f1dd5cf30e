/** Who needs somebody. */
import { describe, expect, it } from "vitest";
import { look, meet, needOf, readSeen, receive } from "../src/state/seen.ts";
import { bell, session } from "./session.ts";

describe("R47: who needs you", () => {
  it("whoever called, until somebody looks", () => {
    const ringing = session({ call: bell });
    expect(needOf(ringing, undefined)).toEqual({ kind: "bell" });
    expect(needOf(ringing, look(ringing))).toBeUndefined();
    const again = session({ call: { at: "2026-11-15T18:02:00Z", kind: "notify", text: "done" } });
    expect(needOf(again, look(ringing))).toEqual({ kind: "notify", text: "done" });
  });

  it("whoever ended while this device did not look, if it knew that life", () => {
    const ended = session({ state: "exited", exit: { code: 1, signal: null } });
    expect(needOf(ended, undefined)).toBeUndefined();
    expect(needOf(ended, meet(undefined, session()))).toEqual({ kind: "ended" });
    expect(needOf(ended, look(ended))).toBeUndefined();
    expect(needOf(ended, meet(undefined, session({ epoch: "00000000" })))).toBeUndefined();
  });

  it("a restarted session is another life", () => {
    const seen = look(session({ state: "exited", call: bell }));
    const again = meet(seen, session({ epoch: "11111111" }));
    expect(again).toEqual({ call: bell.at, epoch: "11111111" });
    expect(needOf(session({ state: "exited", epoch: "11111111" }), again)).toEqual({ kind: "ended" });
  });

  it("forgets sessions that are gone, and survives what it cannot read", () => {
    expect(receive({ gone: { epoch: "9f3c61d2" } }, [session()])).toEqual({ k3v9x0q2m7aa: { epoch: "9f3c61d2" } });
    for (const stored of [undefined, "", "{", "[]", "null", '{"a":1}']) expect(readSeen(stored)).toEqual({});
  });
});
