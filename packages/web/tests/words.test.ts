/** Sessions, states, ends and unsent keys in plain words. */
import { describe, expect, it } from "vitest";
import {
  ago,
  commandOf,
  exitWords,
  goneWords,
  lifeOf,
  nameOf,
  othersWords,
  shortPath,
  stateWords,
  unsentWords,
} from "../src/session/words.ts";
import { session } from "./session.ts";

describe("R10: states in plain words", () => {
  it("say when the next try is", () => {
    const lost = "Connection lost, trying again";
    expect(stateWords({ name: "reconnecting", attempt: 2, delay: 4000 }, 4, true)).toEqual({
      tone: "busy",
      text: lost,
      when: " in 4 s",
    });
    expect(stateWords({ name: "reconnecting", attempt: 2, delay: 0 }, 0, true)).toEqual({
      tone: "busy",
      text: lost,
      when: " now",
    });
    expect(stateWords({ name: "offline" }, 0, true)).toEqual({ tone: "bad", text: "Not connected" });
    expect(stateWords({ name: "reconnecting", attempt: 1, delay: 900 }, 1, false).text).toBe(
      "The gateway cannot be reached, trying again",
    );
    expect(stateWords({ name: "offline" }, 0, false).text).toBe("The gateway cannot be reached");
    expect(stateWords({ name: "open" }, 0, true).tone).toBe("good");
  });

  it("say why it will never work", () => {
    expect(goneWords("unknown")).toBe("There is no such session");
    expect(goneWords("protocol")).toBe("The gateway refused the connection");
  });

  it("say how a program ended", () => {
    expect(exitWords({ code: 0, signal: null })).toBe("Exited normally");
    expect(exitWords({ code: 3, signal: null })).toBe("Exited with code 3");
    expect(exitWords({ code: null, signal: "SIGKILL" })).toBe("Ended by SIGKILL");
    expect(exitWords({ code: null, signal: null }, true)).toMatch(/^Lost/);
  });

  it("R16: show unsent keys so that they can be read", () => {
    const unsent = (text: string) => ({ bytes: new TextEncoder().encode(text), doubtful: 0 });
    expect(unsentWords(unsent("ls\r\x03\x7f\x1b[A"))).toBe("ls⏎^C⌫⎋[A");
    expect(unsentWords(unsent("x".repeat(50)), 10)).toBe(`…${"x".repeat(10)}`);
    expect(unsentWords(unsent("✓".repeat(50)), 10)).toBe(`…${"✓".repeat(10)}`);
  });

  it("R26: count the others", () => {
    expect([0, 1, 2].map(othersWords)).toEqual(["", "1 other here", "2 others here"]);
  });
});

describe("R54: sessions in plain words", () => {
  it("calls a session by its name, else by its command", () => {
    expect(nameOf(session({ name: "build" }))).toBe("build");
    expect(nameOf(session())).toBe("bash");
    expect(commandOf(session({ argv: ["-zsh"] }))).toBe("zsh");
    expect(commandOf(session({ argv: ["/bin/sh", "-c", "make test"] }))).toBe("make test");
  });

  it("says how it lives, where and since when", () => {
    expect(lifeOf(session())).toBe("Running");
    expect(lifeOf(session({ state: "exited", exit: { code: 2, signal: null } }))).toBe("Exited with code 2");
    expect(["/home/dev/app", "/root", "/rootless", "/srv"].map(shortPath)).toEqual(["~/app", "~", "/rootless", "/srv"]);
    const now = Date.parse("2026-11-15T18:00:00Z");
    const before = (seconds: number) => ago(new Date(now - seconds * 1000).toISOString(), now);
    expect([1, 60, 3600, 7200 * 2, 86400 * 3].map(before)).toEqual([
      "just now",
      "1 min ago",
      "60 min ago",
      "4 h ago",
      "3 d ago",
    ]);
    expect([ago(undefined, now), ago("nonsense", now)]).toEqual(["", ""]);
  });
});
