/** What is on the board, in which order, and who needs somebody. */
import type { SessionInfo } from "@bowline/client";
import { describe, expect, it } from "vitest";
import { ago, commandOf, kindOf, lifeOf, nameOf, partsOf, shortPath } from "../src/board/order.ts";
import { look, meet, needOf, readSeen, receive } from "../src/state/seen.ts";

function session(more: Partial<SessionInfo> = {}): SessionInfo {
  return {
    id: "k3v9x0q2m7aa",
    name: null,
    kind: "terminal",
    state: "running",
    created: "2026-11-15T18:00:00Z",
    cwd: "/home/dev/app",
    argv: ["/bin/bash"],
    title: "",
    size: { cols: 80, rows: 24 },
    clients: 0,
    epoch: "9f3c61d2",
    offset: 0,
    degraded: false,
    version: "0.1.0",
    ...more,
  };
}
const bell = { at: "2026-11-15T18:01:00Z", kind: "bell", text: "" } as const;

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

describe("R54: the board", () => {
  it("has those who need you first, then by name, then what ended", () => {
    const sessions = [
      session({ id: "a", name: "web10" }),
      session({ id: "b", name: "web9" }),
      session({ id: "c" }),
      session({ id: "d", state: "exited" }),
      session({ id: "e", call: bell }),
      session({ id: "f", state: "lost", created: "2026-11-16T00:00:00Z" }),
    ];
    const { needing, running, ended } = partsOf(sessions, {});
    const ids = (entries: readonly { session: SessionInfo }[]) => entries.map((entry) => entry.session.id).join("");
    expect([ids(needing), ids(running), ids(ended)]).toEqual(["e", "bac", "fd"]);
  });

  it("shows a session of a later time among the living, and says so", () => {
    const odd = session({ kind: "unknown", state: "unknown" });
    expect(partsOf([odd], { [odd.id]: meet(undefined, session()) }).running).toHaveLength(1);
    expect(lifeOf(odd)).toBe("Unknown state");
  });

  it("shows a session of another kind by what it has: neither command nor size", () => {
    const { argv: _argv, size: _size, ...rest } = session({ kind: "agent", title: "Fix the login test" });
    expect([nameOf(rest), commandOf(rest), kindOf(rest), lifeOf(rest)]).toEqual([
      "Fix the login test",
      "",
      "Agent",
      "Running",
    ]);
    expect(nameOf({ ...rest, name: "login" })).toBe("login");
    const bare: SessionInfo = { ...rest, kind: "unknown", title: "", state: "exited", exit: { code: 0, signal: null } };
    expect([nameOf(bare), kindOf(bare)]).toEqual(["k3v9x0q2m7aa", "Unknown kind"]);
    expect(partsOf([rest, { ...bare, id: "b" }], {})).toMatchObject({
      running: [{ session: rest }],
      ended: [{ session: { id: "b" } }],
    });
  });

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
