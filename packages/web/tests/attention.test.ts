/** Tests which sessions need attention. */
import { describe, expect, it } from "vitest";
import { attentionReason, parseViewRecords, recordBoard, recordUpdate, recordView } from "../src/state/attention.ts";
import { bell, session } from "./session.ts";

describe("R47: sessions that need attention", () => {
  it("a call needs attention until the session is viewed", () => {
    const ringing = session({ call: bell });
    expect(attentionReason(ringing, undefined)).toEqual({ kind: "bell" });
    expect(attentionReason(ringing, recordView(ringing))).toBeUndefined();
    const again = session({ call: { at: "2026-11-15T18:02:00Z", kind: "notify", text: "done" } });
    expect(attentionReason(again, recordView(ringing))).toEqual({ kind: "notify", text: "done" });
  });

  it("an end needs attention if this device saw that epoch running, and has not viewed its end", () => {
    const ended = session({ state: "exited", exit: { code: 1, signal: null } });
    expect(attentionReason(ended, undefined)).toBeUndefined();
    expect(attentionReason(ended, recordUpdate(undefined, session()))).toEqual({ kind: "ended" });
    expect(attentionReason(ended, recordView(ended))).toBeUndefined();
    expect(attentionReason(ended, recordUpdate(undefined, session({ epoch: "00000000" })))).toBeUndefined();
  });

  it("the end of a restarted session needs attention again", () => {
    const record = recordView(session({ state: "exited", call: bell }));
    const again = recordUpdate(record, session({ epoch: "11111111" }));
    expect(again).toEqual({ call: bell.at, epoch: "11111111" });
    expect(attentionReason(session({ state: "exited", epoch: "11111111" }), again)).toEqual({ kind: "ended" });
  });

  it("drops records of forgotten sessions and malformed records", () => {
    expect(recordBoard({ gone: { epoch: "9f3c61d2" } }, [session()])).toEqual({ k3v9x0q2m7aa: { epoch: "9f3c61d2" } });
    for (const stored of [undefined, "", "{", "[]", "null", '{"a":1}']) expect(parseViewRecords(stored)).toEqual({});
  });
});
