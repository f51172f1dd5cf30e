/** Tests the sections and the order of the board. */
import type { SessionInfo } from "@bowline/client";
import { describe, expect, it } from "vitest";
import { boardSections } from "../src/board/order.ts";
import { commandOf, kindText, nameOf, stateText } from "../src/session/text.ts";
import { recordUpdate } from "../src/state/attention.ts";
import { agentSession, approval, bell, session } from "./session.ts";

describe("R54: the board", () => {
  it("lists sessions that need attention, then running ones by name, then ended ones", () => {
    const sessions = [
      session({ id: "a", name: "web10" }),
      session({ id: "b", name: "web9" }),
      session({ id: "c" }),
      session({ id: "d", state: "exited" }),
      session({ id: "e", call: bell }),
      session({ id: "f", state: "lost", created: "2026-11-16T00:00:00Z" }),
    ];
    const { attention, running, ended } = boardSections(sessions, {});
    const ids = (entries: readonly { session: SessionInfo }[]) => entries.map((entry) => entry.session.id).join("");
    expect([ids(attention), ids(running), ids(ended)]).toEqual(["e", "bac", "fd"]);
  });

  it("R36: lists agents that wait for an answer first, the one that has waited longest on top", () => {
    const waits = (id: string, at: string) => agentSession([approval({ at })], { id });
    const { attention } = boardSections(
      [
        session({ id: "a", call: { ...bell, at: "2026-11-15T18:09:00Z" } }),
        waits("b", "2026-11-15T18:05:00Z"),
        session({ id: "c", call: { ...bell, at: "2026-11-15T18:10:00Z" } }),
        waits("d", "2026-11-15T18:02:00Z"),
      ],
      {},
    );
    expect(attention.map(({ session: { id } }) => id).join("")).toBe("dbca");
  });

  it("lists a session in a state of a newer version as running, with an unknown state", () => {
    const newer = session({ kind: "unknown", state: "unknown" });
    expect(boardSections([newer], { [newer.id]: recordUpdate(undefined, session()) }).running).toHaveLength(1);
    expect(stateText(newer)).toBe("Unknown state");
  });

  it("describes a session of another kind, which has neither a command nor a size", () => {
    const { argv: _argv, size: _size, ...rest } = session({ kind: "agent", title: "Fix the login test" });
    expect([nameOf(rest), commandOf(rest), kindText(rest), stateText(rest)]).toEqual([
      "Fix the login test",
      "",
      "Agent",
      "Running",
    ]);
    expect(nameOf({ ...rest, name: "login" })).toBe("login");
    const bare: SessionInfo = { ...rest, kind: "unknown", title: "", state: "exited", exit: { code: 0, signal: null } };
    expect([nameOf(bare), kindText(bare)]).toEqual(["k3v9x0q2m7aa", "Unknown kind"]);
    expect(boardSections([rest, { ...bare, id: "b" }], {})).toMatchObject({
      running: [{ session: rest }],
      ended: [{ session: { id: "b" } }],
    });
  });
});
