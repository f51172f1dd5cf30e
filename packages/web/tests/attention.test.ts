/** Tests which sessions need attention. */
import { describe, expect, it } from "vitest";
import {
  attentionReason,
  openApprovals,
  parseViewRecords,
  recordBoard,
  recordUpdate,
  recordView,
} from "../src/state/attention.ts";
import { attentionText } from "../src/session/text.ts";
import { agentSession, approval, bell, session } from "./session.ts";

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

describe("R36: agents that wait for an answer", () => {
  it("need attention until the approval is closed, however often it is viewed", () => {
    const waiting = agentSession([approval()], { call: bell });
    expect(attentionReason(waiting, undefined)).toEqual({ kind: "approval", approvals: [approval()] });
    expect(attentionReason(waiting, recordView(waiting))).toEqual({ kind: "approval", approvals: [approval()] });
    expect(attentionReason(agentSession([]), undefined)).toBeUndefined();
    expect(attentionReason(agentSession([], { call: bell }), undefined)).toEqual({ kind: "bell" });
  });

  it("do not once the session has ended: what it lists cannot be answered", () => {
    for (const state of ["lost", "exited"] as const)
      expect(openApprovals(agentSession([approval()], { state }))).toEqual([]);
    expect(openApprovals(agentSession([approval()], { state: "unknown" }))).toHaveLength(1);
    expect(openApprovals(session())).toEqual([]);
  });

  it("say what they ask, in one bounded line", () => {
    const text = (...changes: Parameters<typeof approval>) => {
      const waiting = agentSession([approval(...changes)]);
      return attentionText(attentionReason(waiting, undefined)!, waiting);
    };
    expect(text()).toBe("Asks to run: npm test");
    expect(text({ detail: { command: "cd x &&\n\tmake" } })).toBe("Asks to run: cd x && make");
    expect(text({ detail: { command: "ls \u202elive\u0007" } })).toBe("Asks to run: ls \ufffdlive\ufffd");
    expect(text({ detail: { command: "x".repeat(100_000) } })).toBe(`Asks to run: ${"x".repeat(160)}…`);
    expect(text({ detail: {}, title: "Edit a.ts" })).toBe("Asks for permission: Edit a.ts");
    expect(text({ detail: {}, title: "" })).toBe("Asks for permission");
    expect(text({ kind: "question" })).toBe("Has a question");
    expect(text({ kind: "plan" })).toBe("Asks for consent to its plan");
    expect(text({ kind: "unknown" })).toBe("Asks for something that this version does not know");
    const several = agentSession([approval(), approval({ id: "a1" })]);
    expect(attentionText(attentionReason(several, undefined)!, several)).toBe("2 approvals wait");
  });
});
