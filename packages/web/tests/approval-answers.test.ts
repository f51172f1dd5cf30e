/** Tests the answers that the page gives to approvals: their commands, and what their cards say about them. */
import type { ApprovalOption, Command, Outcome, PostEntry, PostState } from "@bowline/client";
import { describe, expect, it } from "vitest";
import {
  answerCommand,
  approvalKey,
  denyCommand,
  MAX_ANSWERS,
  nextAnswers,
  optionCommand,
  outcomeText,
  progressOf,
} from "../src/approvals/answer.ts";
import { approval } from "./session.ts";

const SESSION = "k3v9x0q2m7aa";
const KEY = approvalKey(SESSION, "a0");
const APPROVE: Command = { type: "approve", approval: "a0", option: "once" };
const DELIVERED: PostState = { name: "delivered", how: "accepted", seq: 7 };
const FAILED: PostState = { name: "failed", reason: "expired", message: "no network" };

let order = 0;
function entry(state: PostState, command: Command = APPROVE, changes: Partial<PostEntry> = {}): PostEntry {
  order += 1;
  return { id: `id-${order}`, session: SESSION, command, made: 0, order, state, ...changes };
}

/** What the card says about an entry that is in the queue. */
const progress = (state: PostState, command: Command = APPROVE, changes = {}) =>
  progressOf({ entry: entry(state, command), queued: true }, approval(changes));

describe("R36: the command of an answer", () => {
  const options: ApprovalOption[] = [
    { id: "yes", kind: "allow_once", label: "Allow" },
    { id: "yes2", kind: "allow_once", label: "Allow, and stop" },
    { id: "all", kind: "allow_always", label: "Always allow" },
    { id: "no", kind: "reject_once", label: "Deny" },
    { id: "stop", kind: "reject_once", label: "Deny and stop" },
    { id: "never", kind: "reject_always", label: "Always block" },
  ];

  it("names the option by its id, because several have the same kind", () => {
    const asked = approval({ options });
    expect(options.map((option) => optionCommand(asked, option))).toEqual([
      { type: "approve", approval: "a0", option: "yes" },
      { type: "approve", approval: "a0", option: "yes2" },
      { type: "approve", approval: "a0", option: "all" },
      { type: "deny", approval: "a0" },
      { type: "deny", approval: "a0", option: "stop" },
      { type: "deny", approval: "a0", option: "never" },
    ]);
  });

  it("denies with a reason, if there is one", () => {
    expect(denyCommand(approval())).toEqual({ type: "deny", approval: "a0" });
    expect(denyCommand(approval(), "  ")).toEqual({ type: "deny", approval: "a0" });
    expect(denyCommand(approval(), " use make ")).toEqual({ type: "deny", approval: "a0", reason: "use make" });
  });

  it("answers questions by their ids", () => {
    expect(answerCommand(approval(), { q: ["a"] })).toEqual({ type: "answer", approval: "a0", answers: { q: ["a"] } });
  });
});

describe("R36: what a card says about an answer", () => {
  it("on its way: what was chosen, and what it waits for", () => {
    expect(progress({ name: "waiting", why: "turn" })).toEqual({ name: "sending", text: "“Allow once”: sending…" });
    expect(progress({ name: "waiting", why: "offline" }).text).toBe("“Allow once”: waiting for the network");
    expect(progress({ name: "waiting", why: "login" }).text).toBe("“Allow once”: waiting for your login");
    expect(progress({ name: "sending", tries: 0 }).text).toBe("“Allow once”: sending…");
    expect(progress({ name: "sending", tries: 2 }).text).toBe("“Allow once”: sending again…");
    expect(progress({ name: "retrying", at: 3000, tries: 1, message: "no answer" })).toEqual({
      name: "sending",
      text: "“Allow once”: not sent yet (no answer)",
      retryAt: 3000,
    });
    const deny: Command = { type: "deny", approval: "a0" };
    expect(progress({ name: "sending", tries: 0 }, deny).text).toBe("Deny: sending…");
    expect(progress({ name: "sending", tries: 0 }, deny, { kind: "question" }).text).toBe("Do not answer: sending…");
  });

  it("delivered: the approval is closed, by this page or by another client", () => {
    expect(progress(DELIVERED)).toEqual({ name: "closed", text: "Allowed: Allow once" });
    expect(progress(DELIVERED, { type: "deny", approval: "a0" }).text).toBe("Denied");
    expect(progress(DELIVERED, { type: "deny", approval: "a0", option: "no" }).text).toBe("Denied: Reject");
    expect(progress(DELIVERED, { type: "answer", approval: "a0", answers: {} }).text).toBe("Answered");
    const late = (ending: { readonly outcome?: Outcome; readonly by?: string }) =>
      progress({ name: "delivered", how: "already_answered", ...ending }).text;
    expect(late({ outcome: "allowed", by: "phone" })).toBe("Already allowed by phone");
    expect(late({ outcome: "denied", by: "local" })).toBe("Already denied by a terminal on the server");
    expect(late({ outcome: "withdrawn" })).toBe("Already withdrawn by the agent");
    expect(late({ outcome: "aborted" })).toBe("Not needed any more: the run was stopped");
    expect(late({})).toBe("Already closed");
  });

  it("failed: why, and whether it can be sent again", () => {
    expect(progress(FAILED)).toEqual({
      name: "failed",
      text: "“Allow once”: not sent within ten minutes (no network)",
      again: true,
    });
    const refused: PostState = { name: "failed", reason: "refused", code: "not_allowed", message: "read only" };
    expect(progress(refused)).toMatchObject({ text: "“Allow once”: refused (read only)", again: true });
    expect(progress({ name: "failed", reason: "session_gone", message: "" })).toMatchObject({ again: false });
  });

  it("how others closed it", () => {
    expect(outcomeText("allowed", "phone", "permission")).toBe("Allowed by phone");
    expect(outcomeText("allowed", "phone", "question")).toBe("Answered by phone");
    expect(outcomeText("expired", undefined, "plan")).toBe("Denied, because no answer came in time");
  });
});

describe("R36: a card never shows open buttons for an approval that this page has answered", () => {
  const after = (...steps: (readonly PostEntry[])[]) => {
    let answers: ReturnType<typeof nextAnswers> = new Map();
    for (const entries of steps) answers = nextAnswers(answers, entries);
    return answers;
  };

  it("while the answer is on its way, and after it has left the queue while the board still lists the approval", () => {
    const sending = entry({ name: "sending", tries: 0 });
    const delivered = { ...sending, state: DELIVERED };
    expect(after([sending]).get(KEY)).toEqual({ entry: sending, queued: true });
    expect(after([sending], [delivered], []).get(KEY)).toEqual({ entry: delivered, queued: false });
    // Another tab has settled it.
    const settled = after([sending], []).get(KEY)!;
    expect(progressOf(settled, approval())).toEqual({ name: "closed", text: "Allowed: Allow once" });
  });

  it("but shows them again once the user has discarded an answer that failed", () => {
    const failed = entry(FAILED);
    expect(after([failed]).get(KEY)).toEqual({ entry: failed, queued: true });
    expect(after([failed], []).has(KEY)).toBe(false);
  });

  it("an answer that failed does not hide a newer one", () => {
    const [failed, sending, failedAgain] = [entry(FAILED), entry({ name: "sending", tries: 0 }), entry(FAILED)];
    expect(after([failed, sending]).get(KEY)?.entry).toBe(sending);
    expect(after([sending, failed]).get(KEY)?.entry).toBe(sending);
    expect(after([failed, failedAgain]).get(KEY)?.entry).toBe(failedAgain);
  });

  it("ignores other commands and other sessions, and forgets the oldest answers", () => {
    const answers = after([
      entry(DELIVERED, { type: "prompt", text: "x" }),
      entry(DELIVERED, { type: "abort", run: "r0" }),
      entry(DELIVERED, { type: "approve", approval: 7 }),
      { ...entry(DELIVERED), command: undefined },
      entry(DELIVERED, APPROVE, { session: "another" }),
    ]);
    expect([...answers.keys()]).toEqual(["another/a0"]);
    const many = Array.from({ length: 300 }, (_, i) => entry(DELIVERED, { type: "deny", approval: `a${i}` }));
    const left = after(many, []);
    expect([left.size, left.has(approvalKey(SESSION, "a0")), left.has(approvalKey(SESSION, "a299"))]).toEqual([
      MAX_ANSWERS,
      false,
      true,
    ]);
  });
});
