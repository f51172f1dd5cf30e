/** What was sent and the agent has not got yet: what can be done about it, withdrawals, steering, and settings. */
import type { AgentConfig, Command, OpenRun, PostEntry, PostState } from "@bowline/client";
import { describe, expect, test } from "vitest";
import {
  announcementOf,
  commandLines,
  isStuck,
  messageActions,
  steerableRun,
  withdrawalOf,
} from "../src/conversation/composer/queue.ts";
import {
  choiceName,
  type Chosen,
  chosenFor,
  filterChoices,
  nextBeginning,
  pendingChoice,
  settingsOf,
} from "../src/conversation/composer/settings.ts";
import type { Message } from "../src/conversation/messages.ts";
import type { PromptItem } from "../src/conversation/transcript.ts";

const accepted: PostState = { name: "delivered", how: "accepted", seq: 3 };
const notRunning: PostState = { name: "delivered", how: "not_running" };
const sending: PostState = { name: "sending", tries: 0 };
const retrying: PostState = { name: "retrying", at: 0, tries: 1, message: "" };
const failed = (reason: "session_gone" | "expired" | "old" | "unreadable" = "expired"): PostState => ({
  name: "failed",
  reason,
  message: "",
});
const waits = (why: "turn" | "held" | "login" | "offline"): PostState => ({ name: "waiting", why });
const message = (state: PostState, type: Message["type"] = "prompt"): Message => ({
  id: "m",
  type,
  text: "Fix it",
  attachments: [],
  state,
});
let entries = 0;
const entry = (command: Command | undefined, state: PostState, session = "s"): PostEntry => ({
  id: `e${++entries}`,
  session,
  command,
  made: 0,
  order: entries,
  state,
});

describe("what can be done about a message", () => {
  test("a failed one has one obvious button", () => {
    expect(messageActions(message(failed("session_gone")), false)).toEqual(["resume", "edit", "discard"]);
    expect(messageActions(message(failed("expired")), false)).toEqual(["again", "edit", "discard"]);
    expect(messageActions(message(failed("unreadable")), false)).toEqual(["discard"]);
  });

  test("what may have arrived cannot be edited", () => {
    for (const state of [retrying, { name: "sending", tries: 2 } as const])
      expect(messageActions(message(state), false)).toEqual(["try", "discard"]);
    for (const state of [sending, accepted]) expect(messageActions(message(state), true)).toEqual([]);
  });

  test("one that waits can be taken back, unless it is about to be sent", () => {
    for (const why of ["held", "login", "offline"] as const)
      expect(messageActions(message(waits(why)), false)).toEqual(["edit", "discard"]);
    expect(messageActions(message(waits("turn")), false)).toEqual([]);
    expect(messageActions(message(waits("turn")), true)).toEqual(["edit", "discard"]);
    expect([sending, retrying, failed(), accepted].map((state) => isStuck({ state }))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  test("instructions that the run could not take can be sent as a message", () => {
    expect(messageActions(message(notRunning, "steer"), false)).toEqual(["prompt", "edit", "discard"]);
  });

  test("a screen reader is told of trouble, once", () => {
    expect(announcementOf([])).toBe("");
    expect(announcementOf([message(sending), message(waits("turn")), message(accepted)])).toBe("");
    expect(announcementOf([message(waits("offline"))])).toBe("Your message waits for the network.");
    expect(announcementOf([message(waits("login"))])).toBe("Your message waits for a login.");
    const during = announcementOf([message(retrying)]);
    expect(announcementOf([message({ name: "sending", tries: 3 })])).toBe(during);
    expect(announcementOf([message(failed()), message(waits("held"))])).toBe("A message was not sent.");
    expect(announcementOf([message(failed()), message(notRunning, "steer")])).toBe("2 messages were not sent.");
  });
});

describe("an edit after a withdrawal", () => {
  const prompt = (run: string, unstarted = false): PromptItem => ({
    kind: "prompt",
    key: `prompt ${run}`,
    seq: 0,
    at: "",
    run,
    command: "c",
    text: "Fix it",
    attachments: [],
    by: "me",
    unstarted,
  });
  const run = (id: string, started: boolean, aborted = false): OpenRun => ({ run: id, at: "", started, aborted });
  const nothing = { waiting: [], items: [], runs: [] };

  test("waits until the withdrawal is certain", () => {
    const waiting = { ...nothing, waiting: [prompt("r1")], runs: [run("r1", false, true)] };
    for (const state of [sending, retrying, accepted, notRunning])
      expect(withdrawalOf("r1", { state }, waiting)).toBe("pending");
    expect(withdrawalOf("r1", undefined, waiting), "the event of the abort has arrived").toBe("pending");
    expect(withdrawalOf("r1", { state: failed() }, waiting)).toBe("failed");
  });

  test("takes the prompt back only if the agent never got it", () => {
    const items = [prompt("r0"), prompt("r1", true), prompt("r2")];
    expect(withdrawalOf("r1", undefined, { ...nothing, items })).toBe("withdrawn");
    expect(withdrawalOf("r2", undefined, { ...nothing, items, runs: [run("r2", true, true)] })).toBe("started");
    expect(withdrawalOf("r1", { state: failed() }, { ...nothing, items }), "its end is what counts").toBe("withdrawn");
  });

  test("claims nothing about a prompt that is not loaded", () => {
    expect(withdrawalOf("r1", undefined, nothing)).toBe("unknown");
    expect(withdrawalOf("r1", undefined, { ...nothing, runs: [run("r1", true)] })).toBe("started");
    expect(withdrawalOf("r1", undefined, { ...nothing, runs: [run("r1", false)] })).toBe("unknown");
  });

  test("steering is offered for the run in the agent, until the agent refuses", () => {
    const runs = [run("r1", true), run("r2", false)];
    const steer = (state: PostState, id = "r1") => entry({ type: "steer", run: id, text: "" }, state);
    expect(steerableRun("claude", runs, [], "s")).toBe("r1");
    expect(steerableRun("mine", runs, [steer(accepted)], "s")).toBe("r1");
    expect(steerableRun("mine", runs, [steer(notRunning)], "s")).toBeUndefined();
    expect(steerableRun("mine", runs, [steer(notRunning, "r0")], "s")).toBe("r1");
    for (const agent of ["gemini", "opencode", "qwen", undefined])
      expect(steerableRun(agent, runs, [], "s")).toBeUndefined();
    expect(steerableRun("claude", [run("r1", false)], [], "s")).toBeUndefined();
    expect(steerableRun("claude", [run("r1", true, true)], [], "s")).toBeUndefined();
    expect(steerableRun("claude", [], [], "s")).toBeUndefined();
  });
});

test("commands that had no effect are listed, each with its reason", () => {
  const refused: PostState = {
    name: "failed",
    reason: "refused",
    code: "not_allowed",
    message: "this token may only read",
  };
  const lines = commandLines(
    [
      entry({ type: "prompt", text: "x" }, failed()),
      entry({ type: "abort", run: "r1" }, failed()),
      entry({ type: "set", mode: "plan" }, refused),
      entry({ type: "set", option: { id: "effort", value: "high" } }, notRunning),
      entry({ type: "set", model: "small" }, failed("session_gone")),
      entry({ type: "set", model: "large" }, accepted),
      entry({ type: "abort", run: "r1" }, notRunning),
      entry({ type: "abort", run: "r1" }, failed(), "another session"),
      entry(undefined, failed("unreadable")),
    ],
    "s",
    [],
  );
  expect(lines.map(({ what, why, canSendAgain }) => [what, why, canSendAgain])).toEqual([
    ["Stop", "Not sent within ten minutes", true],
    ["Mode plan", "Not sent: this token may only read", true],
    ["Model small", "Not sent: the session has ended", false],
    ["Command", "This message was written by another version and cannot be sent", false],
    ["effort high", "Not changed: the agent is not running. Send a message first", false],
  ]);
});

test("failed answers to approvals are told of only when no card does", () => {
  const answers = [
    entry({ type: "approve", approval: "a1", option: "yes" }, failed()),
    entry({ type: "deny", approval: "a2" }, failed()),
    entry({ type: "answer", approval: "a3", answers: {} }, failed()),
    entry({ type: "abort", run: "a1" }, failed()),
  ];
  const told = (...open: string[]) =>
    commandLines(
      answers,
      "s",
      open.map((id) => ({ id })),
    ).map(({ what }) => what);
  expect(told()).toEqual(["Your approval", "Your refusal", "Your answer", "Stop"]);
  expect(told("a1", "a3")).toEqual(["Your refusal", "Stop"]);
  expect(told("a1", "a2", "a3")).toEqual(["Stop"]);
});

describe("settings", () => {
  const choices = [
    { id: "default", name: "Default" },
    { id: "plan", name: "Plan", description: "Read-only mode" },
    { id: "bypassPermissions", name: "Bypass" },
  ];
  const config: AgentConfig = {
    modes: { current: "default", available: choices },
    models: { current: null, available: [{ id: "yolo-7b", name: "" }] },
    options: [
      { id: "effort", name: "Effort", current: "low", available: [{ id: "low", name: "Low" }] },
      { id: "empty", name: "Empty", current: null, available: [] },
    ],
    commands: [],
  };

  test("come from what the agent says", () => {
    const settings = settingsOf(config);
    expect(settings.map(({ key, label, current }) => [key, label, current])).toEqual([
      ["mode", "Mode", "default"],
      ["model", "Model", undefined],
      ["option effort", "Effort", "low"],
    ]);
    expect(settings.map(({ command, choices }) => command(choices[0]!.id))).toEqual([
      { type: "set", mode: "default" },
      { type: "set", model: "yolo-7b" },
      { type: "set", option: { id: "effort", value: "low" } },
    ]);
    expect(settingsOf(undefined)).toEqual([]);
    const repeated = { ...config, modes: { current: null, available: [...choices, ...choices] } };
    expect(settingsOf({ ...repeated, options: [...config.options, ...config.options] })).toHaveLength(3);
    expect(settingsOf(repeated)[0]?.choices).toEqual(choices);
    expect(settingsOf({ modes: null, models: null, options: [], commands: [] })).toEqual([]);
  });

  test("modes that skip approvals are dangerous, however they are spelled", () => {
    const [mode, model] = settingsOf(config);
    for (const id of [
      "bypassPermissions",
      "yolo",
      "dontAsk",
      "agent-full-access",
      "danger_full_access",
      "auto-approve",
    ])
      expect(mode!.isDangerous(id), id).toBe(true);
    for (const id of ["default", "plan", "acceptEdits", "auto", "read-only", "workspace-write"])
      expect(mode!.isDangerous(id), id).toBe(false);
    expect(model!.isDangerous("yolo-7b")).toBe(false);
  });

  test("a choice is shown until the agent confirms it, and not if it failed", () => {
    const set = (mode: string, state: PostState) => entry({ type: "set", mode }, state);
    const show = (before: Chosen | undefined, list: PostEntry[], now = config) =>
      chosenFor(before, list, "s", "mode", now);
    const plan = set("plan", sending);
    const chosen = show(undefined, [set("default", failed()), plan])!;
    expect(chosen).toEqual({ id: plan.id, value: "plan", config });
    expect(show(chosen, [{ ...plan, state: accepted }])).toBe(chosen);
    expect(show(chosen, []), "accepted; the agent has not said anything yet").toBe(chosen);
    const next: AgentConfig = { ...config, modes: { current: "plan", available: choices } };
    expect(show(chosen, [{ ...plan, state: accepted }], next), "the event of the command is not loaded yet").toBe(
      chosen,
    );
    expect(show(chosen, [], next)).toBeUndefined();
    for (const state of [failed(), notRunning]) expect(show(chosen, [{ ...plan, state }])).toBeUndefined();
    expect(show(chosen, [plan, set("default", sending)])?.value).toBe("default");
    expect(show(undefined, [])).toBeUndefined();
  });

  test("options and other sessions have their own choices", () => {
    const list = [
      entry({ type: "set", option: { id: "effort", value: "high" } }, sending),
      entry({ type: "set", mode: "plan" }, sending, "another session"),
      entry({ type: "prompt", mode: "plan" }, sending),
    ];
    expect(pendingChoice(list, "s", "option effort")?.value).toBe("high");
    expect(pendingChoice(list, "s", "option other")).toBeUndefined();
    expect(pendingChoice(list, "s", "mode")).toBeUndefined();
  });

  test("choices are found by what the user types", () => {
    expect(filterChoices(choices, " read ").map(({ id }) => id)).toEqual(["plan"]);
    expect(filterChoices(choices, "PLAN mode").map(({ id }) => id)).toEqual(["plan"]);
    expect(filterChoices(choices, "")).toEqual(choices);
    expect(choiceName(choices, "plan")).toBe("Plan");
    expect(choiceName(choices, "unlisted")).toBe("unlisted");
    expect(nextBeginning(choices, 0, "P")).toBe(1);
    expect(nextBeginning(choices, 1, "d")).toBe(0);
    expect(nextBeginning(choices, 1, "x")).toBe(1);
    expect(nextBeginning([], -1, "x")).toBe(-1);
  });
});
