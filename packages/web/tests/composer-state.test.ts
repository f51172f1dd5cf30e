/** The composer of a session: what is written leaves it only once it is in the queue, and comes back when that is certain. */
import type { Command, PostEntry, SendResult, UploadReply } from "@bowline/client";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { ComposerState } from "../src/conversation/composer/composer.svelte.ts";
import type { PromptItem } from "../src/conversation/transcript.ts";

const posted: Command[] = [];
const resumed: string[] = [];
const dismissed: string[] = [];
const discarded: string[] = [];
let entries: PostEntry[] = [];
let full = false;
let uploads: { answer: (reply: UploadReply) => void; fail: (error: Error) => void }[] = [];

vi.mock("../src/state/gateway.svelte.ts", () => ({
  errorMessage: (error: Error) => error.message,
  gateway: {
    api: {
      upload: () => new Promise<UploadReply>((answer, fail) => uploads.push({ answer, fail })),
    },
  },
}));
vi.mock("../src/state/outbox.svelte.ts", () => ({
  outbox: () => ({
    entries,
    post: {
      send: (_: string, command: Command): SendResult => {
        if (full) return { ok: false, why: "session_full" };
        posted.push(command);
        return { ok: true, id: `c${posted.length}` };
      },
      dismiss: (id: string) => dismissed.push(id),
      discard: (id: string) => discarded.push(id),
    },
  }),
}));
vi.mock("../src/conversation/composer/resume.svelte.ts", () => ({ resume: (id: string) => resumed.push(id) }));

vi.stubGlobal("document", { baseURI: "https://host/lab/" });
const { composerOf, leaveComposer } = await import("../src/conversation/composer/composer.svelte.ts");
const { deviceStore } = await import("../src/state/device.svelte.ts");

let sessions = 0;
let composer: ComposerState;
const stored = () => deviceStore.get(`bowline.draft.${composer.session} /lab/`);
const settle = () => new Promise((done) => setTimeout(done));
const prompt = (text: string, attachments: string[] = []): PromptItem => ({
  kind: "prompt",
  key: "prompt r1",
  seq: 1,
  at: "",
  run: "r1",
  command: "c",
  text,
  attachments,
  by: "me",
  unstarted: false,
});
function write(text: string) {
  composer.text = text;
  composer.handleInput();
}

beforeEach(() => {
  posted.length = resumed.length = dismissed.length = discarded.length = 0;
  entries = [];
  full = false;
  uploads = [];
  composer = composerOf(`s${++sessions}`);
  composer.users += 1;
});

describe("sending", () => {
  test("clears the composer and its draft, once the queue has the message", () => {
    write("Fix it");
    composer.writeDraft();
    expect(stored()).toBe('{"text":"Fix it","files":[]}');
    expect(composer.send(false)).toBe(true);
    expect(posted).toEqual([{ type: "prompt", text: "Fix it" }]);
    expect([composer.text, composer.problem, stored()]).toEqual(["", "", undefined]);
    expect(composer.send(false), "there is nothing to send").toBe(false);
    expect(posted).toHaveLength(1);
  });

  test("a message that the queue refuses stays, with the reason", () => {
    full = true;
    write("Fix it");
    expect(composer.send(false)).toBe(false);
    expect(composer.text).toBe("Fix it");
    expect(composer.problem).toMatch(/Too many messages/);
    write("Fix it now");
    expect(composer.problem).toBe("");
  });

  test("an ended session is resumed for it", () => {
    write("Go on");
    composer.send(true);
    expect(resumed).toEqual(["c1"]);
  });

  test("waits for uploads, and sends their ids", async () => {
    composer.attach([new File(["x"], "a.txt")]);
    expect(composer.hasContent).toBe(true);
    expect(composer.send(false)).toBe(false);
    expect(composer.problem).toMatch(/still being uploaded/);
    uploads[0]!.answer({ id: "id-a", name: "a.txt", type: "text/plain", bytes: 1 });
    await settle();
    composer.writeDraft();
    expect(stored(), "files survive a reload once they are uploaded").toContain("id-a");
    expect(composer.send(false)).toBe(true);
    expect(posted).toEqual([{ type: "prompt", text: "", attachments: ["id-a"] }]);
    expect(composer.uploads.list).toEqual([]);
  });

  test("a setting that failed does not hold what follows, but a withdrawal leaves it alone", () => {
    const failed = (id: string, session: string, type: string): PostEntry => {
      const state = { name: "failed", reason: "expired", message: "" } as const;
      return { id, session, command: { type }, made: 1, order: 1, state };
    };
    const { session } = composer;
    entries = [failed("a", session, "set"), failed("b", "another", "set"), failed("c", session, "prompt")];
    composer.withdraw("r1");
    expect(discarded).toEqual([]);
    write("Fix it");
    composer.send(false);
    expect(discarded).toEqual(["a"]);
    composer.set({ type: "set", mode: "plan" });
    expect(discarded).toEqual(["a", "a"]);
  });

  test("files that cannot be attached are named", () => {
    composer.attach([new File([], "empty.txt")]);
    expect(composer.problem).toBe("“empty.txt” is empty.");
  });
});

describe("more instructions for a run", () => {
  test("are sent as such, without files", () => {
    write("Also the tests");
    composer.uploads.put([{ id: "f", name: "f", bytes: 1 }]);
    expect(composer.steer("r1")).toBe(false);
    expect(composer.problem).toMatch(/Files cannot be added/);
    composer.uploads.clear();
    expect(composer.steer("r1")).toBe(true);
    expect(posted).toEqual([{ type: "steer", run: "r1", text: "Also the tests" }]);
    expect(composer.text).toBe("");
  });

  test("that the run could not take become a message", () => {
    write("something else");
    composer.sendAsPrompt("steer-1", "Also the tests");
    expect(posted).toEqual([{ type: "prompt", text: "Also the tests" }]);
    expect(dismissed).toEqual(["steer-1"]);
    expect(composer.text).toBe("something else");
    full = true;
    composer.sendAsPrompt("steer-2", "And this");
    expect(dismissed).toEqual(["steer-1"]);
  });
});

describe("editing a prompt that waits", () => {
  test("takes it back once its withdrawal is certain, before what is written here", () => {
    write("my draft");
    const item = prompt("Fix it", ["0123456789abcdef-a.png"]);
    composer.edit(item);
    composer.edit(item);
    expect(posted).toEqual([{ type: "abort", run: "r1" }]);
    expect(composer.text).toBe("my draft");
    composer.finishEdit("r1", "withdrawn");
    expect(composer.text).toBe("Fix it\n\nmy draft");
    expect(composer.uploads.list.map(({ name }) => name)).toEqual(["a.png"]);
    composer.finishEdit("r1", "withdrawn");
    expect(composer.text).toBe("Fix it\n\nmy draft");
  });

  test("leaves the composer alone if the agent had begun with it", () => {
    write("my draft");
    composer.edit(prompt("Fix it"));
    composer.finishEdit("r1", "started");
    expect(composer.text).toBe("my draft");
    expect(composer.problem).toMatch(/had already begun/);
  });

  test("does not begin if the withdrawal is refused", () => {
    full = true;
    composer.edit(prompt("Fix it"));
    expect(composer.edits.size).toBe(0);
    expect(composer.problem).toMatch(/Too many messages/);
  });
});

describe("leaving the page of a session", () => {
  test("writes the draft, and keeps what is written for the way back", () => {
    write("half a sent");
    leaveComposer(composer);
    expect(stored()).toContain("half a sent");
    expect(composerOf(composer.session)).toBe(composer);
  });

  test("an empty composer begins anew, with what another tab has written", () => {
    leaveComposer(composer);
    deviceStore.set(`bowline.draft.${composer.session} /lab/`, '{"text":"from another tab","files":[]}');
    expect(composerOf(composer.session).text).toBe("from another tab");
  });

  test("an empty composer stays while a prompt is to come back to it", () => {
    composer.edit(prompt("Fix it"));
    leaveComposer(composer);
    expect(composerOf(composer.session)).toBe(composer);
    composer.users += 1;
    composer.finishEdit("r1", "withdrawn");
    expect(composer.text).toBe("Fix it");
    leaveComposer(composer);
    expect(stored()).toContain("Fix it");
  });

  test("a composer that did not change writes nothing", () => {
    write("mine");
    composer.writeDraft();
    deviceStore.set(`bowline.draft.${composer.session} /lab/`, '{"text":"theirs","files":[]}');
    composer.writeDraft();
    expect(stored()).toContain("theirs");
    expect(composer.text).toBe("mine");
    composer.send(false);
    expect(stored(), "sending does not remove what the other tab has written").toContain("theirs");
  });

  test("one that is shown twice stays until both are gone", () => {
    composer.users += 1;
    leaveComposer(composer);
    expect(composerOf(composer.session)).toBe(composer);
    leaveComposer(composer);
    expect(composerOf(composer.session)).not.toBe(composer);
  });
});
