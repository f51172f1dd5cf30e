/** Tests the texts about sessions, connections, exits and unsent input. */
import { describe, expect, it } from "vitest";
import {
  ago,
  commandOf,
  connectionText,
  exitText,
  goneText,
  nameOf,
  otherViewersText,
  shortPath,
  stateText,
  unsentText,
} from "../src/session/text.ts";
import { session } from "./session.ts";

describe("R10: connection texts", () => {
  it("say when the next retry is", () => {
    const lost = "Connection lost, retrying";
    expect(connectionText({ name: "reconnecting", attempt: 2, delay: 4000 }, 4, true)).toEqual({
      tone: "busy",
      text: lost,
      countdown: " in 4s (attempt 2)",
    });
    expect(connectionText({ name: "reconnecting", attempt: 2, delay: 0 }, 0, true)).toEqual({
      tone: "busy",
      text: lost,
      countdown: " now (attempt 2)",
    });
    expect(connectionText({ name: "offline", reason: "the connection was cut" }, 0, true)).toEqual({
      tone: "bad",
      text: "Not connected: the connection was cut",
    });
    expect(connectionText({ name: "reconnecting", attempt: 1, delay: 900 }, 1, false).text).toBe(
      "Cannot reach the gateway, retrying",
    );
    expect(connectionText({ name: "offline", reason: "" }, 0, false).text).toBe("Cannot reach the gateway");
    expect(connectionText({ name: "open" }, 0, true).tone).toBe("good");
  });

  it("say why a connection failed permanently", () => {
    expect(goneText("unknown")).toBe("Session not found");
    expect(goneText("protocol")).toBe("The gateway refused the connection");
  });

  it("say how a program ended", () => {
    expect(exitText({ code: 0, signal: null })).toBe("Exited normally");
    expect(exitText({ code: 3, signal: null })).toBe("Exited with code 3");
    expect(exitText({ code: null, signal: "SIGKILL" })).toBe("Ended by SIGKILL");
    expect(exitText({ code: null, signal: null }, true)).toMatch(/^Lost/);
  });

  it("R16: make control characters in unsent input visible", () => {
    const unsent = (text: string) => ({ bytes: new TextEncoder().encode(text), doubtful: 0 });
    expect(unsentText(unsent("ls\r\x03\x7f\x1b[A"))).toBe("ls⏎^C⌫⎋[A");
    expect(unsentText(unsent("x".repeat(50)), 10)).toBe(`…${"x".repeat(10)}`);
    expect(unsentText(unsent("✓".repeat(50)), 10)).toBe(`…${"✓".repeat(10)}`);
  });

  it("R26: count the other viewers", () => {
    expect([0, 1, 2].map(otherViewersText)).toEqual(["", "1 other viewer", "2 other viewers"]);
  });
});

describe("R54: session texts", () => {
  it("show a session by its name, or else its command", () => {
    expect(nameOf(session({ name: "build" }))).toBe("build");
    expect(nameOf(session())).toBe("bash");
    expect(commandOf(session({ argv: ["-zsh"] }))).toBe("zsh");
    expect(commandOf(session({ argv: ["/bin/sh", "-c", "make test"] }))).toBe("make test");
  });

  it("show its state, directory and age", () => {
    expect(stateText(session())).toBe("Running");
    expect(stateText(session({ state: "exited", exit: { code: 2, signal: null } }))).toBe("Exited with code 2");
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
