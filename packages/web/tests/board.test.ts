/** What is on the board, and in which order. */
import type { SessionInfo } from "@bowline/client";
import { describe, expect, it } from "vitest";
import { partsOf } from "../src/board/order.ts";
import { commandOf, kindOf, lifeOf, nameOf } from "../src/session/words.ts";
import { meet } from "../src/state/seen.ts";
import { bell, session } from "./session.ts";

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
});
