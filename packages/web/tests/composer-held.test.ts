/** Messages that wait for a change of a setting that failed. */
import type { Command, PostEntry, PostState } from "@bowline/client";
import { expect, test } from "vitest";
import { isFailedSetting, isHeldBySetting } from "../src/conversation/composer/held.ts";

const failed: PostState = { name: "failed", reason: "expired", message: "" };
const held: PostState = { name: "waiting", why: "held" };
let made = 0;
function entry(type: string, state: PostState, session = "s"): PostEntry {
  const command: Command = { type };
  made += 1;
  return { id: `c${made}`, session, command, made, order: made, state };
}

test("only a setting of the session that failed is one", () => {
  expect(isFailedSetting(entry("set", failed), "s")).toBe(true);
  expect(isFailedSetting(entry("set", failed, "other"), "s")).toBe(false);
  expect(isFailedSetting(entry("set", { name: "sending", tries: 0 }), "s")).toBe(false);
  expect(isFailedSetting(entry("prompt", failed), "s")).toBe(false);
});

test("a message is held by a setting if no failed message is before it", () => {
  const setting = entry("set", failed);
  const urgent = entry("abort", failed);
  const elsewhere = entry("prompt", failed, "other");
  const prompt = entry("prompt", held);
  expect(isHeldBySetting([setting, urgent, elsewhere, prompt], prompt.id)).toBe(true);
  expect(isHeldBySetting([urgent, elsewhere, prompt], prompt.id)).toBe(false);
  expect(isHeldBySetting([setting, entry("prompt", failed), prompt], prompt.id)).toBe(false);
  expect(isHeldBySetting([prompt, setting], prompt.id)).toBe(false);
  const waits: PostEntry = { ...prompt, state: { name: "waiting", why: "turn" } };
  expect(isHeldBySetting([setting, waits], prompt.id)).toBe(false);
  expect(isHeldBySetting([setting], "gone")).toBe(false);
});
