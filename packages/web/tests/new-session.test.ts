/** Tests what the dialog for new sessions sends, remembers and shows of agents. */
import type { AgentStatus } from "@bowline/client";
import { describe, expect, it } from "vitest";
import { chooseAgent, problemParts, sortAgents } from "../src/board/new/agents.ts";
import { AgentList } from "../src/board/new/agents.svelte.ts";
import { parseChoices, recentFolders, withFolder } from "../src/board/new/choices.ts";
import { canLogIn, installPage, loginSession, loginSteps, seemsLoggedOut } from "../src/board/new/logins.ts";
import { type AgentForm, isConversation, LastRequest, type TerminalForm } from "../src/board/new/request.ts";
import { kindText } from "../src/session/text.ts";
import { modeText } from "../src/session/modes.ts";
import { session } from "./session.ts";

const SIZE = { cols: 120, rows: 40 };
const size = () => SIZE;

function terminal(changes: Partial<TerminalForm> = {}): TerminalForm {
  return { kind: "terminal", command: "", folder: "", name: "", ...changes };
}

function agentForm(changes: Partial<AgentForm> = {}): AgentForm {
  const texts = { folder: "", name: "", mode: "", model: "", conversation: "", prompt: "" };
  return { kind: "agent", agent: "claude", ...texts, ...changes };
}

function agent(name: string, changes: Partial<AgentStatus> = {}): AgentStatus {
  return { name, label: name, protocol: "acp", available: true, modes: [], ...changes };
}

describe("R54: the request for a new session", () => {
  it("has only what was entered, and the size of the window", () => {
    expect(new LastRequest().for(terminal(), size).body).toEqual({ size: SIZE });
    expect(new LastRequest().for(terminal(), () => undefined).body).toEqual({});
    const whole = terminal({ command: " make -j8 ", folder: " ~/app ", name: "build" });
    expect(new LastRequest().for(whole, size)).toMatchObject({
      kind: "terminal",
      body: { name: "build", argv: ["/bin/sh", "-c", "make -j8"], cwd: "~/app", size: SIZE },
    });
    expect(new LastRequest().for(agentForm({ prompt: " \n" }), size).body).toEqual({ agent: "claude", cwd: "~" });
  });

  it("has the settings of an agent, and the first prompt with an id of its own", () => {
    const form = agentForm({ mode: "plan", model: "opus", folder: "/src", conversation: " c1 ", prompt: "Fix it\n" });
    const request = new LastRequest().for(form, size);
    const { body } = request.kind === "agent" ? request : { body: undefined };
    expect(body).toMatchObject({ agent: "claude", cwd: "/src", mode: "plan", model: "opus", resume: "c1" });
    expect(body?.prompt?.text).toBe("Fix it");
    expect(body?.prompt?.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(body?.prompt?.id).not.toBe(request.key);
  });

  it("is repeated unchanged with the same key, also after the window changed, until the form changes", () => {
    const last = new LastRequest();
    const first = last.for(terminal({ command: "make" }), size);
    expect(last.for(terminal({ command: "make" }), () => ({ cols: 2, rows: 1 }))).toBe(first);
    const other = last.for(terminal({ command: "make test" }), size);
    expect(other.key).not.toBe(first.key);
    // A form that returns to what it was is another request: the one in between may have started a session.
    expect(last.for(terminal({ command: "make" }), size).key).not.toBe(first.key);
    const prompt = last.for(agentForm({ prompt: "Go" }), size);
    expect(last.for(agentForm({ prompt: "Go" }), size)).toBe(prompt);
  });

  it("can name a conversation as agents name theirs", () => {
    const named = ["01a1-9f", "ses_3.4:x", "a".repeat(128)];
    expect(named.map(isConversation)).toEqual([true, true, true]);
    expect(["", "-x", "a b", "a/b", "a".repeat(129)].map(isConversation)).toEqual([false, false, false, false, false]);
  });
});

describe("R54: what the dialog remembers", () => {
  const empty = parseChoices(undefined);

  it("begins with a shell in the home directory", () => {
    expect(empty).toEqual({ kind: "terminal", agent: "", lastFolder: { terminal: "~", agent: "~" }, folders: [] });
  });

  it.each(["not JSON", "null", "[]", '{"kind":7,"agent":{},"lastFolder":"x","folders":{}}', '{"folders":[1,"x"]}'])(
    "takes the defaults for damaged choices: %s",
    (stored) => expect(parseChoices(stored)).toEqual(empty),
  );

  it("keeps a folder for each kind, and the last eight folders that were chosen", () => {
    let choices = withFolder(empty, "agent", "~/app", "/home/me/app");
    expect(choices.lastFolder).toEqual({ terminal: "~", agent: "/home/me/app" });
    for (let at = 0; at < 10; at++) choices = withFolder(choices, "terminal", `/src/${at}`, `/src/${at}`);
    choices = withFolder(choices, "terminal", "/src/5", "/src/5");
    expect(choices.folders).toEqual([5, 9, 8, 7, 6, 4, 3, 2].map((at) => `/src/${at}`));
    expect(parseChoices(JSON.stringify(choices))).toEqual(choices);
  });

  it("does not take the home directory for a choice", () => {
    for (const asked of ["", "~"]) {
      const before = withFolder(empty, "terminal", "/src", "/src");
      const { folders, lastFolder } = withFolder(before, "terminal", asked, "/home/me");
      expect([folders, lastFolder.terminal]).toEqual([["/src"], "~"]);
    }
  });

  it("offers the folders of sessions first, newest first and once, then the chosen ones", () => {
    const sessions = [
      session({ id: "a", cwd: "/old", created: "2026-01-01T00:00:00Z" }),
      session({ id: "b", cwd: "/new/", active: "2026-12-01T00:00:00Z" }),
      session({ id: "c", cwd: "/old", created: "2026-02-01T00:00:00Z" }),
      session({ id: "d", cwd: "/other", host: "laptop" }),
      session({ id: "e", cwd: "" }),
      session({ id: "f", cwd: "/", created: "2025-01-01T00:00:00Z" }),
    ];
    expect(recentFolders(sessions, ["/chosen", "/new"])).toEqual(["/new", "/old", "/", "/chosen"]);
    const many = Array.from({ length: 20 }, (_, at) => session({ cwd: `/s${at}` }));
    const chosen = Array.from({ length: 8 }, (_, at) => `/c${at}`);
    const recent = recentFolders(many, chosen);
    expect(recent.filter((path) => path.startsWith("/s"))).toHaveLength(8);
    expect(recent).toHaveLength(12);
  });
});

describe("R54: the agents in the dialog", () => {
  const loggedOut = "seems not to be logged in: run `claude` in a terminal and use /login";
  const agents = [
    agent("claude", { problem: loggedOut }),
    agent("codex"),
    agent("gemini", { available: false, install: "npm install -g @google/gemini-cli" }),
    agent("qwen"),
  ];

  it("chooses the wanted one if it can be run, else the first without a problem", () => {
    expect(chooseAgent(agents, "claude")).toBe("claude");
    expect(chooseAgent(agents, "gemini")).toBe("codex");
    expect(chooseAgent(agents, "")).toBe("codex");
    expect(chooseAgent(agents.slice(0, 1), "")).toBe("claude");
    expect(chooseAgent(agents.slice(2, 3), "gemini")).toBe("");
    const { usable, missing } = sortAgents(agents);
    expect([usable, missing].map((list) => list.map(({ name }) => name))).toEqual([
      ["claude", "codex", "qwen"],
      ["gemini"],
    ]);
  });

  it("says what is wrong in a sentence, with code apart", () => {
    expect(problemParts(loggedOut)).toEqual([
      { text: "Seems not to be logged in: run ", code: false },
      { text: "claude", code: true },
      { text: " in a terminal and use /login.", code: false },
    ]);
    expect(problemParts("`codex` is not installed")[0]).toEqual({ text: "codex", code: true });
  });

  it("offers a login where it seems to be missing, in one session for each agent", () => {
    expect(agents.map(seemsLoggedOut)).toEqual([true, false, false, false]);
    expect(loginSession("claude", SIZE)).toEqual({
      name: "login-claude",
      argv: ["claude", "auth", "login"],
      if_exists: "restart",
      size: SIZE,
    });
    expect(loginSession("cursor", undefined)).toEqual({
      name: "login-cursor",
      argv: ["cursor-agent", "login"],
      if_exists: "restart",
    });
    for (const name of ["claude", "codex", "gemini", "opencode", "qwen", "cursor"]) expect(canLogIn(name)).toBe(true);
    for (const name of ["mine", "", "constructor", "__proto__"]) {
      expect([canLogIn(name), loginSession(name, SIZE), installPage(name)]).toEqual([false, undefined, undefined]);
    }
    expect(loginSteps("qwen")).toContain("/auth");
    expect(loginSteps("codex")).not.toContain("/");
  });

  it("describes modes that it knows, and marks those that skip approvals however they are spelled", () => {
    expect(modeText("acceptEdits").name).toBe("Accept edits");
    expect(modeText("auto_edit").name).toBe("Accept edits");
    for (const mode of ["bypassPermissions", "dontAsk", "agent-full-access", "auto-approve", "AUTO_APPROVE", "YOLO"]) {
      expect(modeText(mode).skipsApprovals, mode).toBe(true);
    }
    for (const mode of ["default", "plan", "auto", "workspace-write", "yolo2"]) {
      expect(modeText(mode).skipsApprovals, mode).toBe(false);
    }
    for (const mode of ["architect", "constructor"]) {
      expect(modeText(mode)).toEqual({ name: mode, about: "", skipsApprovals: false });
    }
  });

  it("keeps the list while it is requested again, and after a failure", async () => {
    const answers: (() => Promise<AgentStatus[]>)[] = [
      () => Promise.reject(new Error("offline")),
      () => Promise.resolve(agents),
      () => Promise.reject(new Error("offline again")),
      () => Promise.resolve([]),
    ];
    let requests = 0;
    const list = new AgentList(
      () => answers[requests++]!(),
      (error) => (error as Error).message,
    );
    await list.refresh();
    expect([list.agents, list.problem, list.loading]).toEqual([undefined, "offline", false]);
    const second = list.refresh();
    // One request at a time.
    await list.refresh();
    await second;
    expect([requests, list.agents, list.problem]).toEqual([2, agents, ""]);
    await list.refresh();
    expect([list.agents, list.problem]).toEqual([agents, "offline again"]);
    await list.refresh();
    expect([list.agents, list.problem]).toEqual([[], ""]);
  });

  it("shows the agent of a session as its kind", () => {
    expect(kindText(session({ kind: "agent", agent: "claude" }))).toBe("claude");
    expect(kindText(session({ kind: "agent" }))).toBe("Agent");
    expect(kindText(session())).toBe("Terminal");
  });
});
